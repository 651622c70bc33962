"""Architectures whose parameters are known to the last element and whose activations are not modelled: a table for each, in `inventories/`.

A table lists every tensor of the class by name pattern, how many there are of it, and its shape, in the fields of config.json. It was
written from the class's own constructor, run with sizes that remember their formula; tests/oracle/inventories.py compares the tables
with the classes under other sizes. A field that changes the class in a way that the table does not hold may only have its default.

Lines of a table
    name         the name that people know
    class        the transformers class that it describes
    default      FIELD VALUE: what the class takes when config.json leaves the field out
    derived      FIELD FORMULA: what it takes from other fields then
    alias        SPELLING FIELD: another spelling of a field
    only         FIELD VALUE: what the field must be
    layers       FIELD DEPTH RULE: the kind of each layer, as config.json lists them, else by a rule; FIELD[KIND] in a formula is how
                 many layers are of a kind. Rules:
                     first NUMBER KIND OTHER            the first layers are KIND, the rest OTHER
                     every PERIOD OFFSET KIND OTHER     each PERIOD-th from OFFSET on is KIND, the rest OTHER
                     cycle FIRST CYCLE                  kinds that come once (- if none), then kinds that come again and again
                     letters TEXT A=KIND,B=KIND         a field that spells the kinds in letters
    experts      NUMBER CHOSEN: fields that say how many experts a layer has and how many a token passes
    include      FIELD TYPE PREFIX: the parameters of that part, of TYPE unless it says another, and where they hang
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
MOST = 10**9
MOST_LAYERS = 10_000
_NEW_NAMES = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}
"""Kinds of layers that older files call by another name."""
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
    aliases: Mapping[str, tuple[str, ...]]
    only: Mapping[str, Any]
    layers: Mapping[str, tuple[str, str, tuple[str, ...]]]
    """By field: the formula of the depth, the rule, and its arguments."""
    includes: tuple[tuple[str, str, str], ...]
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
    found: dict[str, list[str]] = {}
    for line in (FOLDER / f"{model_type}.txt").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        found.setdefault(word, []).append(rest)
    pairs = {
        word: [_pair(rest) for rest in found.get(word, ())]
        for word in ("default", "derived", "only", "experts", "alias")
    }
    aliases: dict[str, tuple[str, ...]] = {}
    for spelling, field in pairs["alias"]:
        aliases[field] = (*aliases.get(field, ()), spelling)
    layers = {
        field: (depth, rule, tuple(words)) for field, depth, rule, *words in map(str.split, found.get("layers", ()))
    }
    return Inventory(
        model_type=model_type,
        name=found["name"][0],
        class_name=found["class"][0],
        defaults={field: json.loads(value) for field, value in pairs["default"]},
        derived=dict(pairs["derived"]),
        aliases=aliases,
        only={field: json.loads(value) for field, value in pairs["only"]},
        layers=layers,
        includes=tuple([(field, kind, prefix) for field, kind, prefix in map(str.split, found.get("include", ()))]),
        rows=tuple([_row(*rest.split()) for rest in found.get("tensor", ())]),
        experts=pairs["experts"][0] if pairs["experts"] else None,
    )


def _pair(line: str) -> tuple[str, str]:
    first, _, second = line.partition(" ")
    return first, second


def _row(role: str, name: str, count: str, shape: str, *flags: str) -> Row:
    sizes = () if shape == "-" else tuple(shape.split(","))
    return Row(cast(Role, role), name, count, sizes, tuple([(flag[1:], flag[0] == "?") for flag in flags]))


class Sizes:
    """The fields of one config.json as a table's formulas see them."""

    def __init__(self, table: Inventory, config: Config) -> None:
        self.table, self.config = table, config
        self.known: dict[str, int] = {}
        self.listed: dict[str, tuple[str, ...]] = {}

    def __getitem__(self, path: str) -> int:
        if path not in self.known:
            self.known[path] = self._read(path)
        return self.known[path]

    def given(self, path: str) -> tuple[Config, str] | None:
        """Where config.json gives a field, under which of its spellings; None if it does not."""
        for spelling in (path, *self.table.aliases.get(path, ())):
            config, name = _found(self.config, spelling)
            if config is not None and config.given(name) is not None:
                return config, name
        return None

    def _read(self, path: str) -> int:
        found, default = self.given(path), self.table.defaults.get(path)
        if found is None:
            if path in self.table.derived:
                return self.of(self.table.derived[path])
            if default is None:
                raise ConfigError(path, "is missing")
            self.config.notes.append(f"{path} is not given; the class default {default!r} is used")
            return default
        config, name = found
        return config.boolean(name) if isinstance(default, bool) else config.integer(name, low=0, high=MOST)

    def of(self, formula: str) -> int:
        """The value of a formula in fields of config.json, with + - * //, whole numbers and FIELD[KIND]."""
        return self._value(_parsed(formula))

    def kinds(self, path: str) -> tuple[str, ...]:
        """What each layer is."""
        if path not in self.listed:
            found = self.given(path)
            kinds = self._by_rule(path) if found is None else found[0].texts(found[1])
            self.listed[path] = tuple([_NEW_NAMES.get(kind, kind) for kind in kinds])
        return self.listed[path]

    def _by_rule(self, path: str) -> Sequence[str]:
        depth, rule, words = self.table.layers[path]
        if rule == "letters":
            field, meanings = words
            found = self.given(field)
            letters = dict([pair.split("=") for pair in meanings.split(",")])
            if found is None:
                raise ConfigError(path, "is missing")
            spelt = str(found[0].given(found[1]))
            if len(spelt) > MOST_LAYERS or not set(spelt) <= set(letters):
                raise ConfigError(field, f"should be a text of the letters {' '.join(letters)}")
            return [letters[letter] for letter in spelt]
        count = self.of(depth)
        if count > MOST_LAYERS:
            raise ConfigError(depth, f"should be at most {MOST_LAYERS:,}, not {count:,}")
        if rule == "first":
            number, kind, other = words
            return [kind if i < self.of(number) else other for i in range(count)]
        if rule == "every":
            period, offset, kind, other = words
            step, start = self.of(period), self.of(offset)
            if step < 1:
                raise ConfigError(period, f"should be at least 1, not {step}")
            return [kind if i % step == start % step else other for i in range(count)]
        first, cycle = ([] if word == "-" else word.split(",") for word in words)
        return [first[i] if i < len(first) else cycle[(i - len(first)) % len(cycle)] for i in range(count)]

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


def _found(config: Config, path: str) -> tuple[Config | None, str]:
    *parts, name = path.split(".")
    within: Config | None = config
    for part in parts:
        within = inner(within, part) if within is not None else None
    return within, name


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
        found = sizes.given(path)
        if found is not None and (given := found[0].given(found[1])) != value:
            raise ConfigError(
                path, f"is only known as {json.dumps(value)[:60]}, not {json.dumps(given, default=str)[:60]}"
            )
    for row in table.rows:
        if any(bool(sizes[flag]) != wanted for flag, wanted in row.flags):
            continue
        count, shape = sizes.of(row.count), tuple([sizes.of(size) for size in row.shape])
        if count < 0 or any(size < 0 for size in shape):
            raise ConfigError("", f"{row.name} would have {count} tensors of shape {shape}")
        if count:
            yield Parameter(name=row.name, shape=shape, dtype="bf16", role=row.role, count=count)
    for field, kind, prefix in table.includes:
        part = inner(config, field)
        values = {} if part is None else dict(part.values)
        if part is None or part is config or values.get("model_type") is None:
            values["model_type"] = kind
        if "tie_word_embeddings" in table.defaults:  # the whole model's word counts, not its part's
            values["tie_word_embeddings"] = bool(sizes["tie_word_embeddings"])
        for parameter in included(values):
            name = parameter.name
            yield replace(
                parameter, name=name.replace("model.", f"{prefix}.", 1) if name.startswith("model.") else name
            )
