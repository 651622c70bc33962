"""Mamba: state-space layers that go along the sequence token by token; Falcon Mamba norms what goes into them.

Mirrors transformers 5.24.0 models/mamba/modeling_mamba.py and models/falcon_mamba/modeling_falcon_mamba.py, where mamba-ssm, causal-conv1d
and mambapy are not installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.family import Dims, Family
from calc.model.mamba2 import MambaDims, attention_free, body_of, head, layer
from calc.model.modules import Modules
from calc.model.selective_scan import SelectiveScan, mixer


@dataclass(frozen=True, kw_only=True)
class MambaOneDims(MambaDims):
    """Sizes of the mixer, too."""

    mamba: SelectiveScan


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return body_of(m, ids, block)


def block(m: Modules, x: Tensor) -> Tensor:
    """One layer: a norm and the mixer."""
    return layer(m, x, lambda m, x: mixer(m, "mixer", x, m.c.mamba))


def dims(config: Config) -> Dims:
    """MambaConfig's and FalconMambaConfig's fields and defaults."""
    common = attention_free(config, vocab_size=50280, hidden_size=768, num_hidden_layers=32, tie_word_embeddings=True)
    hidden = common["hidden_size"]
    auto = config.given("time_step_rank") in (None, "auto")
    return MambaOneDims(
        **common,
        mamba=SelectiveScan(
            width=common["intermediate_size"],
            state=config.integer("state_size", default=16, high=10**6),
            rank=-(-hidden // 16) if auto else config.integer("time_step_rank", high=10**6),
            conv=config.integer("conv_kernel", default=4, high=10**6),
            conv_bias=config.boolean("use_conv_bias", default=True),
            proj_bias=config.boolean("use_bias", default=False),
            act=common["hidden_act"],
            normed="bare" if config.text("model_type") == "falcon_mamba" else None,
        ),
    )


def norm_buffers(dims: Any, size: int) -> int:
    """Falcon Mamba's norms hold ones in place of a weight."""
    s: SelectiveScan = dims.mamba
    return dims.num_hidden_layers * (s.width + 2 * s.state) * size if s.normed == "bare" else 0


FAMILIES = (
    Family(
        id="mamba",
        types={"mamba": "Mamba", "falcon_mamba": "Falcon Mamba"},
        dims=dims,
        body=body,
        head=head,
        attentions=("eager",),
        gaps=frozenset(("offload without checkpointing", "other losses", "a quantised base", "releases before 5")),
        buffers=norm_buffers,
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/mamba/modeling_mamba.py",
    ),
)
