"""A formula that is written once: it is evaluated, and it is read, from the same text.

`Formula("lr * max(0, (T - s) / max(1, T - W))")` computes in the order written, with doubles, so it can equal a
library to the last bit; `typeset` shows it in symbols, or with a run's numbers in their place. The grammar is what
`_text` knows: names, numbers, + - * / // % **, unary minus, and the functions in `FUNCTIONS`. Formulas are constants of
this package, never a visitor's text.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

FUNCTIONS: dict[str, Callable[..., float]] = {
    "max": max,
    "min": min,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "floor": math.floor,
    "erf": math.erf,
}
CONSTANTS = {"pi": math.pi}
_SYMBOLS = {"pi": "π", "sigma": "σ", "rms": "RMS", "log": "ln", "sqrt": "√"}
_OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: (" + ", 1),
    ast.Sub: (" − ", 1),
    ast.Mult: (" · ", 2),
    ast.Div: (" / ", 2),
    ast.FloorDiv: (" div ", 2),
    ast.Mod: (" mod ", 2),
    ast.Pow: ("^", 4),
}


def number(value: float | int) -> str:
    """A number as formulas show it: counts with separators, the rest to six figures.

    >>> number(1_000_000), number(2e-05), number(0.1)
    ('1,000,000', '2e-05', '0.1')
    """
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.6g}"


def brief(value: float) -> str:
    """A number to three figures.

    >>> brief(6.48309e-15), brief(1908.4)
    ('6.48e-15', '1,910')
    """
    return number(float(f"{value:.3g}"))


@dataclass(frozen=True, slots=True)
class Formula:
    """One expression, and named parts of it; a part may use those that follow it.

    >>> Formula("lr * (1 - p)", where={"p": "s / T"}).at({"lr": 0.5, "T": 4}, "s")(1)
    0.375
    """

    expression: str
    where: Mapping[str, str]

    def __init__(self, expression: str, where: Mapping[str, str] | None = None) -> None:
        used, kept = _names(expression), {}
        for name, text in (where or {}).items():
            if name in used:
                kept[name] = text
                used |= _names(text)
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "where", kept)

    def at(self, inputs: Mapping[str, float], variable: str) -> Callable[[float], float]:
        """The formula as a function of one variable, the other symbols fixed to `inputs`."""
        code = _compiled(self.expression, tuple(self.where.items()), variable)
        curve: Callable[[float], float] = eval(code, {"__builtins__": {}, **FUNCTIONS, **CONSTANTS, **inputs})
        return curve

    def typeset(self, values: Mapping[str, float] | None = None) -> str:
        """The formula for a reader; symbols that `values` names are replaced by its numbers.

        >>> Formula("lr * max(0, (T - s) / max(1, T - W))").typeset({"lr": 2e-5, "T": 584, "W": 18})
        '2e-05 · max(0, (584 − s) / max(1, 584 − 18))'
        """
        shown = {name: number(value) for name, value in (values or {}).items() if name not in self.where}
        parts = [_text(ast.parse(self.expression, mode="eval").body, shown)]
        parts += [f"{name} = {_text(ast.parse(text, mode='eval').body, shown)}" for name, text in self.where.items()]
        return ", ".join(parts)


def _names(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}


@lru_cache(maxsize=1024)
def _compiled(expression: str, where: tuple[tuple[str, str], ...], variable: str) -> CodeType:
    """The lambda's code; a named part is a function's argument, so that it is computed once and in its own order."""
    body = expression
    for name, text in where:
        body = f"(lambda {name}: {body})({text})"
    return compile(f"lambda {variable}: {body}", "<formula>", "eval")


def _text(node: ast.expr, shown: Mapping[str, str], above: int = 0) -> str:
    match node:
        case ast.Constant(value=int() | float() as value):
            return number(value)
        case ast.Name(id=name):
            return shown.get(name, _SYMBOLS.get(name, name))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"−{_text(operand, shown, 3)}"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            sign, strength = _OPERATORS[type(op)]
            # The right side of a minus, a division or a remainder keeps its own brackets; a power binds to the right.
            first, second = (
                _text(left, shown, strength + (strength == 4)),
                _text(right, shown, strength + (strength < 4)),
            )
            text = f"{first}{sign}{second}"
            return f"({text})" if strength < above else text
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in FUNCTIONS:
            return f"{_SYMBOLS.get(name, name)}({', '.join(_text(argument, shown) for argument in arguments)})"
        case _:
            raise TypeError(f"a formula cannot contain {ast.dump(node)}")
