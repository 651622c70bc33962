"""What a page shows, as a visitor reads it."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest

_FIGURE = re.compile(r'<span class="figure"[^>]*>(.*)</span>')


def figures(app: AppTest) -> list[str]:
    """The large figures in the order of the page, without Markdown's backslashes."""
    found = [_FIGURE.fullmatch(element.value) for element in app.markdown]
    return [re.sub(r"\\(.)", r"\1", match[1]) for match in found if match]
