"""The step's instants against recorded ones: alive after the forward pass, both peaks, and what is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recordings import Recorded, recorded

from calc.memory.step import Step

INSTANTS = {"embedding_dense_backward": "end of backward", "_log_softmax_backward_data": "loss"}
"""Operations that belong to one instant only; others run in several."""


def peak(step: Step) -> tuple[int, str]:
    """The highest moment of the backward pass and the instant that it belongs to."""
    moments = {"loss": step.loss, "backward": step.backward, "end of backward": step.end}
    name = max(moments, key=lambda n: moments[n].total)
    return moments[name].total, name


def differences(r: Recorded) -> Iterator[str]:
    """Where our step differs from a recorded one."""
    step = r.step()
    backward, instant = peak(step)
    ours = {
        "live after forward": step.live.total,
        "forward peak": step.forward.total,
        "backward peak": backward,
        "after backward": step.after.total,
    }
    for name, found in ours.items():
        if r.row[name] is not None and found != r.row[name]:
            yield f"{r.title}: {name} {found - r.row[name]:+,} of {r.row[name]:,}"
    expected = INSTANTS.get(r.row["at the backward peak"])
    if expected is not None and expected != instant:
        yield f"{r.title}: the peak is at {instant}, not at {expected}"


@pytest.mark.parametrize("file", ["steps", "real_sizes", "blocks"])
def test_every_recorded_step_is_met_to_the_byte(file: str) -> None:
    """Grid, full depth, LoRA, checkpointing of both kinds, masks, and small models in which the blocks set the peaks."""
    assert [] == [difference for r in recorded(file) for difference in differences(r)]
