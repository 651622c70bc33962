"""Phi-3.5-MoE: LayerNorm, biases, and a router that draws its two experts at random while it trains. Mirrors transformers 5.24.0
models/phimoe/modeling_phimoe.py."""

from __future__ import annotations

from calc.autograd.elementwise import cast
from calc.autograd.shapes import cat
from calc.autograd.tensor import Tensor, empty, record
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes, window
from calc.model.experts import MixtureDims, chosen, experts
from calc.model.family import Dims, Family, lm_head
from calc.model.llama import self_attention
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=m.c.kinds[:1], norm=layer_norm)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture, mask, positions, norm=layer_norm)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts."""
    scores = m.linear("mlp.router", x, m.c.num_experts)
    weights, places = sparse_mixer(scores, scores.dtype if m.recipe.autocast is None else "fp32")
    return experts(m, "mlp.experts", x, (scores, weights, places))


def sparse_mixer(scores: Tensor, wide: str) -> tuple[Tensor, Tensor]:
    """Two experts for each row of scores, drawn one after the other: weights and places, each (rows, 2). `wide` is the dtype of logarithms and
    softmax, which autocast does in fp32.

    The gradient goes past the softmax that made the weights, straight to the scores.
    """
    first, first_place, first_maxima = _drawn(scores, wide)
    masked = record("scatter", scores.shape, scores.dtype, (scores,), lambda g: (None,), (first_place.storage,))
    second, _second_place, second_maxima = _drawn(scores, wide, masked)
    rows = (scores.shape[0], 2)
    weights = cat((first, second), rows)
    places = empty(rows, "i64", "cat")
    del first_maxima, second_maxima
    return weights, places


def _drawn(scores: Tensor, wide: str, masked: Tensor | None = None) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """One expert for each row: its weight and place (rows, 1), and the maxima that the frame holds on to."""
    shape, dtype = scores.shape, scores.dtype
    one = (shape[0], 1)
    threshold, best = empty(one, dtype, "max"), empty(one, "i64", "max")
    factor = empty(shape, dtype, "clamp")
    difference = empty(shape, dtype, "sub")
    quotient = empty(shape, dtype, "div")
    del difference
    ignored = empty(shape, "bool", "gt")
    del quotient, threshold
    kept = empty(shape, dtype, "masked_fill")
    noise = empty(shape, dtype, "empty_like")
    spread = cast(noise, wide)
    logarithm = empty(shape, wide, "log")
    del noise, spread
    drawn = empty(shape, wide, "sub")
    del logarithm
    values, place = empty((shape[0],), wide, "max"), empty((shape[0],), "i64", "max")
    del drawn, values
    spread = cast(kept, wide)
    gates = empty(shape, wide, "_softmax")
    del kept, spread
    weight = empty(one, wide, "gather")
    largest, best = empty(one, wide, "max"), empty(one, "i64", "max")
    halved = empty(one, wide, "_to_copy")

    def backward(g: Tensor) -> tuple[Tensor]:
        scaled = empty(one, wide, "mul")
        negated = empty(one, wide, "mul")
        result = empty(shape, wide, "mul")
        del scaled, negated
        return (result,)

    saved = (ignored.storage, place.storage, gates.storage, weight.storage)
    result = record("PhimoeMultiplier", one, wide, (scores,), backward, saved)
    return result, place, (factor, ignored, gates, largest, best, halved, *(() if masked is None else (masked,)))


def head(m: Modules, x: Tensor) -> Tensor:
    """lm_head, with a bias if the config says so."""
    return m.linear("lm_head", x, m.c.vocab_size, m.c.head_bias, role="head") if m.c.head_bias else lm_head(m, x)


def dims(config: Config) -> Dims:
    """PhimoeConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=32064, hidden_size=4096, intermediate_size=6400, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8,
    )  # fmt: skip
    size = window(config, None)
    bias = config.boolean("attention_bias", default=False)
    count, _ = chosen(config, "num_local_experts", default=16, top=2)
    return MixtureDims(
        **{**common, "kinds": ("full" if size is None else "sliding",) * common["num_hidden_layers"]},
        attention_bias=bias,
        output_bias=bias,
        sliding_window=size,
        num_experts=count,
        num_experts_per_tok=2,
        moe_intermediate_size=common["intermediate_size"],
        head_bias=config.boolean("lm_head_bias", default=False),
    )


FAMILIES = (
    Family(
        id="phimoe",
        types={"phimoe": "Phi-3.5-MoE"},
        dims=dims,
        body=body,
        head=head,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/phimoe/modeling_phimoe.py",
    ),
)
