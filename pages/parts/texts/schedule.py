"""Words of the Schedule page."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "nav.schedule": Text("Schedule", "스케줄"),
    "schedule.title": Text(
        "{kind}: {steps} steps, {warmup} of warmup, the last at {last}",
        "{kind}: {steps} 스텝, 워밍업 {warmup} 스텝, 마지막 학습률 {last}",
    ),
    "schedule.title.refused": Text("This schedule cannot run: {why}", "이 스케줄은 실행할 수 없습니다: {why}"),
    "schedule.run": Text("The run", "실행"),
    "schedule.samples": Text("Samples in the dataset", "데이터셋 샘플 수"),
    "schedule.samples.help": Text(
        "Rows after packing. The example is KoAlpaca, 21,200 samples. With completions per prompt: prompts.",
        "패킹 후의 행 수. 예시는 KoAlpaca의 21,200개. 프롬프트당 응답을 정했다면 프롬프트 수.",
    ),
    "schedule.epochs": Text("Epochs", "에폭"),
    "schedule.epochs.help": Text("num_train_epochs; a fraction is allowed.", "num_train_epochs. 소수도 됩니다."),
    "schedule.framework": Text("Counted as", "계산 방식"),
    "schedule.framework.help": Text(
        "The version whose rounding, warmup rule and log are followed.",
        "반올림, 워밍업 규칙, 로그를 따를 버전.",
    ),
    "schedule.framework.scenario": Text("the scenario's: {name}", "시나리오의 버전: {name}"),
    "schedule.more": Text(
        "max_steps, drop_last, accelerate, completions, packing", "max_steps, drop_last, accelerate, 응답 수, 패킹"
    ),
    "schedule.max_steps": Text("max_steps", "max_steps"),
    "schedule.max_steps.help": Text("Above 0 it overrides the epochs.", "0보다 크면 에폭 대신 쓰입니다."),
    "schedule.drop": Text("Drop the last batch", "마지막 배치 버리기"),
    "schedule.drop.help": Text("dataloader_drop_last", "dataloader_drop_last"),
    "schedule.prepared": Text("Processes of a prepared scheduler", "prepare된 스케줄러의 프로세스 수"),
    "schedule.prepared.help": Text(
        "How many processes your own accelerate loop has, if it prepares the scheduler. 1 for Trainer.",
        "직접 만든 accelerate 루프가 스케줄러를 prepare한다면 그 프로세스 수. Trainer는 1.",
    ),
    "schedule.generations": Text("Completions per prompt (GRPO, RLOO)", "프롬프트당 응답 수 (GRPO, RLOO)"),
    "schedule.generations.help": Text(
        "Above 0 the batch counts completions, as in TRL.", "0보다 크면 TRL처럼 배치가 응답을 셉니다."
    ),
    "schedule.lengths": Text("Token lengths, to count packed rows", "패킹된 행을 세기 위한 토큰 길이"),
    "schedule.lengths.help": Text(
        "Numbers separated by anything. They are packed to the scenario's sequence length as TRL does.",
        "아무 문자로나 구분된 숫자들. 시나리오의 시퀀스 길이로 TRL처럼 패킹합니다.",
    ),
    "schedule.lengths.rows": Text(
        "{samples} samples, {tokens} tokens: bfd {bfd} rows, bfd_split {split}, wrapped {wrapped}.",
        "샘플 {samples}개, 토큰 {tokens}개: bfd {bfd}행, bfd_split {split}행, wrapped {wrapped}행.",
    ),
    "schedule.lengths.use": Text("Use the bfd rows", "bfd 행 수 사용"),
    "schedule.lengths.bad": Text("Lengths are whole numbers from 1.", "길이는 1 이상의 정수입니다."),
    "schedule.steps": Text("Steps", "스텝"),
    "schedule.steps.per_epoch": Text("{steps} an epoch", "에폭당 {steps}"),
    "schedule.warmup": Text("Warmup", "워밍업"),
    "schedule.warmup.share": Text("{share} of the run", "전체의 {share}"),
    "schedule.tokens": Text("Tokens", "토큰"),
    "schedule.tokens.sequences": Text("{count} sequences", "시퀀스 {count}개"),
    "schedule.trained": Text("Epochs trained", "학습된 에폭"),
    "schedule.trained.batch": Text("{count} sequences a step", "스텝당 시퀀스 {count}개"),
    "schedule.counting": Text("How the steps are counted", "스텝을 세는 방법"),
    "schedule.table.count": Text("Count", "항목"),
    "schedule.table.formula": Text("Formula", "공식"),
    "schedule.table.numbers": Text("This run", "이번 실행"),
    "schedule.table.value": Text("Value", "값"),
    "schedule.symbols": Text(
        "N samples, b per-device batch, R data-parallel ranks, ga accumulation, E epochs, B batches, L batches per rank, "
        "U steps per epoch, T steps, W warmup steps.",
        "N 샘플, b 장치당 배치, R 데이터 병렬 랭크, ga 누적, E 에폭, B 배치, L 랭크당 배치, U 에폭당 스텝, T 스텝, W 워밍업 스텝.",
    ),
    "schedule.curves": Text("Learning rate", "학습률"),
    "schedule.type": Text("Schedule", "스케줄"),
    "schedule.rate": Text("Learning rate", "학습률"),
    "schedule.warmup.given": Text("Warmup, share or steps", "워밍업, 비율 또는 스텝"),
    "schedule.options": Text("Options", "옵션"),
    "schedule.options.help": Text(
        "lr_scheduler_kwargs as name:value, separated by commas. Takes: {names}",
        "lr_scheduler_kwargs를 이름:값으로, 쉼표로 구분. 가능한 옵션: {names}",
    ),
    "schedule.options.none": Text("none", "없음"),
    "schedule.add": Text("Add a curve", "곡선 추가"),
    "schedule.remove": Text("Remove", "제거"),
    "schedule.not-a-number": Text("'{typed}' was left out: {why}", "'{typed}' 값을 쓰지 않았습니다: {why}"),
    "schedule.axis": Text("Axis", "축"),
    "schedule.axis.steps": Text("steps", "스텝"),
    "schedule.axis.epochs": Text("epochs", "에폭"),
    "schedule.axis.tokens": Text("tokens", "토큰"),
    "schedule.log": Text("Log scale", "로그 눈금"),
    "schedule.chart.alt": Text(
        "Learning rate over {steps} steps for {curves}; the highest is {peak}.",
        "{steps} 스텝 동안의 학습률: {curves}. 최고 {peak}.",
    ),
    "schedule.phases": Text("Phases and formulas", "구간과 공식"),
    "schedule.phase": Text("Phase", "구간"),
    "schedule.phase.steps": Text("Steps", "스텝"),
    "schedule.convention": Text(
        "Optimizer step k trains with the rate at s = k − 1: the first warmup step of transformers has rate 0, and the last "
        "step uses lr(T − 1), not lr(T).",
        "옵티마이저 스텝 k는 s = k − 1의 학습률로 학습합니다. transformers의 첫 워밍업 스텝은 학습률이 0이고, 마지막 스텝은 "
        "lr(T)가 아니라 lr(T − 1)을 씁니다.",
    ),
    "schedule.at": Text("Formula at optimizer step", "이 스텝의 공식"),
    "schedule.first-last": Text("First and last steps", "처음과 마지막 스텝"),
    "schedule.step": Text("Step", "스텝"),
    "schedule.area": Text("Area under the curve", "곡선 아래 넓이"),
    "schedule.area.of": Text(
        "{share} of the peak held for the whole run", "최고 학습률을 끝까지 유지했을 때의 {share}"
    ),
    "schedule.flags": Text("What to type", "입력할 내용"),
    "schedule.csv": Text("Curves as CSV", "곡선을 CSV로"),
    "schedule.source": Text("source", "출처"),
    "schedule.resume": Text("Resuming from a checkpoint", "체크포인트에서 재개"),
    "schedule.resume.about": Text(
        "Curve 1 is the run that was saved. Shape and length come from the new arguments, the base rate and the first step's "
        "rate from the checkpoint.",
        "곡선 1이 저장된 실행입니다. 모양과 길이는 새 인자에서, 기본 학습률과 첫 스텝의 학습률은 체크포인트에서 옵니다.",
    ),
    "schedule.resume.step": Text("Checkpoint at step", "체크포인트 스텝"),
    "schedule.resume.curve": Text("Resumed as curve", "재개할 곡선"),
    "schedule.resume.epochs": Text("Resumed with epochs", "재개할 에폭"),
    "schedule.resume.rates": Text(
        "Step {step} runs at {first}, step {next} at {second}.",
        "스텝 {step}은 {first}, 스텝 {next}는 {second}로 실행됩니다.",
    ),
    "schedule.resume.same": Text(
        "Resumed with the same arguments, nothing changes.", "같은 인자로 재개하면 바뀌는 것이 없습니다."
    ),
    "schedule.guidance": Text("Where to start", "시작값"),
    "schedule.guidance.start": Text(
        "Start at {start} and try {grid} for {method} on {size} parameters. This is our own rule, drawn from the rows below.",
        "{size} 파라미터의 {method} 학습은 {start}에서 시작해 {grid}를 시도하세요. 아래 자료에서 뽑은 자체 규칙입니다.",
    ),
    "schedule.guidance.warmup": Text("{steps} warmup steps for this run", "이 실행의 워밍업 {steps} 스텝"),
    "schedule.guidance.advice": Text("Advice", "조언"),
    "schedule.guidance.range": Text("Range", "범위"),
    "schedule.guidance.known": Text("Known from", "근거"),
    "schedule.guidance.objective": Text("Objective", "목표"),
    "known.read": Text("its own text", "원문"),
    "known.counted": Text("counted", "집계"),
    "known.reported": Text("reported", "간접"),
    "known.ours": Text("our rule", "자체 규칙"),
    "objective.sft": Text("Instruction tuning", "지시 튜닝"),
    "objective.dpo": Text("Preference (DPO)", "선호도 (DPO)"),
    "objective.rl": Text("Reinforcement (GRPO)", "강화 (GRPO)"),
    "topic.learning rate": Text("Learning rate", "학습률"),
    "topic.warmup": Text("Warmup", "워밍업"),
    "topic.schedule": Text("Schedule", "스케줄"),
    "topic.batch": Text("Batch", "배치"),
    "topic.clipping": Text("Clipping", "클리핑"),
    "topic.epochs": Text("Epochs", "에폭"),
    "topic.optimizer": Text("Optimizer", "옵티마이저"),
    "topic.precision": Text("Precision", "정밀도"),
    "topic.epsilon": Text("Epsilon", "엡실론"),
    "topic.pretraining": Text("Pretraining", "사전 학습"),
    "schedule.rescale": Text("If the batch changes", "배치가 바뀌면"),
    "schedule.rescale.from": Text("Rate known for a batch of", "학습률을 아는 배치"),
    "schedule.rescale.noise": Text("Noise batch (0: unknown)", "노이즈 배치 (0: 모름)"),
    "schedule.rescale.to": Text(
        "From {old} to {new} sequences a step, curve 1's {rate} becomes:",
        "스텝당 {old}개에서 {new}개로 바뀌면 곡선 1의 {rate}는:",
    ),
    "schedule.rescale.rule": Text("Rule", "규칙"),
    "schedule.time": Text("Time and cost", "시간과 비용"),
    "schedule.time.hours": Text("Hours", "시간"),
    "schedule.time.range": Text("{low} to {high}", "{low} ~ {high}"),
    "schedule.time.cost": Text("Cost", "비용"),
    "schedule.time.speed": Text("Tokens per second", "초당 토큰"),
    "schedule.time.price": Text("Price per GPU and hour, $", "GPU 시간당 가격, $"),
    "schedule.time.price.seen": Text("Seen: {ranges}", "확인된 가격: {ranges}"),
    "schedule.time.price.none": Text("No dated price is known for this card.", "이 카드의 날짜 있는 가격을 모릅니다."),
    "schedule.time.share": Text("Share of the card's peak, %", "카드 최고 성능 대비, %"),
    "schedule.time.share.help": Text(
        "The published range for this kind of card and method. Unpacked stock runs reach 10 to 15 %.",
        "이런 카드와 방법의 공개된 범위. 패킹하지 않은 기본 실행은 10~15 %에 그칩니다.",
    ),
    "schedule.time.none": Text("No published throughput for this card.", "이 카드의 공개된 처리량이 없습니다."),
    "schedule.time.unpublished": Text(
        "No measurement was published for this kind of card: the range is wide on purpose.",
        "이런 카드의 측정값이 공개되지 않아 범위를 일부러 넓게 두었습니다.",
    ),
    "schedule.time.from": Text("Published measurements behind the range", "범위의 근거가 된 공개 측정값"),
}
