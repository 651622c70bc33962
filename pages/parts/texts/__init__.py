"""Every word that a visitor reads, English beside Korean: one file per area, one row per text.

A row's key is stable and never shown. What a Scenario field means in English is the field's own docstring; only its
label and the Korean help are here. Numbers and units are written the same in both languages.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from calc.scenario import FullFineTuning, Hardware, Images, Lora, LoraAdapter, QLora, Quantization, Scenario, Sharding
from pages.parts.texts import (
    advice,
    answer,
    batch,
    compare,
    fields,
    fit,
    frame,
    levers,
    optimizers,
    options,
    parameters,
    precision,
    schedule,
    traps,
)
from pages.parts.texts.row import FieldText, Text

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

AREAS = (
    answer, batch, compare, fit, frame, levers, options, optimizers, parameters, schedule, traps, advice, precision,
)  # fmt: skip
FIELDS: dict[str, FieldText] = fields.FIELDS


def _gathered() -> dict[str, Text]:
    texts: dict[str, Text] = {}
    for area in AREAS:
        if twice := texts.keys() & area.TEXTS.keys():
            raise ValueError(f"{area.__name__} writes again: {', '.join(sorted(twice))}")
        texts |= area.TEXTS
    return texts


TEXTS = _gathered()

# Whose docstring explains each field: the class that a path's parent names.
_PARTS: dict[str, type[BaseModel]] = {
    "": Scenario,
    "plan": QLora,
    "plan.lora": LoraAdapter,
    "plan.quantization": Quantization,
    "plan.sharding": Sharding,
    "plan.images": Images,
    "hardware": Hardware,
}
_METHODS = {"full": FullFineTuning, "lora": Lora, "qlora": QLora}


def text(key: str, language: Language, **values: object) -> str:
    """The text of this key, with its values filled in. A key that no area has is an error."""
    return str(getattr(TEXTS[key], language)).format(**values)


def said(sentence: str, language: Language) -> str:
    """What calc says: its sentences are English, and put into Korean for a reader."""
    if language == "en":
        return sentence
    from pages.parts.texts.calc_says import korean  # when asked: most readers never do

    return korean(sentence)


def label(path: str, language: Language) -> str:
    """What a Scenario field is called on a page."""
    return str(getattr(FIELDS[path], language))


def help_of(path: str, language: Language) -> str:
    """What a Scenario field means: its docstring, or the Korean of it."""
    if language == "ko":
        return FIELDS[path].ko_help
    if path == "plan.method":
        return " ".join(
            f"**{text(f'option.method.{name}', language)}**: {kind.__doc__}" for name, kind in _METHODS.items()
        )
    part, _, name = path.rpartition(".")
    return str(_PARTS[part].model_fields[name].description)


def bounds(path: str) -> tuple[float | None, float | None]:
    """The least and the greatest value of a field, None where it has none; an excluded bound is met closely."""
    part, _, name = path.rpartition(".")
    low = high = None
    for limit in _PARTS[part].model_fields[name].metadata:
        low = getattr(limit, "ge", low)
        high = getattr(limit, "le", high)
        if (above := getattr(limit, "gt", None)) is not None:
            low = above + 0.01
        if (below := getattr(limit, "lt", None)) is not None:
            high = below - 0.01
    return low, high
