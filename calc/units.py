"""Bytes, and the only ways to read them.

A count of bytes is exact and whole, so `Bytes` is an integer that refuses the mistakes of this field: bytes times bytes,
and bytes plus a bare number. Elements become bytes through a dtype's size, or through an explicit `Bytes(...)`.
"""

from __future__ import annotations

from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Bytes(int):
    """A whole number of bytes. `str()` and `format()` show GiB, as the driver and PyTorch report memory.

    >>> Bytes(2) * 1024 + Bytes(5)
    Bytes(2053)
    >>> str(Bytes(3 * 2**30))
    '3.00 GiB'
    >>> Bytes(2) * Bytes(2)
    Traceback (most recent call last):
    ...
    TypeError: bytes times bytes is not an amount of memory
    """

    __slots__ = ()

    @property
    def gib(self) -> float:
        """The amount in GiB (2**30 bytes)."""
        return int(self) / GIB

    @property
    def mib(self) -> float:
        """The amount in MiB (2**20 bytes)."""
        return int(self) / MIB

    def __add__(self, other: int) -> Bytes:
        if not isinstance(other, Bytes) and other != 0:
            raise TypeError("bytes plus a bare number: wrap it in Bytes(...)")
        return Bytes(int(self) + int(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> Bytes:
        if not isinstance(other, Bytes):
            raise TypeError("bytes minus a bare number: wrap it in Bytes(...)")
        return Bytes(int(self) - int(other))

    def __mul__(self, other: int) -> Bytes:
        if isinstance(other, Bytes):
            raise TypeError("bytes times bytes is not an amount of memory")
        return Bytes(int(self) * other)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Any:
        """Bytes by a number are bytes; bytes by bytes are a number."""
        quotient = int(self) // int(other)
        return quotient if isinstance(other, Bytes) else Bytes(quotient)

    def __neg__(self) -> Bytes:
        return Bytes(-int(self))

    def __abs__(self) -> Bytes:
        return Bytes(abs(int(self)))

    def __repr__(self) -> str:
        return f"Bytes({int(self)})"

    def __str__(self) -> str:
        return readable(self)

    def __format__(self, spec: str) -> str:
        return int.__format__(int(self), spec) if spec else str(self)


def readable(size: int) -> str:
    """An amount of memory as people read it: GiB from 10 MiB upwards, then MiB, KiB and bytes.

    >>> readable(12_884_901_888), readable(6_815_744), readable(24)
    ('12.00 GiB', '6.50 MiB', '24 B')
    """
    magnitude = abs(int(size))
    if magnitude >= 10 * MIB:
        return f"{int(size) / GIB:,.2f} GiB"
    if magnitude >= MIB:
        return f"{int(size) / MIB:,.2f} MiB"
    if magnitude >= KIB:
        return f"{int(size) / KIB:,.1f} KiB"
    return f"{int(size)} B"


def count(number: int) -> str:
    """A count as people read it: 6.74 B parameters, 41.9 M, 12,288.

    >>> count(6_738_415_616), count(41_943_040), count(12_288)
    ('6.74 B', '41.9 M', '12,288')
    """
    for size, suffix, digits in ((10**12, "T", 2), (10**9, "B", 2), (10**6, "M", 1)):
        if abs(number) >= size:
            return f"{number / size:,.{digits}f} {suffix}"
    return f"{number:,}"
