"""The scenario's controls: one column, every field with its help, the flags that lead to each choice in plain words."""

from __future__ import annotations

from typing import Any, get_args

import streamlit as st

from calc import scenario as kinds
from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.gpus import GPUS
from calc.catalog.optimizers import OPTIMIZERS
from calc.model.vision import Seeing
from pages.parts import models, state, texts
from pages.parts.state import t
from pages.parts.stops import stops

# Stops of the sliders; any other value has its place in the box beside them.
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
LENGTHS = (128, 256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 65536, 131072)
RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SHARED_WEIGHTS = ("fsdp", "fsdp2")
"""Strategies under which each GPU stores a share of the weights."""


def draw() -> None:
    """All controls of the scenario."""
    models.draw()
    if models.dequantizes() or state.kept("plan.dequantize"):
        _switch("plan.dequantize")
    card, number = st.columns([2.7, 1], vertical_alignment="bottom", wrap=False, gap="small")
    with card:
        _choice("hardware.gpu", list(GPUS), {gpu.id: gpu.name for gpu in GPUS.values()})
    with number:
        _number("hardware.num_gpus", help="")
    _sharding()
    _segments("plan.method", ["full", "lora", "qlora"])
    method = state.kept("plan.method")
    if method != "full":
        stops("plan.lora.rank", RANKS)
    stops("plan.micro_batch_size", BATCHES)
    stops("plan.seq_len", LENGTHS)
    _choice("plan.precision", _words(kinds.Precision), _labels("precision", kinds.Precision))
    flags = t(f"flags.{state.kept('plan.precision')}")
    st.markdown(f":small[{flags}]")
    _choice("plan.optimizer", list(OPTIMIZERS), {row.id: f"{row.id} · {row.label}" for row in OPTIMIZERS.values()})
    _choice(
        "plan.gradient_checkpointing",
        _words(kinds.Checkpointing),
        _labels("gradient_checkpointing", kinds.Checkpointing),
    )
    eyes = models.eyes()
    if eyes is not None or state.kept("plan.images.per_sequence"):
        with st.expander(t("images")):
            _images(eyes)
    if method != "full":
        with st.expander(t("adapter")):
            _adapter()
    if method == "qlora":
        with st.expander(t("quantization")):
            _quantization()
    with st.expander(t("more")):
        _more()


def _adapter() -> None:
    _targets()
    left, right = st.columns(2)
    with left:
        _number("plan.lora.alpha")
        _segments("plan.lora.adapter_dtype", _words(kinds.AdapterDType))
    with right:
        _number("plan.lora.dropout", step=0.05)
        _switch("plan.lora.use_dora")
    _names("plan.lora.modules_to_save", ["embed_tokens", "lm_head"])


def _sharding() -> None:
    """How the GPUs share the work. Without other ways to share, each sees data of its own."""
    gpus, strategy = state.kept("hardware.num_gpus"), state.kept("plan.sharding.strategy")
    if gpus > 1 or strategy != "none":
        _choice("plan.sharding.strategy", _words(kinds.Strategy), _labels("strategy", kinds.Strategy))
    if strategy in SHARED_WEIGHTS:
        with st.expander(t("shares")):
            _shares()
    if all(state.kept(f"plan.sharding.{way}_parallel") == 1 for way in ("tensor", "pipeline", "context", "expert")):
        state.keep("plan.sharding.data_parallel", 1 if strategy == "none" else gpus)


def _shares() -> None:
    """Where the shares of the weights lie, and how long what is gathered of them stays."""
    _segments("plan.sharding.offload", _words(kinds.Offload))
    _number("plan.sharding.replicas")
    _switch("plan.sharding.reshard_after_forward")
    if state.kept("plan.sharding.strategy") == "fsdp2" and state.kept("plan.gradient_accumulation_steps") > 1:
        _switch("plan.sharding.sync_each_batch")


def _images(eyes: Seeing | None) -> None:
    """How many images, of what size, and which parts of the model are trained."""
    _number("plan.images.per_sequence")
    if state.kept("plan.images.per_sequence"):
        left, right = st.columns(2)
        with left:
            _number("plan.images.height")
        with right:
            _number("plan.images.width")
        if eyes is not None:
            seen = eyes.sight(state.kept("plan.images.height"), state.kept("plan.images.width"))
            st.caption(t("images.tokens", height=seen.height, width=seen.width, tokens=seen.tokens + seen.beside))
    for part in ("text", "vision", "projector"):
        _switch(f"plan.images.train_{part}")


def _targets() -> None:
    """A word, or names: two widgets for one field."""
    path, language = "plan.lora.target_modules", state.language()
    value = state.kept(path)
    word = value if isinstance(value, str) else "named"
    if st.session_state.get("targets") != word:
        st.session_state["targets"] = word
    st.segmented_control(
        texts.label(path, language), ["all-linear", "attention", "named"], key="targets", required=True,
        format_func=lambda name: t(f"option.target_modules.{name}"), on_change=_target_word, width="stretch",
        help=texts.help_of(path, language),
    )  # fmt: skip
    if word == "named":
        _names(path, ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], required=True)


def _target_word() -> None:
    word = st.session_state["targets"]
    state.put("plan.lora.target_modules", ("q_proj", "v_proj") if word == "named" else word)


def _quantization() -> None:
    _segments("plan.quantization.format", _words(kinds.QuantizedFormat))
    _switch("plan.quantization.double_quant")
    _switch("plan.quantization.upcast_for_training")


def _more() -> None:
    for path, kind in (("attention", kinds.Attention), ("loss", kinds.Loss), ("kernels", kinds.Kernels)):
        _choice(f"plan.{path}", _words(kind), _labels(path, kind))
    _choice("plan.framework", list(FRAMEWORKS), {row.id: row.label for row in FRAMEWORKS.values()})
    _number("plan.gradient_accumulation_steps")
    _switch("plan.padded")
    if not OPTIMIZERS[state.kept("plan.optimizer")].frees_gradients:  # those do by themselves
        _switch("plan.optimizer_in_backward")
    if state.kept("plan.gradient_checkpointing") != "offload":  # which says so already
        _switch("plan.sharding.activation_offload")


def _words(kind: Any) -> list[str]:
    return list(get_args(kind))


def _labels(field: str, kind: Any) -> dict[str, str]:
    return {word: t(f"option.{field}.{word}") for word in get_args(kind)}


def _about(path: str) -> dict[str, Any]:
    return {"label": texts.label(path, state.language()), "help": texts.help_of(path, state.language())}


def _choice(path: str, options: list[str], labels: dict[str, str]) -> None:
    st.selectbox(**_about(path), options=options, format_func=lambda word: labels.get(word, word), **state.bound(path))


def _segments(path: str, options: list[str]) -> None:
    field = path.rpartition(".")[2]
    st.segmented_control(
        **_about(path), options=options, required=True, width="stretch", **state.bound(path),
        format_func=lambda word: t(f"option.{field}.{word}"),
    )  # fmt: skip


def _switch(path: str) -> None:
    st.toggle(**_about(path), **state.bound(path))


def _bounds(path: str) -> dict[str, Any]:
    """The field's own bounds, as the number box takes them."""
    number = type(state.kept(path))
    low, high = texts.bounds(path)
    return {"min_value": None if low is None else number(low), "max_value": None if high is None else number(high)}


def _number(path: str, *, step: float = 1, **shown: str) -> None:
    number = type(state.kept(path))
    st.number_input(**_about(path) | shown, step=number(step), **_bounds(path), **state.bound(path))


def _names(path: str, options: list[str], *, required: bool = False) -> None:
    """Names of layers: the usual ones and whatever is typed."""
    chosen = list(state.kept(path))
    key = f"{path.rpartition('.')[2]}_names"
    if st.session_state.get(key) != chosen:
        st.session_state[key] = chosen
    st.multiselect(
        **_about(path), options=[*options, *(name for name in chosen if name not in options)], accept_new_options=True,
        key=key, on_change=_took_names, args=(path, key, required),
    )  # fmt: skip


def _took_names(path: str, key: str, required: bool) -> None:
    names = tuple(name[:80] for name in st.session_state[key] if name)
    if names or not required:
        state.put(path, names)
