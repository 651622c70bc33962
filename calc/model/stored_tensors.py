"""The parameters of a repository of any type, from the headers of its safetensors files.

What a class makes of them is not known, so three things are read off names: which part a tensor is (embedding, head, expert, ...), that a
few names are buffers, and, where config.json ties the head, that a second copy of the table is the head's. Each of them becomes a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from calc.model.config import Config, ConfigError
from calc.model.counting import Counted
from calc.model.parameters import Parameter, Role
from calc.model.quantized_checkpoint import quantized_checkpoint

WEIGHTS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})
"""Number formats with one element a weight; the others pack several into one, or are no numbers to train."""
_BUFFER = re.compile(
    r"(^|\.)(inv_freq|position_ids|masked_bias|num_batches_tracked|running_mean|running_var|e_score_correction_bias)$"
    r"|rotary|attn\.bias$|attention\.bias$"
)
"""Names of buffers that repositories store: no class trains them."""
_SCALE = re.compile(
    r"[._](weight_scale(_inv|_2)?|input_scale|activation_scale|[kv]_scale|scale_inv|scales|qzeros|g_idx|weight_zero_point)$"
)
"""Names of what stands beside quantised weights."""
_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
_CHOSEN = (
    "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts", "moe_top_k", "moe_k",
)  # fmt: skip


class Tensor(Protocol):
    """A tensor of a safetensors file: name, shape, and number format as safetensors writes it."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


def of_tensors(tensors: Iterable[Tensor], config: Mapping[str, Any]) -> Counted:
    """Count stored tensors. Raises ConfigError where the weights are packed, so that their number cannot be told."""
    reader = Config(config)
    rows: Counter[tuple[str, tuple[int, ...]]] = Counter()
    buffers = 0
    for tensor in tensors:
        if _SCALE.search(tensor.name):
            continue
        if _BUFFER.search(tensor.name) or tensor.dtype in ("BOOL", "I64"):
            buffers += 1
        elif tensor.dtype in WEIGHTS:
            rows[re.sub(r"(?<=\.)\d+(?=\.|$)", "*", tensor.name), tensor.shape] += 1
        else:
            raise ConfigError(
                "", f"the stored tensors hold {tensor.dtype}, which packs weights, so their number cannot be told"
            )
    notes = ["counted from the repository's stored tensors, because the architecture is not known"]
    if buffers:
        notes.append(f"{buffers:,} stored buffers are left out")
    tables = [shape for name, shape in rows if role_of(name, shape) == "embedding"]
    found = []
    for (name, shape), count in rows.items():
        role = role_of(name, shape)
        if role == "head" and shape in tables and config.get("tie_word_embeddings") is True:
            notes.append("the head is tied to the embeddings, so its stored copy is left out")
            continue
        found.append(Parameter(name, shape, "bf16", role, count))
    experts = None
    if any(p.role == "expert" for p in found):
        number = reader.integer(*_EXPERTS, default=None)
        chosen = reader.integer(*_CHOSEN, default=None)
        experts = (number, chosen) if number and chosen else None
        if experts is None:
            notes.append("config.json does not say how many experts a token passes; all are called active")
    if quantized_checkpoint(config) is not None:
        notes.append("scales beside quantised weights are left out")
    model_type = reader.text("model_type", default="")
    return Counted(model_type, model_type or "unnamed architecture", tuple(found), experts, False, "safetensors headers", tuple(notes))  # fmt: skip


def role_of(name: str, shape: tuple[int, ...]) -> Role:
    """What a tensor is, by its name and shape."""
    module, _, last = name.rpartition(".")
    own = module.rpartition(".")[2]
    if ".experts." in name or (len(shape) == 3 and "expert" in name):
        return "expert"
    if len(shape) == 1:
        return "bias" if last == "bias" else "norm"
    if len(shape) != 2 or last != "weight":
        return "other"
    if re.fullmatch(r"(\w*_)?(embed|embeddings?|embed_(tokens|positions|in)(_per_layer)?|shared|wte|wpe)", own):
        return "embedding"
    if "*" not in name and re.fullmatch(r"lm_head|embed_out|output|output_layer|head|proj_out", own):
        return "head"
    if re.search(r"router", name) or own in ("gate", "wg"):
        return "router"
    return "linear"
