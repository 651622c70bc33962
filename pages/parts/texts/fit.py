"""Words of the Fit page."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "fit.peak": Text("Allocated at the peak", "최대 할당량"),
    "fit.peak.help": Text(
        "What torch.cuda.max_memory_allocated() reports on the fullest GPU.",
        "가장 찬 GPU에서 torch.cuda.max_memory_allocated()가 보고하는 값.",
    ),
    "fit.device": Text("On the card", "카드에서"),
    "fit.device.help": Text(
        "What nvidia-smi shows: tensors, what the caching allocator holds beyond them, and the CUDA context.",
        "nvidia-smi가 보여 주는 값: 텐서, 캐싱 할당자가 더 갖고 있는 것, CUDA 컨텍스트.",
    ),
    "fit.capacity.help": Text(
        "What CUDA can hand out on this card; the number in its name is larger.",
        "이 카드에서 CUDA가 내줄 수 있는 양. 이름의 숫자보다 작습니다.",
    ),
    "fit.spare": Text("{size} to spare", "{size} 여유"),
    "fit.short": Text("{size} short", "{size} 부족"),
    "fit.headroom": Text("Headroom", "여유"),
    "fit.trainable": Text("Trainable", "학습 파라미터"),
    "fit.trainable.of": Text("of {total} parameters", "전체 {total}개 중"),
    "fit.load.alt": Text(
        "{allocated} allocated at the peak, about {device} on the card, of {capacity}; the largest part is {largest}.",
        "최대 할당량 {allocated}, 카드에서 약 {device}, 용량 {capacity}. 가장 큰 부분은 {largest}.",
    ),
    "fit.load.range": Text("nvidia-smi, low to high", "nvidia-smi, 최저에서 최고"),
    "fit.timeline": Text("One training step", "학습 한 스텝"),
    "fit.timeline.alt": Text(
        "Allocated memory at each instant of the step; {instant} is the highest with {allocated}.",
        "스텝의 각 순간에 할당된 메모리. 가장 높은 순간은 {instant}, {allocated}.",
    ),
    "fit.timeline.operation": Text(
        "Allocated memory in GiB at the highest point of each instant. {instant} peaks at: {operation}.",
        "각 순간의 가장 높은 지점에 할당된 메모리 (GiB). {instant}의 최고점: {operation}.",
    ),
    "fit.lines": Text("Every line of the peak", "최대 순간의 모든 항목"),
    "fit.lines.hint": Text(
        "Open a line for its formula, this run's numbers and the source.",
        "항목을 열면 공식, 이번 실행의 숫자, 출처가 보입니다.",
    ),
    "fit.lines.total": Text("Sum", "합계"),
    "fit.component": Text("Component", "구성 요소"),
    "fit.line": Text("Line", "항목"),
    "fit.size": Text("Size", "크기"),
    "fit.formula": Text("Formula", "공식"),
    "fit.numbers": Text("This run", "이번 실행"),
    "fit.note": Text("Note", "참고"),
    "fit.wait": Text("Working out the formula…", "공식을 계산하는 중…"),
    "fit.source": Text("Source", "출처"),
    "fit.host": Text(
        "Host memory: {training} in training, {load} while loading.",
        "호스트 메모리: 학습 중 {training}, 로드 중 {load}.",
    ),
}
