"""Schedule traps: the English is the trap's own row, its Korean is here."""

from __future__ import annotations

from typing import Any

from calc.schedule.resume import RESUME_TRAPS
from calc.schedule.traps import TRAPS, TrapKind
from pages.parts.texts.row import Text

# Id -> what happens, what to do.
KO: dict[str, tuple[str, str]] = {
    "crash": (
        "스케줄러 스텝 {step}에서 실행이 중단됩니다: {reason}.",
        "워밍업이나 스케줄을 바꾸세요.",
    ),
    "warmup_ignored": (
        "{kind}는 워밍업을 무시합니다. 첫 스텝부터 전체 학습률을 씁니다.",
        "constant_with_warmup처럼 워밍업하는 스케줄을 고르거나 워밍업을 빼세요.",
    ),
    "warmup_past_end": (
        "워밍업 {W} 스텝이 실행 {T} 스텝보다 짧지 않습니다. 학습률이 {rate}를 넘지 못합니다.",
        "워밍업을 줄이세요.",
    ),
    "only_step_is_zero": (
        "유일한 스텝의 학습률이 0이라 아무것도 학습되지 않습니다. 한 스텝의 워밍업 비율은 언제나 한 스텝입니다.",
        "워밍업을 빼세요.",
    ),
    "first_step_is_zero": (
        "{T} 스텝 중 처음 {zeros} 스텝은 학습률 0이라 아무것도 움직이지 않습니다 (전체의 {share}).",
        "의도된 동작이며 아주 짧은 실행에서만 문제가 됩니다.",
    ),
    "schedule_free_fraction": (
        "Trainer는 warmup_steps = {given}을 그대로 옵티마이저에 넘깁니다. 첫 스텝이 {times}배인 {rate}로 실행됩니다.",
        "1 이상의 정수로 워밍업 스텝을 주세요.",
    ),
    "num_cycles_are_waves": (
        "여기서 num_cycles는 파동 수입니다. {cycles}이면 다시 올라와 마지막 스텝이 {last}로 실행됩니다.",
        "0.5가 한 번의 하강입니다. 재시작은 cosine_with_restarts를 쓰세요.",
    ),
    "no_restart": (
        "기본값 num_cycles = 1이면 cosine_with_restarts는 재시작하지 않습니다. 보통 코사인입니다.",
        "num_cycles를 하강 횟수로 정하세요.",
    ),
    "unfinished_cycle": (
        "{cycles}번의 하강은 마지막을 끝내지 못해 높은 학습률로 끝납니다.",
        "정수를 쓰세요.",
    ),
    "prepared": (
        "accelerate는 prepare된 스케줄을 옵티마이저 스텝마다 {n}번 진행합니다. {T} 스텝 중 {end} 스텝에서 끝납니다.",
        "prepare하지 않거나 워밍업 {W_n}, 전체 {T_n} 스텝으로 만드세요. Trainer는 prepare하지 않습니다.",
    ),
    "flat_inverse_sqrt": (
        "워밍업이 없으면 시간 척도가 10,000 스텝입니다. {T} 스텝 뒤에도 학습률이 최고의 {last}입니다.",
        "워밍업 스텝이나 timescale을 주세요.",
    ),
    "greedy_floor": (
        "GreedyLR의 min_lr {floor}가 학습률 {rate}보다 낮지 않아 학습률을 올리기만 합니다.",
        "lr_scheduler_kwargs에 학습률보다 낮은 min_lr을 주세요.",
    ),
    "needs_evaluation": (
        "{kind}는 평가 뒤에 학습률을 바꾸며 eval_strategy가 없으면 ValueError가 납니다.",
        "eval_strategy를, 손실이 아니면 metric_for_best_model도 정하세요.",
    ),
    "epochs_cut": (
        "{framework}은 배치 {L}개를 누적 {ga}로 내림합니다. {asked} 에폭 중 {trained} 에폭에서 멈춥니다.",
        "transformers 4.52 이상을 쓰거나 max_steps를 정하세요.",
    ),
    "logs_next_rate": (
        "{framework}은 방금 쓴 학습률이 아니라 다음 스텝의 학습률을 기록합니다. 학습 자체는 같습니다.",
        "로그를 한 스텝 뒤로 읽으세요.",
    ),
    "both_warmups": (
        "warmup_steps와 warmup_ratio를 모두 주면 {framework}은 {formula}를 택합니다: {W} 스텝.",
        "하나만 주세요.",
    ),
    "ratio_of_one": (
        "여기서 warmup_ratio = {ratio}는 전체가 아니라 {W} 스텝으로 읽힙니다.",
        "1보다 작은 비율을 주세요.",
    ),
    "stable_negative": (
        "워밍업 {W}와 감쇠 {D}의 합이 실행 {T} 스텝보다 깁니다. 안정 구간이 없고 감쇠가 중간에서 시작됩니다.",
        "둘 중 하나를 줄이세요.",
    ),
    "deepspeed_log_warmup": (
        "DeepSpeed는 따로 정하지 않으면 로그로 워밍업합니다. W = {W} 스텝 중 약 √W 스텝에서 최고의 절반에 이릅니다.",
        "warmup_type을 linear로 정하세요.",
    ),
    "deepspeed_peak": (
        "WarmupDecayLR의 최고 학습률은 옵티마이저의 {rate}가 아니라 warmup_max_lr이며, 빼면 0.001입니다.",
        "warmup_max_lr을 쓰거나 Hugging Face에서는 auto로 두세요.",
    ),
    "timm_drop": (
        "워밍업 동안 코사인이 이미 진행되어, 워밍업이 끝날 때 학습률이 {peak}에서 {after}로 떨어집니다.",
        "warmup_prefix를 켜고 t_initial을 워밍업 뒤의 스텝 수로 정하세요.",
    ),
    "last_step_is_zero": (
        "{T} 스텝 중 마지막 스텝의 학습률이 0이라 아무것도 움직이지 않습니다.",
        "그 스텝도 필요하면 하한(min_lr)을 정하세요.",
    ),
    "rate_ignored": (
        "Adafactor의 relative step은 학습률을 스스로 정합니다. learning_rate는 효과가 없습니다.",
        "쓰려면 relative_step을 끄세요. Trainer의 --optim adafactor가 그렇게 합니다.",
    ),
    "completions_counted": (
        "배치 {b}는 프롬프트가 아니라 응답을 셉니다. 프롬프트마다 {G}개입니다.",
        "프롬프트로 생각할 때는 num_generations를 곱하세요.",
    ),
    "options_dropped": (
        "이 스케줄은 옵션을 말없이 버립니다: {names}는 효과가 없습니다.",
        "빼거나 그 옵션이 있는 스케줄을 고르세요.",
    ),
    "momentum_moves": (
        "OneCycleLR은 beta1도 0.95에서 0.85로 내렸다가 되돌립니다.",
        "그대로 두려면 cycle_momentum=False로 정하세요.",
    ),
    "rises_past_end": (
        "스텝 {T} 뒤로 이 곡선은 다시 올라갑니다. 계획보다 긴 실행은 커지는 학습률로 학습합니다.",
        "실제로 할 스텝 수를 계획하세요. Trainer는 그렇게 합니다.",
    ),
    "resumed_rate_kept": (
        "새 학습률 {new}는 무시됩니다. 기본 학습률과 첫 학습률은 체크포인트({saved})에서 옵니다.",
        "저장된 가중치로 새 실행을 시작하거나 스케줄러 상태를 고치세요.",
    ),
    "resumed_jump": (
        "스텝 {step}은 저장된 {first}로 실행되고, 그다음부터 새 계획의 곡선을 따라 {second}가 됩니다.",
        "같은 스케줄, 에폭, 워밍업으로 재개하거나 도약을 감안하세요.",
    ),
    "resumed_after_the_end": (
        "끝난 실행을 늘리면 스텝 {step}은 {first}로 실행되고, 이어서 학습률이 {second}로 돌아갑니다.",
        "처음부터 전체 길이를 계획하거나 가중치로 새 실행을 시작하세요.",
    ),
    "resumed_at_the_end": (
        "체크포인트 스텝 {checkpoint}가 새 끝 {T}보다 앞서지 않아 아무것도 학습되지 않습니다.",
        "num_train_epochs나 max_steps를 늘리세요.",
    ),
}

_ROWS: tuple[TrapKind[Any], ...] = (*TRAPS.values(), *RESUME_TRAPS.values())
TEXTS = {f"trap.{row.id}": Text(row.message, KO[row.id][0]) for row in _ROWS} | {
    f"trap.{row.id}.remedy": Text(row.remedy, KO[row.id][1]) for row in _ROWS
}
