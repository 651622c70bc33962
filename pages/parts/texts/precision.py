"""Words of the Precision page."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "nav.precision": Text("Precision", "정밀도"),
    "precision.title": Text(
        "At {rate}, a step moves {share} of weights stored in bf16",
        "학습률 {rate}에서 한 스텝은 bf16으로 저장된 가중치의 {share}를 움직입니다",
    ),
    "precision.mine.rounded": Text(
        "This plan stores its trained weights in {format}: updates below half the distance to the next number are lost.",
        "이 계획은 학습되는 가중치를 {format}로 저장합니다. 다음 수까지 거리의 절반보다 작은 업데이트는 사라집니다.",
    ),
    "precision.mine.kept": Text(
        "This plan keeps its trained weights in fp32, so small updates are not lost.",
        "이 계획은 학습되는 가중치를 fp32로 유지하므로 작은 업데이트도 사라지지 않습니다.",
    ),
    "precision.inputs": Text("Training numbers", "학습 숫자"),
    "precision.rate": Text("Learning rate", "학습률"),
    "precision.rate.help": Text("Curve 1 of the Schedule page.", "스케줄 페이지의 곡선 1."),
    "precision.sigma": Text("Spread of the weights, σ", "가중치의 퍼짐, σ"),
    "precision.sigma.help": Text(
        "Standard deviation of the weights, taken as normal around 0. 0.02 is the usual initializer_range.",
        "0을 중심으로 정규 분포라고 본 가중치의 표준편차. 0.02가 흔한 initializer_range입니다.",
    ),
    "precision.decay": Text("weight_decay", "weight_decay"),
    "precision.beta2": Text("adam_beta2", "adam_beta2"),
    "precision.epsilon": Text("adam_epsilon", "adam_epsilon"),
    "precision.lost": Text("Updates lost in rounding", "반올림으로 사라지는 업데이트"),
    "precision.share": Text("Moved at the peak rate, {format}", "최고 학습률에서 움직임, {format}"),
    "precision.frozen": Text("Frozen from |w| = {threshold}", "|w| = {threshold}부터 멈춤"),
    "precision.average": Text("On average over curve 1, bf16", "곡선 1 전체 평균, bf16"),
    "precision.average.steps": Text("{steps} steps", "{steps} 스텝"),
    "precision.chart": Text("Share of weights that a step moves", "한 스텝이 움직이는 가중치 비율"),
    "precision.chart.alt": Text(
        "Share of weights moved per step against the learning rate: {share} in bf16 at {rate}.",
        "학습률에 따른 스텝당 움직이는 가중치 비율: {rate}에서 bf16은 {share}.",
    ),
    "precision.example": Text(
        "A weight of 0.02 after 200 steps of {rate} downwards", "0.02인 가중치를 {rate}씩 200번 내렸을 때"
    ),
    "precision.example.store": Text("Stored as", "저장 방식"),
    "precision.example.value": Text("Weight", "가중치"),
    "store.fp32 master": Text("fp32 (exact)", "fp32 (정확)"),
    "store.nearest": Text("bf16, rounded to nearest", "bf16, 가장 가까운 값"),
    "store.stochastic": Text("bf16, stochastic rounding (mean)", "bf16, 확률적 반올림 (평균)"),
    "store.kahan": Text("bf16, Kahan summation", "bf16, 카한 합"),
    "precision.remedies": Text("Remedies", "해결책"),
    "precision.remedy.how": Text("How", "방법"),
    "precision.remedy.bytes": Text("Bytes per parameter", "파라미터당 바이트"),
    "remedy.fp32-master": Text("fp32 weights under autocast", "autocast 아래 fp32 가중치"),
    "remedy.stochastic": Text("Stochastic rounding", "확률적 반올림"),
    "remedy.kahan": Text("Kahan summation", "카한 합"),
    "remedy.lora": Text("Adapters in fp32", "fp32 어댑터"),
    "precision.checks": Text("Three more things that round away", "반올림으로 사라지는 세 가지 더"),
    "precision.decay.lost": Text(
        "Weight decay does nothing to bf16 weights: lr · wd = {product} is below {none}, half the finest step.",
        "weight decay가 bf16 가중치에 아무 효과가 없습니다: lr · wd = {product}가 가장 작은 간격의 절반 {none}보다 작습니다.",
    ),
    "precision.decay.some": Text(
        "Weight decay moves some bf16 weights: lr · wd = {product} lies between {none} and {every}.",
        "weight decay가 일부 bf16 가중치만 움직입니다: lr · wd = {product}, {none}과 {every} 사이.",
    ),
    "precision.decay.kept": Text(
        "Weight decay moves bf16 weights: lr · wd = {product} is above {every}.",
        "weight decay가 bf16 가중치를 움직입니다: lr · wd = {product}가 {every}보다 큽니다.",
    ),
    "precision.decay.off": Text("There is no weight decay.", "weight decay가 없습니다."),
    "precision.beta2.stuck": Text(
        "beta2 = {beta2} is 1 in bf16: a second moment kept in bf16 never falls. Keep it in fp32, or go below {limit}.",
        "beta2 = {beta2}는 bf16에서 1이 됩니다. bf16으로 저장한 2차 모멘트는 절대 줄지 않습니다. fp32로 두거나 {limit} 아래로 낮추세요.",
    ),
    "precision.beta2.kept": Text(
        "beta2 = {beta2} decays also in bf16 (below {limit}).",
        "beta2 = {beta2}는 bf16에서도 감소합니다 ({limit} 아래).",
    ),
    "precision.epsilon.lost": Text(
        "epsilon = {epsilon} is 0 in fp16: a gradient of 0 divides by it. Use 1e-7 or more where states are fp16.",
        "epsilon = {epsilon}은 fp16에서 0입니다. 기울기가 0이면 0으로 나눕니다. fp16 상태라면 1e-7 이상을 쓰세요.",
    ),
    "precision.epsilon.kept": Text(
        "epsilon = {epsilon} is kept in fp16 as {kept}.", "epsilon = {epsilon}은 fp16에서 {kept}로 남습니다."
    ),
    "precision.formats": Text("Number formats", "숫자 형식"),
    "precision.format": Text("Format", "형식"),
    "precision.bits": Text("Bits", "비트"),
    "precision.largest": Text("Largest", "최댓값"),
    "precision.smallest-normal": Text("Smallest normal", "최소 정규값"),
    "precision.smallest": Text("Smallest above 0", "0보다 큰 최솟값"),
    "precision.eps": Text("Epsilon", "엡실론"),
    "precision.model": Text("This model's weights", "이 모델의 가중치"),
    "precision.note": Text("Note", "비고"),
    "precision.nf4": Text(
        "nf4 keeps 16 values of a normal distribution and a scale per 64 weights; int8 keeps 255 and a scale per row.",
        "nf4는 정규 분포의 16개 값과 가중치 64개당 스케일을, int8은 255개 값과 행당 스케일을 둡니다.",
    ),
    "precision.plans": Text("This plan in each precision", "정밀도별 이 계획"),
    "precision.plans.peak": Text("Peak", "최대"),
    "precision.plans.refused": Text("cannot run: {why}", "실행 불가: {why}"),
    "precision.scaling": Text("fp16: overflow and loss scaling", "fp16: 오버플로와 손실 스케일링"),
    "precision.scaling.about": Text(
        "fp16 ends at 65,504: from 65,520 a value is infinity. Gradients below {lost} are lost to 0, so the loss is multiplied "
        "first. bf16 has fp32's range and needs none of this.",
        "fp16은 65,504가 끝이고 65,520부터는 무한대입니다. {lost}보다 작은 기울기는 0이 되므로 손실을 먼저 곱합니다. "
        "bf16은 fp32의 범위를 가져 필요 없습니다.",
    ),
    "precision.scaling.lag": Text(
        "A step whose gradients overflow is skipped, and Trainer's schedule waits with it: the curve lags by the skipped steps "
        "and ends above its planned value.",
        "기울기가 넘친 스텝은 건너뛰고 Trainer의 스케줄도 함께 기다립니다. 곡선은 건너뛴 만큼 늦어져 계획보다 높은 값에서 끝납니다.",
    ),
    "precision.scaler": Text("Loss scaler", "손실 스케일러"),
    "precision.scaler.start": Text("Start", "시작값"),
    "precision.scaler.growth": Text("Doubles after", "두 배가 되는 스텝"),
    "precision.scaler.overflows": Text("Halves after overflows", "절반이 되는 오버플로 횟수"),
    "precision.scaler.kept": Text("Smallest gradient kept", "남는 최소 기울기"),
    "precision.cards": Text("Which cards do it in hardware", "하드웨어가 지원하는 카드"),
    "precision.card": Text("Card", "카드"),
    "precision.card.capability": Text("Architecture", "아키텍처"),
    "precision.yes": Text("yes", "예"),
    "precision.no": Text("no", "아니요"),
    "precision.unknown": Text("not looked up", "확인 안 됨"),
    "precision.card.emulated": Text(
        "{gpu} has no bf16 unit. torch reports bf16 as supported and Trainer accepts it, but it is emulated and slow.",
        "{gpu}에는 bf16 장치가 없습니다. torch는 지원한다고 하고 Trainer도 받아들이지만 에뮬레이션이라 느립니다.",
    ),
    "precision.card.native": Text("{gpu} does bf16 in hardware.", "{gpu}는 bf16을 하드웨어로 처리합니다."),
    "precision.card.native.fp8": Text(
        "{gpu} does bf16 and fp8 in hardware.", "{gpu}는 bf16과 fp8을 하드웨어로 처리합니다."
    ),
}
