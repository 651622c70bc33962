"""What calc says, in Korean: its sentences are English wherever they are read by machines, and put into Korean for a reader here.

A row is an English sentence with {} where a value stands, and the same in Korean. What no row has stays English.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from pages.parts.texts.calc_says import answer, hub, model, optimizers, plan, schedule, typed, visit

AREAS = (answer, hub, model, optimizers, plan, schedule, typed, visit)
LONGEST = 1000
"""Characters; nothing that calc says is longer."""
_GAP = re.compile(r"\{(\w*)\}")


@lru_cache(maxsize=2048)
def korean(text: str) -> str:
    """A sentence of calc, or several, in Korean; values that are sentences themselves too."""
    known = _exact().get(text)
    if known is not None or len(text) > LONGEST:
        return text if known is None else known
    for pattern, target in _patterns():
        if found := pattern.fullmatch(text):
            values = [korean(value) for value in found.groups()]
            return target.format(*values, **dict(zip(pattern.groupindex, values, strict=False)))
    parts = re.split(r"(?<=\.) (?=\S)", text)
    if len(parts) > 1:
        return " ".join([korean(part) for part in parts])
    if text.endswith("."):
        bare = text.removesuffix(".")
        said = korean(bare)
        return text if said == bare else f"{said}."
    return text


def _gathered() -> dict[str, str]:
    return {english: words for area in AREAS for english, words in area.SENTENCES.items()}


@cache
def _exact() -> dict[str, str]:
    return {english: words for english, words in _gathered().items() if not _GAP.search(english)}


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Those with values in them, the ones that say most first."""
    rows = [(english, words) for english, words in _gathered().items() if _GAP.search(english)]
    rows.sort(key=lambda row: -len(_GAP.sub("", row[0])))
    return tuple([(pattern(english), words) for english, words in rows])


def pattern(english: str) -> re.Pattern[str]:
    """What matches a sentence with any values in it; a name that comes again stands for the same value."""
    parts, seen = [], set[str]()
    at = 0
    for gap in _GAP.finditer(english):
        parts.append(re.escape(english[at : gap.start()]))
        name = gap[1]
        parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>.+?)" if name else "(.+?)")
        seen.add(name) if name else None
        at = gap.end()
    return re.compile("".join([*parts, re.escape(english[at:])]), re.DOTALL)
