"""Sizes that remember their formula.

A `Dim` behaves as the whole number that it is, and carries the polynomial that it came from. A run on `Dim`s takes every decision that
the run on numbers takes, and leaves the closed form of each amount.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import ge
from typing import Any

Monomial = tuple[str, ...]
Polynomial = Mapping[Monomial, Fraction]


class Symbols(dict[str, int]):
    """The number of each symbol. Rounded quotients are symbols of their own: `rounded` says of what. `decisions`, when there is one,
    notes what the run decided by comparing sizes, so that its closed forms are known to hold wherever these decisions do."""

    def __init__(self, decisions: dict[Decision, bool | int] | None = None) -> None:
        super().__init__()
        self.rounded: dict[str, tuple[Polynomial, int, bool]] = {}
        """Symbol to polynomial, divisor, and whether it is rounded up."""
        self.decisions = decisions

    def at(self, **numbers: int) -> dict[str, int]:
        """The open symbols with other numbers, and the rounded quotients of them."""
        values = dict(numbers)
        for name, (poly, by, up) in self.rounded.items():
            inner = int(evaluate(poly, values))
            values[name] = -(-inner // by) if up else inner // by
        return values


Decision = tuple[frozenset[tuple[Monomial, Fraction]], str, int]
"""A polynomial, what was asked of it, and of which number: positive, zero, its remainder, or whether there is one."""


def _exact(value: Any) -> dict[Monomial, Fraction]:
    return dict(value.poly) if isinstance(value, Dim) else ({(): Fraction(value)} if value else {})


class Dim:
    """A whole number with its polynomial. Comparison, hashing and `%` go by the number.

    `table` maps each symbol to its number; every size that comes from this one shares it.
    """

    __slots__ = ("poly", "table", "value")

    def __init__(self, value: int, poly: Polynomial | str, table: Symbols) -> None:
        self.value, self.table = value, table
        self.poly: Polynomial
        if isinstance(poly, str):
            self.poly = {(poly,): Fraction(1)}
            table[poly] = value
        else:
            self.poly = poly

    def __add__(self, other: Any) -> Any:
        poly = dict(self.poly)
        for monomial, factor in _exact(other).items():
            total = poly.get(monomial, Fraction(0)) + factor
            if total:
                poly[monomial] = total
            else:
                poly.pop(monomial, None)
        return Dim(self.value + number(other), poly, self.table)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return Dim(-self.value, {m: -f for m, f in self.poly.items()}, self.table)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        poly: dict[Monomial, Fraction] = {}
        for m, f in self.poly.items():
            for n, g in _exact(other).items():
                monomial = tuple(sorted(m + n))
                poly[monomial] = poly.get(monomial, Fraction(0)) + f * g
        return Dim(self.value * number(other), poly, self.table)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        by = number(other)
        value = self.value // by
        if isinstance(other, Dim):
            return self._quotient(other, value)
        if self.value < 0:
            name = f"⌈{inline(-self)}/{by}⌉"
            self.table.rounded[name] = ((-self).poly, by, True)
            return -Dim(-value, name, self.table)
        if self % by:
            name = f"⌊{inline(self)}/{by}⌋"
            self.table.rounded[name] = (self.poly, by, False)
            return Dim(value, name, self.table)
        return Dim(value, {m: f / by for m, f in self.poly.items()}, self.table)

    def _quotient(self, other: Dim, value: int) -> Dim:
        (divisor, factor), *rest = other.poly.items()
        poly: dict[Monomial, Fraction] = {}
        if not rest:
            for monomial, f in self.poly.items():
                left = list(monomial)
                for symbol in divisor:
                    if symbol not in left:
                        break
                    left.remove(symbol)
                else:
                    poly[tuple(left)] = f / factor
                    continue
                break
            else:
                return Dim(value, poly, self.table)
        return Dim(value, f"⌊({inline(self)})/({inline(other)})⌋", self.table)

    def __rfloordiv__(self, other: Any) -> Any:
        return Dim(number(other) // self.value, f"⌊{number(other)}/{inline(self)}⌋", self.table)

    def _decided(self, other: Any, question: str, outcome: Any, by: int = 0) -> Any:
        noted = self.table.decisions
        if noted is not None:
            poly = (self - other if by == 0 else self).poly
            if any(poly):
                noted[(frozenset(poly.items()), question, by)] = outcome
        return outcome

    def __mod__(self, other: Any) -> int:
        by = number(other)
        outcome: int = self._decided(None, "%", self.value % by, by)
        return outcome

    def fills(self, by: int) -> bool:
        """Whether it is a multiple of `by`; asked like this, all that are not are alike."""
        return bool(self._decided(None, "|", self.value % by == 0, by))

    def __divmod__(self, other: Any) -> tuple[Any, int]:
        return self // other, self % other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dim | int):
            return NotImplemented
        return bool(self._decided(other, "=", self.value == number(other)))

    def __gt__(self, other: Any) -> bool:
        return bool(self._decided(other, ">", self.value > number(other)))

    def __lt__(self, other: Any) -> bool:
        return bool((-self)._decided(-other, ">", self.value < number(other)))

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __hash__(self) -> int:
        return hash(self.value)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Dim({self.value}, {inline(self)!r})"


def number(value: Any) -> int:
    """The number, without its formula."""
    return value.value if isinstance(value, Dim) else value


def polynomial(value: Any) -> Polynomial:
    """The polynomial of a size; a constant one for a plain number."""
    return _exact(value)


def fills(size: int, by: int) -> bool:
    """Whether a size is a multiple of a number."""
    return size.fills(by) if isinstance(size, Dim) else size % by == 0


def undominated(values: Sequence[Any]) -> list[int]:
    """Places of those sizes that no other one exceeds in every factor, the first of equal ones: symbols are positive, so the others are never
    higher."""
    polynomials = [_exact(value) for value in values]
    monomials = list(dict.fromkeys(monomial for poly in polynomials for monomial in poly))
    distinct: dict[tuple[Fraction | int, ...], int] = {}
    for place, poly in enumerate(polynomials):
        factors = [poly.get(monomial, 0) for monomial in monomials]
        distinct.setdefault(tuple([int(f) if f == int(f) else f for f in factors]), place)
    kept: list[tuple[Fraction | int, ...]] = []
    for one in sorted(distinct, key=lambda factors: -sum(factors)):
        if not any(all(map(ge, other, one)) for other in kept):
            kept.append(one)
    return [distinct[one] for one in kept]


_ORDER = "LNBShqkviHKDVEmse"


def _rank(symbol: str) -> tuple[int, str]:
    place = _ORDER.find(symbol[0])
    return (place if place >= 0 else len(_ORDER), symbol)


def _merged(poly: Polynomial) -> dict[Monomial, Fraction]:
    """B·S as N, H·D as q and K·D as kv, where they stand together."""
    result: dict[Monomial, Fraction] = {}
    for monomial, factor in poly.items():
        symbols = list(monomial)
        for pair, name in ((("B", "S"), "N"), (("H", "D"), "q"), (("K", "D"), "kv")):
            while pair[0] in symbols and pair[1] in symbols:
                symbols.remove(pair[0])
                symbols.remove(pair[1])
                symbols.append(name)
        key = tuple(sorted(symbols, key=_rank))
        result[key] = result.get(key, Fraction(0)) + factor
    return {m: f for m, f in result.items() if f}


def merged(value: Any) -> Polynomial:
    """The polynomial with N, q and kv for the products that they name."""
    return _merged(_exact(value))


def inline(value: Any) -> str:
    """A formula in one line: 2L·(N·(16h + 4q) + 24).

    >>> table = Symbols()
    >>> B, S, h = Dim(2, "B", table), Dim(8, "S", table), Dim(4, "h", table)
    >>> inline(B * S * h * 16 + B * S * 8 + 24)
    'N·(16h + 8) + 24'
    """
    return typeset(_merged(_exact(value)))


def typeset(poly: Polynomial, values: Mapping[str, int] | None = None) -> str:
    """A polynomial as people write it, with layers and tokens taken out in front; with `values`, the same with this run's numbers."""
    if not poly:
        return "0"
    for lead in ("L", "N"):
        inside = {tuple(_without(m, lead)): f for m, f in poly.items() if lead in m}
        rest = {m: f for m, f in poly.items() if lead not in m}
        if len(inside) > 1:
            shown = lead if values is None else f"{values[lead]:,}"
            text = f"{shown}·({typeset(inside, values)})"
            return f"{text} + {typeset(rest, values)}" if rest else text
    terms = sorted(poly.items(), key=lambda item: (not item[0], [_rank(s) for s in item[0]]))
    text = ""
    for monomial, factor in terms:
        sign = " − " if factor < 0 else " + "
        text += (sign if text else "−" if factor < 0 else "") + _term(monomial, abs(factor), values)
    return text


def _without(monomial: Monomial, symbol: str) -> list[str]:
    left = list(monomial)
    left.remove(symbol)
    return left


def _term(monomial: Monomial, factor: Fraction, values: Mapping[str, int] | None) -> str:
    coefficient = f"{factor.numerator:,}" + (f"/{factor.denominator}" if factor.denominator > 1 else "")
    if not monomial:
        return coefficient
    if values is None:
        body = "·".join(monomial)
        return (
            body if factor == 1 else f"{coefficient}{'·' if len(monomial) > 1 or factor.denominator > 1 else ''}{body}"
        )
    body = "·".join(f"{values[s]:,}" for s in monomial)
    return body if factor == 1 else f"{coefficient}·{body}"


def evaluate(poly: Polynomial, values: Mapping[str, int]) -> Fraction:
    """The number that a polynomial is for given symbols."""
    total = Fraction(0)
    for monomial, factor in poly.items():
        for symbol in monomial:
            factor = factor * values[symbol]
        total += factor
    return total
