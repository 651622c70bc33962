"""How words are set: small print, and amounts that no line ends inside of."""

from __future__ import annotations


def small(text: str) -> str:
    """Markdown of small print in the full colour of the text, which a caption's faded one is too pale for."""
    return f":small[{text}]"


def unbroken(size: object) -> str:
    """An amount that no line ends inside of."""
    return str(size).replace(" ", "\N{NO-BREAK SPACE}")
