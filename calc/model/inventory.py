"""Architectures whose parameters are known to the last element and whose activations are not modelled: a table for each, in `inventories/`.

A table lists every tensor of the class by name pattern, how many there are of it, and its shape, in the fields of config.json. It was
written from the class's own constructor, run with sizes that remember their formula; tests/oracle/record_inventories.py compares the tables
with the classes under other sizes. A field that changes the class in a way that the table does not hold may only have its default.

Lines of a table
    name         the name that people know
    class        the class that it describes
    source       where the class is, if not in transformers
    default      FIELD VALUE: what the class takes when config.json leaves the field out
    derived      FIELD FORMULA: what it takes from other fields then
    absent       PART VALUES: what the class takes for a part that config.json leaves out altogether, where that is not its defaults
    alias        SPELLING FIELD: another spelling of a field
    only         FIELD VALUE: what the field must be
    layers       FIELD DEPTH RULE: the kind of each layer, as config.json lists them, else by a rule; FIELD[KIND] in a formula is how
                 many layers are of a kind, FIELD[number] how many numbers a field lists. Rules:
                     first NUMBER KIND OTHER            the first layers are KIND, the rest OTHER
                     every PERIOD OFFSET KIND OTHER [START]
                                                        each PERIOD-th from OFFSET on is KIND, and those before START; the rest
                                                        are OTHER
                     cycle FIRST CYCLE [LAST]           kinds that come once (- if none), then kinds that come again and again; the
                                                        last layer is LAST
                     of FIELD                           the first DEPTH layers of another list
                     letters FIELD A=KIND,B=KIND        a field that spells the kinds in letters or numbers
                 the first of several rules whose FIELD is given holds
    experts      NUMBER CHOSEN: fields that say how many experts a layer has and how many a token passes
    fp32         PATTERN: parameters, by a regular expression in their names, that stay fp32 in a model loaded in 16 bits
    fp32-of-fp16 PATTERN: the same in a model loaded in fp16 only
    include      FIELD TYPE PREFIX: the parameters of that part, of TYPE unless it says another, and where they hang
    tensor       ROLE NAME COUNT SHAPE [?FLAG | !FLAG ...]: there if each flag is true, or false; a flag is a formula, FIELD=TEXT, or a
                 part that may be left out
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
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
_COUNTED = re.compile(r"([a-z_0-9.]+)\[(\w+)\]")
"""FIELD[KIND] in a formula."""
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
class Rule:
    """How the kinds of layers come about."""

    depth: str
    name: str
    words: tuple[str, ...]

    def kinds(self) -> frozenset[str]:
        """The kinds that it names."""
        words = self.words[1:] if self.name == "first" else self.words[2:4] if self.name == "every" else self.words
        if self.name == "letters":
            return frozenset(pair.split("=")[1] for pair in words[1].split(","))
        return frozenset(",".join(words).split(",")) if self.name != "of" else frozenset()


@dataclass(frozen=True, slots=True)
class Inventory:
    """The table of one model type."""

    model_type: str
    name: str
    class_name: str
    source: str
    defaults: Mapping[str, Any]
    derived: Mapping[str, str]
    absent: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    only: Mapping[str, Any]
    layers: Mapping[str, tuple[Rule, ...]]
    """By field, how its layers come about where config.json does not list them."""
    kinds: Mapping[str, frozenset[str]]
    """By field, what its layers can be."""
    includes: tuple[tuple[str, str, str], ...]
    rows: tuple[Row, ...]
    experts: tuple[str, str] | None = None
    wide: tuple[str, ...] = ()
    """Patterns of the parameters that stay fp32 when the rest is loaded in 16 bits."""
    wide_in_fp16: tuple[str, ...] = ()
    """Patterns of those that stay fp32 when the rest is loaded in fp16."""


OTHER_NAMES = {"minimax_m3": "minimax_m3_vl", "deepseek_ref": "deepseek_v4"}
"""Model types that a repository's own code gives to what transformers calls otherwise."""


@cache
def inventories() -> frozenset[str]:
    """The model types that have a table."""
    return frozenset([path.stem for path in FOLDER.glob("*.txt")]) | OTHER_NAMES.keys()


@cache
def inventory(model_type: str) -> Inventory:
    """The table of a model type. KeyError if there is none."""
    if model_type not in inventories():
        raise KeyError(model_type)
    found: dict[str, list[str]] = {}
    for line in (FOLDER / f"{OTHER_NAMES.get(model_type, model_type)}.txt").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        found.setdefault(word, []).append(rest)
    pairs = {
        word: [_pair(rest) for rest in found.get(word, ())]
        for word in ("default", "derived", "absent", "only", "experts", "alias")
    }
    aliases: dict[str, tuple[str, ...]] = {}
    for spelling, field in pairs["alias"]:
        aliases[field] = (*aliases.get(field, ()), spelling)
    rows = tuple([_row(*rest.split()) for rest in found.get("tensor", ())])
    layers: dict[str, tuple[Rule, ...]] = {}
    kinds: dict[str, set[str]] = {}
    for field, depth, name, *words in map(str.split, found.get("layers", ())):
        layers[field] = (*layers.get(field, ()), Rule(depth, name, tuple(words)))
        kinds.setdefault(field, set()).update(layers[field][-1].kinds())
    for field, kind in _COUNTED.findall(" ".join([row.count for row in rows])):
        kinds.setdefault(field, set()).add(kind)
    return Inventory(
        model_type=model_type,
        name=found["name"][0],
        class_name=found["class"][0],
        source=found.get("source", [f"transformers 5.24.0, {found['class'][0]}"])[0],
        defaults={field: json.loads(value) for field, value in pairs["default"]},
        derived=dict(pairs["derived"]),
        absent={part: json.loads(values) for part, values in pairs["absent"]},
        aliases=aliases,
        only={field: json.loads(value) for field, value in pairs["only"]},
        layers=layers,
        kinds={field: frozenset(_NEW_NAMES.get(kind, kind) for kind in names) for field, names in kinds.items()},
        includes=tuple([(field, kind, prefix) for field, kind, prefix in map(str.split, found.get("include", ()))]),
        rows=rows,
        experts=pairs["experts"][0] if pairs["experts"] else None,
        wide=tuple(found.get("fp32", ())),
        wide_in_fp16=tuple(found.get("fp32-of-fp16", ())),
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
            *parts, name = spelling.split(".")
            config = self.part(".".join(parts))
            if config is not None and config.given(name) is not None:
                return config, name
        return None

    def part(self, path: str) -> Config | None:
        """A part of the config.json; None if it is left out and that means its defaults.

        Old files keep the text model's fields at the top.
        """
        if not path:
            return self.config
        outer, _, name = path.rpartition(".")
        within = self.part(outer)
        if within is None:
            return None
        if within.given(name) is not None:
            return within.part(name)
        if name == "text_config" and within.given("num_hidden_layers") is not None:
            return within
        return Config(self.table.absent[path], path) if path in self.table.absent else None

    def _read(self, path: str) -> int:
        found, default = self.given(path), self.table.defaults.get(path)
        if found is None:
            if path in self.table.derived:
                return self.of(self.table.derived[path])
            if default is None:
                raise ConfigError(path, "is missing")
            self.config.notes.append(f"{path} is not given; the class default {default!r} is used")
            return int(default)
        config, name = found
        return config.boolean(name) if isinstance(default, bool) else config.integer(name, low=0, high=MOST)

    def of(self, formula: str) -> int:
        """The value of a formula in fields of config.json, with + - * //, whole numbers, FIELD[KIND] and FIELD[number]."""
        return self._value(_parsed(formula))

    def flag(self, path: str) -> bool:
        """Whether a formula is not 0, whether FIELD=TEXT (* for anything), or whether a part is there."""
        field, equals, pattern = path.partition("=")
        if equals:
            found = self.given(field)
            text = self.table.defaults[field] if found is None else found[0].given(found[1])
            return fnmatchcase("|".join(map(str, text)) if isinstance(text, list) else str(text), pattern)
        return self.part(path) is not None if path.endswith("_config") else bool(self.of(path))

    def length(self, path: str) -> int:
        """How many whole numbers a field lists."""
        found = self.given(path)
        return len(self.table.defaults[path] if found is None else found[0].integers(found[1]))

    def kinds(self, path: str) -> tuple[str, ...]:
        """What each layer is."""
        if path not in self.listed:
            found = self.given(path)
            kinds = self._by_rule(path) if found is None else found[0].texts(found[1])
            self.listed[path] = tuple([_NEW_NAMES.get(kind, kind) for kind in kinds])
            strange = {*self.listed[path]} - self.table.kinds[path]
            if strange:
                raise ConfigError(path, f"names a kind of layer that is not known: {min(strange)[:40]}")
        return self.listed[path]

    def _by_rule(self, path: str) -> Sequence[str]:
        for rule in self.table.layers.get(path, ()):
            if rule.name != "letters":
                return self._kinds(rule)
            found = self.given(rule.words[0])
            if found is not None:
                kinds = _spelt(found[0].given(found[1]), *rule.words)
                return kinds if rule.depth == "-" else kinds[: self.of(rule.depth)]
        raise ConfigError(path, "is missing")

    def _kinds(self, rule: Rule) -> Sequence[str]:
        count, words = self.of(rule.depth), rule.words
        if not 0 <= count <= MOST_LAYERS:
            raise ConfigError(rule.depth, f"should lie between 0 and {MOST_LAYERS:,}, not {count:,}")
        if rule.name == "first":
            number, kind, other = words
            return [kind if i < self.of(number) else other for i in range(count)]
        if rule.name == "every":
            period, offset, kind, other = words[:4]
            step, first_at, start = self.of(period), self.of(offset), self.of(words[4]) if len(words) > 4 else 0
            if step < 1:
                raise ConfigError(period, f"should be at least 1, not {step}")
            return [kind if i < start or i % step == first_at % step else other for i in range(count)]
        if rule.name == "of":
            return self.kinds(words[0])[:count]
        first, cycle = ([] if word == "-" else word.split(",") for word in words[:2])
        kinds = [first[i] if i < len(first) else cycle[(i - len(first)) % len(cycle)] for i in range(count)]
        return [*kinds[:-1], words[2]] if len(words) > 2 and kinds else kinds

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
                path = ast.unparse(field)
                return self.length(path) if kind == "number" else self.kinds(path).count(kind)
            case ast.Name() | ast.Attribute():
                return self[ast.unparse(node)]
        raise ValueError(f"not a formula: {ast.unparse(node)}")


def _spelt(spelt: object, field: str, meanings: str) -> Sequence[str]:
    letters = dict([pair.split("=") for pair in meanings.split(",")])
    if not isinstance(spelt, str | list) or len(spelt) > MOST_LAYERS or not all(str(x) in letters for x in spelt):
        raise ConfigError(field, f"should spell the layers in {' '.join(letters)}")
    return [letters[str(x)] for x in spelt]


@cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


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
        if any(sizes.flag(flag) != wanted for flag, wanted in row.flags):
            continue
        count, shape = sizes.of(row.count), tuple([sizes.of(size) for size in row.shape])
        if count < 0 or any(size < 0 for size in shape):
            raise ConfigError("", f"{row.name} would have {count} tensors of shape {shape}")
        if count:
            yield Parameter(name=row.name, shape=shape, dtype="bf16", role=row.role, count=count)
    for field, kind, prefix in table.includes:
        part = sizes.part(field)
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
