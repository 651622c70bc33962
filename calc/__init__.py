"""Plimsoll's calculator: will a fine-tune fit, which instant sets the peak, which learning rate will the run follow.

>>> from calc import Scenario, estimate
>>> answer = estimate(Scenario.model_validate({"model": "mistralai/Mistral-7B-v0.1", "plan": {"method": "qlora"}}))
>>> answer.verdict
'does_not_fit'
"""

from __future__ import annotations

from typing import Any

__all__ = ["Breakdown", "Refused", "Scenario", "estimate"]

_HOMES = {
    "Scenario": "calc.scenario",
    "estimate": "calc.memory.estimate",
    "Breakdown": "calc.memory.breakdown",
    "Refused": "calc.memory.problems",
}


def __getattr__(name: str) -> Any:
    """Public names, loaded when they are asked for: `import calc` alone costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'calc' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
