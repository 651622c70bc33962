"""Words of the Optimizers page."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "optimizers.title": Text("What each optimizer costs on this plan", "이 계획에서 옵티마이저별 비용"),
    "optimizers.summary": Text(
        "{fit} of {all} fit this plan on one {gpu}. Smallest peak: {least} with {peak}.",
        "{all}개 가운데 {fit}개가 {gpu} 하나에 들어갑니다. 가장 작은 최대 메모리: {least}, {peak}.",
    ),
    "optimizers.none": Text(
        "None of the {all} can run this plan.", "{all}개 가운데 이 계획을 실행할 수 있는 것이 없습니다."
    ),
    "optimizers.fitting": Text("Only what fits", "들어가는 것만"),
    "optimizers.hint": Text("Choose a row for its state tensors.", "행을 고르면 상태 텐서가 보입니다."),
    "optimizers.alt": Text(
        "All optimizers with peak, states, temporaries and what each costs in quality or speed.",
        "모든 옵티마이저의 최대 메모리, 상태, 임시 버퍼, 품질과 속도의 대가.",
    ),
    "optimizers.name": Text("Optimizer", "옵티마이저"),
    "optimizers.verdict": Text("Verdict", "판정"),
    "optimizers.peak": Text("Peak", "최대"),
    "optimizers.states": Text("States", "상태"),
    "optimizers.host": Text("Off the card", "카드 밖"),
    "optimizers.temporaries": Text("Step temporaries", "스텝 임시 버퍼"),
    "optimizers.gradients": Text("Gradients", "그래디언트"),
    "optimizers.cost": Text("What it costs", "대가"),
    "optimizers.library": Text("Needs", "필요한 것"),
    "optimizers.use": Text("Use {name}", "{name} 사용"),
    "optimizers.used": Text("The plan uses this one.", "지금 계획이 쓰는 옵티마이저입니다."),
    "optimizers.by-tensor": Text("Bytes by state tensor", "상태 텐서별 바이트"),
    "optimizers.no-state": Text("It keeps no state on the card.", "카드에 상태를 두지 않습니다."),
    "optimizers.formula": Text("Per parameter tensor", "파라미터 텐서당"),
    "optimizers.tree": Text("state_dict()", "state_dict()"),
    "optimizers.tree.hint": Text(
        "n elements, b bytes each, r rows, c columns, rank k. Repeated layers are one branch.",
        "원소 n개, 원소당 b바이트, 행 r, 열 c, 랭크 k. 반복되는 층은 한 가지로 묶었습니다.",
    ),
}
