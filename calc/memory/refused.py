"""A question that has no answer."""

from __future__ import annotations


class Refused(ValueError):
    """A question that has no answer: it cannot run at all, or it is not modelled yet."""

    def __init__(self, code: str, message: str, field: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.field = code, message, field
