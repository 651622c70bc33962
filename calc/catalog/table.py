"""A catalogue is a table of rows; a row carries its source. Looking up what is not there is an error that lists what is."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar


class Row(Protocol):
    """Anything with a stable, language-neutral id."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Row)


class UnknownName(ValueError):
    """A name that a table does not have, with the nearest names that it has."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        shown = name if len(name) <= 60 else name[:57] + "..."
        spelt = {word.casefold(): word for word in known}  # a name in the wrong case is as near as a name can be
        near = [spelt[word] for word in difflib.get_close_matches(name[:60].casefold(), spelt, n=4, cutoff=0.5)]
        hint = (
            f"did you mean {', '.join(near)}?"
            if near
            else f"known: {', '.join(known[:12])}{', ...' if len(known) > 12 else ''}"
        )
        super().__init__(f"unknown {kind} '{shown}'; {hint}")
        self.kind, self.name, self.near = kind, name, near


class Table(Mapping[str, R]):
    """Rows by id, in the order written."""

    def __init__(self, kind: str, *rows: R) -> None:
        self.kind = kind
        self._rows: dict[str, R] = {}
        for row in rows:
            if row.id in self._rows:
                raise ValueError(f"two rows of the {kind} table have the id '{row.id}'")
            self._rows[row.id] = row

    def __getitem__(self, name: str) -> R:
        try:
            return self._rows[name]
        except KeyError:
            raise UnknownName(self.kind, name, list(self._rows)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
