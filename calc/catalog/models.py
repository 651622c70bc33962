"""The embedded model catalogue: configurations with their verified totals, so that everything works offline.

The rows lie in assets/catalogue.json (built from tests/golden/configs.jsonl.gz) and are read at the first question,
not at import. Their order is the order in which equals are shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from calc.catalog.table import UnknownName

Check = Literal["verified", "differs", "counted", "not counted"]
Kind = Literal["original", "inline-copy", "reconstructed"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the catalogue: its configuration and how many parameters it has."""

    id: str
    """On the Hub: organisation/name."""
    total: int | None
    """Parameters, tied tensors once, as transformers 5.24 counts them; None where nobody could count them."""
    hub_total: int | None
    """Elements stored on the Hub, which can hold a tied head twice, buffers, or packed weights."""
    check: Check
    """verified: equal to the Hub's total or to it less what `check_note` names; differs: for the reason there; counted:
    no total to hold it against."""
    check_note: str
    kind: Kind
    """original: the config.json as found; inline-copy: copied into source code; reconstructed: its sizes only."""
    source: str
    config: dict[str, Any] = field(repr=False, compare=False)
    """config.json, less what no byte depends on."""

    @property
    def organisation(self) -> str:
        """Who published it."""
        return self.id.partition("/")[0]

    @property
    def label(self) -> str:
        """Its name without the organisation."""
        return self.id.partition("/")[2]

    @property
    def model_type(self) -> str:
        """The configuration's `model_type`; empty where the file has none."""
        return str(self.config.get("model_type", ""))


class Catalogue(Mapping[str, Model]):
    """Models by id. Looking up what is not there is an error that names the nearest."""

    def __getitem__(self, name: str) -> Model:
        models = _models()
        try:
            return models[name]
        except KeyError:
            raise UnknownName("model", name, list(models)) from None

    def __contains__(self, name: object) -> bool:
        return name in _models()

    def __iter__(self) -> Iterator[str]:
        return iter(_models())

    def __len__(self) -> int:
        return len(_models())


MODELS = Catalogue()


def search(text: str, limit: int = 10) -> list[Model]:
    """The models that a visitor may mean while typing, best first; the first of the catalogue for no text at all.

    Every word typed must occur in the id. Exact names come first, then names and ids that begin with what was typed,
    then ids whose words begin with the words typed, in a row before scattered, then ids that hold them anywhere; equals
    in the catalogue's order.
    """
    typed = text.strip().casefold()[:_LONGEST]
    words = _WORD.findall(typed)
    if typed and not words:
        return []
    found = []
    for place, entry in enumerate(_index()):
        quality = entry.quality(typed, words)
        if quality is not None:
            found.append((quality, place, entry.model))
    return [model for _, _, model in sorted(found, key=lambda hit: hit[:2])[:limit]]


# Letters, or a number with its unit, so that "llama3 8b" and "Llama-3.1-8B" are cut alike: llama, 3.1, 8b.
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)*[^\W\d_]*")
_LONGEST = 200  # twice what the Hub allows an id to be


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a search compares, made once."""

    model: Model
    id: str
    label: str
    words: str
    """Its words with a space before each."""

    def quality(self, typed: str, words: list[str]) -> int | None:
        """How well the entry meets what was typed: 0 best, None not at all."""
        if typed in (self.id, self.label):
            return 0
        if self.label.startswith(typed):
            return 1
        if self.id.startswith(typed):
            return 2
        if " ".join(["", *words]) in self.words:
            return 3
        if all(f" {word}" in self.words for word in words):
            return 4
        return 5 if all(word in self.id for word in words) else None


_ASSET = Path(__file__).parents[2] / "assets" / "catalogue.json"


@cache
def _models() -> dict[str, Model]:
    text = _ASSET.read_text(encoding="utf-8")
    return {row["id"]: Model(**row) for row in json.loads(text)}


@cache
def _index() -> tuple[_Entry, ...]:
    entries = []
    for model in _models().values():
        name = model.id.casefold()
        entries.append(_Entry(model, name, model.label.casefold(), " ".join(["", *_WORD.findall(name)])))
    return tuple(entries)
