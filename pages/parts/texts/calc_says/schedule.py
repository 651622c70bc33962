"""What calc says of a schedule that its own library refuses or crashes in, and of options that cannot be read."""

SENTENCES = {
    # calc/schedule/kind.py
    "{} is {}, not {}": "{} 값은 {}입니다({}는 불가)",
    "one of {}": "다음 가운데 하나: {}",
    "a number": "수",
    "a whole number": "정수",
    "true or false": "true 또는 false",
    "a list of numbers": "수의 목록",
    "{} is needed here": "여기서는 {} 값이 필요합니다",
    "{} has no option {}; {}": "{}에는 {} 옵션이 없습니다. {}",
    "it takes {}": "받는 옵션: {}",
    "it takes none": "받는 옵션이 없습니다",
    "{} needs {} in lr_scheduler_kwargs": "{}에는 lr_scheduler_kwargs의 {} 값이 필요합니다",
    # calc/schedule/warmup.py
    "{} has no warmup_ratio: write warmup_steps={}": "{}에는 warmup_ratio가 없습니다. warmup_steps={}로 적으세요",
    "this version takes warmup_steps as a whole number from 0, not {}": "이 버전의 warmup_steps는 0 이상의 정수입니다({}는 불가)",
    "warmup_ratio lies between 0 and 1": "warmup_ratio는 0에서 1 사이입니다",
    "{} is a number from 0, not {}": "{} 값은 0 이상의 수입니다({}는 불가)",
    "axolotl takes warmup_steps or warmup_ratio, not both": "axolotl은 warmup_steps와 warmup_ratio 가운데 하나만 받습니다",
    "axolotl takes warmup_steps as a whole number from 0, not {}": "axolotl의 warmup_steps는 0 이상의 정수입니다({}는 불가)",
    # calc/schedule/steps.py, plan.py, completions.py, packing.py, resume.py, answer.py
    "the stream has fewer batches than one step accumulates": "스트림의 배치가 한 스텝이 누적하는 수보다 적습니다",
    "{} GPUs do not divide into groups of {}": "GPU {}개를 {}개씩 나눌 수 없습니다",
    "a stream without a length needs max_steps": "길이가 없는 스트림에는 max_steps가 필요합니다",
    "dropping the last batch leaves none: fewer samples than one batch over all ranks":
        "마지막 배치를 버리면 남는 것이 없습니다. 샘플이 전체 랭크의 배치 하나보다 적습니다",
    "give the number of prompts, or max_steps": "프롬프트 수나 max_steps를 적으세요",
    "a generation batch of {} completions does not divide into groups of {}": "응답 {}개의 생성 배치를 {}개씩 나눌 수 없습니다",
    "{} prompts are fewer than the {} of one generation batch": "프롬프트 {}개는 생성 배치 하나의 {}개보다 적습니다",
    "lengths are whole numbers from 1": "길이는 1 이상의 정수입니다",
    "a checkpoint lies between step 1 and {}": "체크포인트는 1에서 {} 스텝 사이입니다",
    "{} steps: name those you want in `at`": "{}스텝입니다. 원하는 스텝을 `at`에 적으세요",
    "a step is 0 or more": "스텝은 0 이상입니다",
    # calc/schedule/hugging_face.py
    "lr_end ({}) must be smaller than the learning rate ({}); lower it through lr_scheduler_kwargs":
        "lr_end({})는 학습률({})보다 작아야 합니다. lr_scheduler_kwargs로 낮추세요",
    "timescale is more than 0": "timescale은 0보다 큽니다",
    "give {} in lr_scheduler_kwargs": "lr_scheduler_kwargs에 {} 적으세요",
    "one of min_lr and min_lr_rate": "min_lr와 min_lr_rate 가운데 하나를",
    "only one of min_lr and min_lr_rate": "min_lr와 min_lr_rate 가운데 하나만",
    "polynomial divides by T − W, which is 0: the run crashes after its last optimizer step. Shorten the warmup":
        "polynomial은 T − W로 나누는데 그 값이 0이라 마지막 옵티마이저 스텝 뒤에 실행이 멈춥니다. 워밍업을 줄이세요",
    # calc/schedule/pytorch.py, deepspeed.py, on_metric.py, axolotl.py
    "the {} has no length (pct_start · T − 1 = {}), and OneCycleLR divides by it":
        "{} 구간의 길이가 0이고(pct_start · T − 1 = {}) OneCycleLR가 그 값으로 나눕니다",
    "OneCycleLR refuses more than {} steps": "OneCycleLR는 {}스텝보다 많으면 거부합니다",
    "T_max is more than 0": "T_max는 0보다 큽니다",
    "T_0 and T_mult are whole numbers from 1": "T_0와 T_mult는 1 이상의 정수입니다",
    "DeepSpeed's warmup_num_steps is a whole number from 1": "DeepSpeed의 warmup_num_steps는 1 이상의 정수입니다",
    "factor is below 1": "factor는 1보다 작습니다",
    "eval_steps is 1 or more": "eval_steps는 1 이상입니다",
    "the interpolation needs at least 2 steps": "보간에는 2스텝 이상이 필요합니다",
    "jagged_restart_steps is at least 1": "jagged_restart_steps는 1 이상입니다",
    # calc/schedule/pretraining.py
    "Megatron asserts that the warmup is shorter than lr_decay_steps": "Megatron에서 워밍업은 lr_decay_steps보다 짧아야 합니다",
    "WSD needs wsd_decay_steps": "WSD에는 wsd_decay_steps가 필요합니다",
    "litgpt divides by its warmup steps: give at least 1": "litgpt는 워밍업 스텝 수로 나눕니다. 1 이상을 적으세요",
    "litgpt's cosine has max_steps − warmup steps, which must be more than 0":
        "litgpt의 코사인은 max_steps − 워밍업 스텝만큼 이어지며 이는 0보다 커야 합니다",
    "Noam's warmup is at least 1 step": "Noam의 워밍업은 1스텝 이상입니다",
    "t_initial and cycle_mul are more than 0": "t_initial과 cycle_mul은 0보다 큽니다",
    "cycle_limit is 1,000 at most": "cycle_limit은 1,000까지입니다",
    "torchtitan divides by the decay's length, which is 0": "torchtitan은 감쇠 길이로 나누는데 그 값이 0입니다",
    "the decay divides by its length, which is 0: shorten the warmup": "감쇠 길이로 나누는데 그 값이 0입니다. 워밍업을 줄이세요",
    # calc/schedule/link.py
    "it is no part of a run": "실행의 항목이 아닙니다",
    "write options as name:value, not '{}'": "옵션은 이름:값으로 적으세요('{}'는 불가)",
    # calc/catalog/table.py
    "unknown {} '{}'; did you mean {}?": "'{1}'은(는) 모르는 이름입니다({0}). 혹시 {2}인가요?",
    "unknown {} '{}'; known: {}": "'{1}'은(는) 모르는 이름입니다({0}). 아는 이름: {2}",
}  # fmt: skip
