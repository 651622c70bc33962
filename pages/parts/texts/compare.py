"""Words of the Compare page."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "compare.title": Text("Compare", "비교"),
    "compare.alone": Text(
        "Nothing is pinned yet. Pin this scenario, change something, and both stand side by side; up to three travel in the link.",
        "아직 고정한 것이 없습니다. 지금 시나리오를 고정하고 무언가를 바꾸면 나란히 보입니다. 셋까지 링크에 담깁니다.",
    ),
    "compare.this": Text("This plan", "지금 계획"),
    "compare.pinned": Text("Pinned {number}", "고정 {number}"),
    "compare.open": Text("Open", "열기"),
    "compare.open.help": Text("Make {name} this plan", "{name}을(를) 지금 계획으로"),
    "compare.remove": Text("Remove", "빼기"),
    "compare.remove.help": Text("Remove {name}", "{name} 빼기"),
    "compare.lead": Text("{name}: {change}, most of it {component}.", "{name}: {change}, 대부분 {component}."),
    "compare.lead.same": Text("{name}: the same peak to the byte.", "{name}: 최대 메모리가 바이트까지 같습니다."),
    "compare.chart": Text("Peaks side by side", "나란히 본 최대 메모리"),
    "compare.chart.alt": Text("Components of each peak beside its card's capacity: {said}", "각 최대 메모리의 구성과 카드 용량: {said}"),
    "compare.capacity": Text("Capacity of the card", "카드 용량"),
    "compare.settings": Text("Settings that differ", "다른 설정"),
    "compare.setting": Text("Setting", "설정"),
    "compare.settings.none": Text("No setting differs.", "다른 설정이 없습니다."),
    "compare.lines": Text("Line by line, against this plan", "항목별로, 지금 계획과 비교"),
    "compare.line": Text("Line", "항목"),
    "compare.change": Text("Change", "차이"),
    "compare.sum": Text("Peak", "최대"),
    "compare.unanswered": Text("No answer: {why}", "답 없음: {why}"),
    "compare.download": Text("Take the comparison along", "비교 내려받기"),
    "compare.none": Text("–", "–"),
}  # fmt: skip
