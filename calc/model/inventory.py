"""Architectures whose parameters are known to the last element and whose activations are not modelled: a table for each, in `inventories/`.

A table lists every tensor of the class by name pattern, how many there are of it, and its shape, in the fields of config.json. It was
recorded from the class's own constructor run with sizes that remember their formula, and checked against the class under other sizes
(tests/oracle/record_inventory.py). A field that changes the class in a way that the table does not hold may only have its default.

Lines of a table
    name         the name that people know
    class        the transformers class it was recorded from
    default      FIELD VALUE: what the class takes when config.json leaves the field out
    derived      FIELD FORMULA: what it takes from other fields then
    only         FIELD VALUE: what the field must be
    layers       FIELD DEPTH KIND PERIOD OFFSET OTHER: layers of a kind, as config.json lists them, else each PERIOD-th from OFFSET on is
                 KIND and the rest OTHER; FIELD[KIND] in a formula is how many there are
    experts      NUMBER CHOSEN: fields that say how many experts a layer has and how many a token passes
    include      FIELD PREFIX: the parameters of that part, by its own model_type, and where they hang
    tensor       ROLE NAME COUNT SHAPE [?FLAG | !FLAG ...]: there if each flag is true, or false
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import add, floordiv, mul, sub
from pathlib import Path
from typing import Any, cast

from calc.model.config import Config, ConfigError
from calc.model.parameters import Parameter, Role

FOLDER = Path(__file__).parent / "inventories"
_OPERATIONS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A tensor of the class, or as many as `count` says."""

    role: Role
    name: str
    count: str
    shape: tuple[str, ...]
    flags: tuple[tuple[str, bool], ...] = ()
    """What each flag must be for the tensor to exist."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The table of one model type."""

    model_type: str
    name: str
    class_name: str
    defaults: Mapping[str, int | bool]
    derived: Mapping[str, str]
    only: Mapping[str, Any]
    layers: Mapping[str, tuple[str, str, str, str, str]]
    includes: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    experts: tuple[str, str] | None = None

    @property
    def source(self) -> str:
        """What the table was recorded from."""
        return f"transformers 5.24.0, {self.class_name}"


@cache
def inventories() -> frozenset[str]:
    """The model types that have a table."""
    return frozenset(path.stem for path in FOLDER.glob("*.txt"))


@cache
def inventory(model_type: str) -> Inventory:
    """The table of a model type. KeyError if there is none."""
    if model_type not in inventories():
        raise KeyError(model_type)
    found: dict[str, list[list[str]]] = {}
    for line in (FOLDER / f"{model_type}.txt").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        found.setdefault(word, []).append(rest.split(" ") if word in ("tensor", "layers") else rest.split(" ", 1))
    text = lambda word: " ".join(found[word][0])  # noqa: E731
    return Inventory(
        model_type=model_type,
        name=text("name"),
        class_name=text("class"),
        defaults={field: json.loads(value) for field, value in found.get("default", ())},
        derived=dict(cast("list[tuple[str, str]]", found.get("derived", ()))),
        only={field: json.loads(value) for field, value in found.get("only", ())},
        layers={
            field: (depth, kind, period, offset, other)
            for field, depth, kind, period, offset, other in found.get("layers", ())
        },
        includes=tuple((field, prefix) for field, prefix in found.get("include", ())),
        rows=tuple(_row(*fields) for fields in found.get("tensor", ())),
        experts=cast("tuple[str, str]", tuple(found["experts"][0])) if "experts" in found else None,
    )


def _row(role: str, name: str, count: str, shape: str, *flags: str) -> Row:
    return Row(
        cast(Role, role), name, count, tuple(shape.split(",")), tuple([(flag[1:], flag[0] == "?") for flag in flags])
    )


class Sizes:
    """The fields of one config.json as a table's formulas see them."""

    def __init__(self, table: Inventory, config: Config) -> None:
        self.table, self.config = table, config
        self.known: dict[str, int] = {}

    def __getitem__(self, path: str) -> int:
        if path not in self.known:
            self.known[path] = self._read(path)
        return self.known[path]

    def _read(self, path: str) -> int:
        *parts, name = path.split(".")
        config: Config | None = self.config
        for part in parts:
            config = inner(config, part) if config is not None else None
        default = self.table.defaults.get(path)
        if config is None or config.given(name) is None:
            if path in self.table.derived:
                return self.of(self.table.derived[path])
            if default is None:
                raise ConfigError(path, "is missing")
            self.config.notes.append(f"{path} is not given; the class default {default!r} is used")
            return default
        if isinstance(default, bool):
            return config.boolean(name)
        return config.integer(name, low=0)

    def of(self, formula: str) -> int:
        """The value of a formula in fields of config.json, with + - * //, whole numbers and FIELD[KIND]."""
        return self._value(_parsed(formula))

    def kinds(self, path: str) -> Sequence[str]:
        """What each layer is."""
        depth, kind, period, offset, other = self.table.layers[path]
        *parts, name = path.split(".")
        config: Config | None = self.config
        for part in parts:
            config = inner(config, part) if config is not None else None
        if config is not None and config.given(name) is not None:
            return config.texts(name)
        step, first = self.of(period), self.of(offset)
        if step < 1:
            raise ConfigError(period, f"should be at least 1, not {step}")
        return [kind if (i - first) % step == 0 else other for i in range(self.of(depth))]

    def _value(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._value(left), self._value(right)
                if isinstance(op, ast.FloorDiv) and b == 0:
                    raise ConfigError(ast.unparse(right), "should not be 0")
                return _OPERATIONS[type(op)](a, b)
            case ast.Subscript(value=field, slice=ast.Name(id=kind)):
                return self.kinds(ast.unparse(field)).count(kind)
            case ast.Name() | ast.Attribute():
                return self[ast.unparse(node)]
        raise ValueError(f"not a formula: {ast.unparse(node)}")


@cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def inner(config: Config, name: str) -> Config | None:
    """A part of a config.json; None if it is left out. Old files keep the text model's fields at the top."""
    if config.given(name) is not None:
        return config.part(name)
    return config if name == "text_config" and config.given("hidden_size") is not None else None


def tensors(
    table: Inventory, config: Config, included: Callable[[Mapping[str, Any]], tuple[Parameter, ...]]
) -> Iterator[Parameter]:
    """Every parameter of the class that the config describes; `included` counts a part by its own model_type.

    Raises ConfigError for a field that the table does not hold in that value, or that gives a size below zero.
    """
    sizes = Sizes(table, config)
    for path, value in table.only.items():
        _check(config, path, value)
    for row in table.rows:
        if any(bool(sizes[flag]) != wanted for flag, wanted in row.flags):
            continue
        count, shape = sizes.of(row.count), tuple([sizes.of(size) for size in row.shape])
        if count < 0 or any(size < 0 for size in shape):
            raise ConfigError("", f"{row.name} would have {count} tensors of shape {shape}")
        if count:
            yield Parameter(name=row.name, shape=shape, dtype="bf16", role=row.role, count=count)
    for field, prefix in table.includes:
        part = inner(config, field)
        values = {} if part is None else dict(part.values)
        for parameter in included(values):
            yield replace(
                parameter,
                name=parameter.name.replace("model.", f"{prefix}.", 1)
                if parameter.name.startswith("model.")
                else parameter.name,
            )


def _check(config: Config, path: str, value: Any) -> None:
    *parts, name = path.split(".")
    part: Config | None = config
    for step in parts:
        part = inner(part, step) if part is not None else None
    given = None if part is None else part.given(name)
    if given is not None and given != value and not (isinstance(value, list) and list(value) == given):
        raise ConfigError(path, f"is only known as {json.dumps(value)[:60]}, not {json.dumps(given, default=str)[:60]}")
