"""Recorded training steps (tests/golden/oracle/steps_*.json) as questions to `estimate`, and how far its answers lie from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from calc import Scenario, estimate

GOLDEN = Path(__file__).parent / "golden" / "oracle"
TRUTHS = (
    "steps_tiny", "steps_precision", "steps_settings", "steps_lora", "steps_qlora", "steps_kernels", "steps_selective", "steps_frameworks",
    "steps_offload", "steps_in_backward", "steps_cut", "steps_real", "steps_whole", "sharding", "sharding_variants", "sharding_kernels",
    "sharding_adapters", "sharding_accumulation",
)  # fmt: skip
"""The files of recorded steps on one card, or of one rank on several."""
CARD = "a100-sxm-80gb"
"""The pretended card chooses kernels as an A100 does."""


class Explained(NamedTuple):
    """Why some rows are not met to the byte, and within how much of the peak they are."""

    truth: str
    model: str
    framework: str
    bound: float
    reason: str
    loss: str = ""


EXPLAINED = (
    Explained("steps_frameworks", "", "transformers-4.57", 1e-4, "rotary frequencies are held once before version 5, twice here"),
    Explained("steps_frameworks", "", "transformers-4.44", 1e-3, "rotations were made layer by layer, and are made once here"),
    Explained("steps_in_backward", "", "", 1e-6, "Liger's function holds the loss's own gradient, one number, while its results are stepped", "liger"),
    Explained("steps_offload", "", "", 1e-4, "nobody goes backwards through TRL's entropies, so their mask stays: once more each step", "chunked"),
    Explained("sharding_kernels", "", "", 1e-6, "FSDP2 narrows what the model returns, which a chunked loss sums afterwards: 4 bytes", "chunked"),
)  # fmt: skip


class Row(NamedTuple):
    """A recorded step."""

    truth: str
    model: str
    plan: dict[str, Any]
    peaks: dict[str, int]
    at: dict[str, str]
    measured: dict[str, Any]
    """All that was recorded."""

    @property
    def recipe(self) -> str:
        """What makes the plan another one than the usual, in a few words."""
        plan = self.plan
        words = [plan["method"], plan["precision"], plan["attention"]]
        words += [f"{plan['gradient_checkpointing']} checkpointing"] if plan["gradient_checkpointing"] != "none" else []
        words += [
            str(plan[key])
            for key in ("loss", "kernels", "framework", "optimizer")
            if plan.get(key) not in (None, "eager", "adamw_torch_fused")
        ]
        if "sharding" in plan:
            sharding = plan["sharding"]
            words += [sharding["strategy"]] if "strategy" in sharding else []
            words += ["in host memory"] if sharding.get("offload", "none") != "none" else []
            words += ["activations in host memory"] if sharding.get("activation_offload") else []
            words += ["in copies"] if sharding.get("replicas", 1) > 1 else []
            words += ["kept gathered"] if not sharding.get("reshard_after_forward", True) else []
        words += ["padded"] if plan.get("padded") else []
        words += ["DoRA"] if plan.get("lora", {}).get("use_dora") else []
        words += ["saved whole"] if plan.get("lora", {}).get("modules_to_save") else []
        words += [plan["quantization"]["format"]] if "quantization" in plan else []
        return " ".join(words)

    @property
    def explained(self) -> Explained | None:
        """Why this row is not met to the byte, if that is known."""
        family = self.model.partition("@")[0]
        for one in EXPLAINED:
            if (
                one.truth in ("", self.truth)
                and one.model in ("", family)
                and one.framework in ("", self.plan.get("framework", ""))
                and one.loss in ("", self.plan.get("loss", ""))
            ):
                return one
        return None

    @property
    def on_host(self) -> int | None:
        """Bytes that were recorded in host memory; None where those were not."""
        sizes = [size for name, size in self.measured.items() if name.startswith("host_")]
        return sum(sizes) if sizes else None

    def differences(self) -> dict[str, tuple[int, int]]:
        """Moments at which `estimate` says another number of bytes: (ours, theirs).

        Forward and loss's forward are one instant of ours. The final norm's backward belongs to the loss here and to the blocks there, so
        the two are compared together; and where the recorder noticed the end of the backward by a second embedding, or only by what
        was left of it, all three.
        """
        hardware = {"gpu": CARD, "num_gpus": self.plan.get("sharding", {}).get("data_parallel", 1)}
        answer = estimate(
            Scenario.model_validate(
                {"model": {"config": configs()[self.model]}, "plan": self.plan, "hardware": hardware}
            )
        )
        ours = {instant.name: int(instant.allocated) for instant in answer.instants}
        theirs = self.peaks
        pairs = {
            "forward": (ours["forward"], max(theirs[name] for name in ("forward", "loss forward") if name in theirs)),
            "optimizer step": (ours["optimizer step"], theirs["optimizer step"]),
        }
        if self.on_host is not None:
            pairs["host"] = (int(answer.host.training), self.on_host)
        phases = [name for name in ("loss backward", "backward", "end of backward") if name in theirs]
        apart = (
            "backward" in theirs
            and "embedding_dense" not in self.at["backward"]
            and self.at.get("end of backward", "") != ""
            and not (
                self.truth == "steps_in_backward" and "n_positions" in configs()[self.model]
            )  # positions are stepped before
        )
        if apart:
            pairs["backward"] = (max(ours["loss"], ours["backward"]), max(theirs["loss backward"], theirs["backward"]))
            pairs["end of backward"] = (ours["end of backward"], theirs["end of backward"])
        else:
            pairs["backward"] = (
                max(ours["loss"], ours["backward"], ours["end of backward"]),
                max(theirs[name] for name in phases),
            )
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@cache
def configs() -> dict[str, dict[str, Any]]:
    """config.json of each recorded model."""
    return {
        row["case"]["model"]: row["measured"]["config"]
        for name in ("parameters", "parameters_more")
        for row in json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    }


def rows(truth: str) -> Iterator[Row]:
    """The recorded steps of one file."""
    for row in json.loads((GOLDEN / f"{truth}.json").read_text(encoding="utf-8"))["rows"]:
        measured, plan = row["measured"], row["case"]["plan"]
        if "reshard_after_forward" in row["case"]:
            kept = {"reshard_after_forward": row["case"]["reshard_after_forward"]}
            plan = plan | {"sharding": plan["sharding"] | kept}
        yield Row(truth, row["case"]["model"], plan, measured["peaks"], measured["peak_at"], measured)


def not_compared() -> dict[str, int]:
    """Recorded steps that `estimate` has no answer to: how many rows, by the reason. None at present."""
    return {}
