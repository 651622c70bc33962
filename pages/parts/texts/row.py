"""The shape of a text."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """One text in each language; `{name}` is filled in where it is shown."""

    en: str
    ko: str


class FieldText(NamedTuple):
    """The label of a Scenario field, and its help in Korean (the English help is the field's docstring)."""

    en: str
    ko: str
    ko_help: str
