"""Words of the Optimizers page."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "optimizers.title": Text("What each optimizer costs on this plan", "이 계획에서 옵티마이저별 비용"),
}
