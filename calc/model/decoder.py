"""What nearly every decoder has in common: the sizes in its config.json, the kinds of its layers, and the run through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from calc.autograd.elementwise import add, dropout
from calc.autograd.tensor import Tensor
from calc.model.activations import activation_name
from calc.model.attention import causal_mask
from calc.model.config import Config, ConfigError
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotation

_KINDS = {"full_attention": "full", "sliding_attention": "sliding"}


def sizes(
    config: Config,
    *,
    vocab_size: int,
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    intermediate_size: int | None = None,
    num_key_value_heads: int | None = None,
    head_dim: int | None = None,
    hidden_act: str = "silu",
    attention_dropout: float = 0.0,
    tie_word_embeddings: bool = False,
    names: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, Any]:
    """The fields of `Dims` that most classes spell alike; each argument is the class's default, None for what the class derives.

    `names` says how a class spells fields otherwise. Every layer is of the kind "full".
    """

    def called(field: str) -> tuple[str, ...]:
        return (names or {}).get(field, (field,))

    hidden = config.integer(*called("hidden_size"), default=hidden_size)
    heads = config.integer(*called("num_attention_heads"), default=num_attention_heads, high=4096)
    layers = config.integer(*called("num_hidden_layers"), default=num_hidden_layers, high=2000)
    if config.null("num_key_value_heads"):
        num_key_value_heads = None
    few = config.integer(*called("num_key_value_heads"), default=num_key_value_heads or heads, high=4096)
    if heads // few * few != heads:
        raise ConfigError("num_key_value_heads", f"should divide num_attention_heads ({heads}), not {few}")
    if config.null("head_dim"):
        head_dim = None
    if head_dim is None and heads > hidden:
        raise ConfigError("num_attention_heads", f"should not exceed hidden_size ({hidden}), not {heads}")
    return {
        "vocab_size": config.integer("vocab_size", default=vocab_size),
        "hidden_size": hidden,
        "intermediate_size": config.integer(*called("intermediate_size"), default=intermediate_size or 4 * hidden),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": few,
        "head_dim": config.integer("head_dim", default=head_dim or hidden // heads, high=65536),
        "hidden_act": activation_name(config, *called("hidden_act"), default=hidden_act),
        "tie_word_embeddings": config.boolean("tie_word_embeddings", default=tie_word_embeddings),
        "attention_dropout": share(config, *called("attention_dropout"), default=attention_dropout),
        "kinds": ("full",) * layers,
    }


def share(config: Config, *names: str, default: float = 0.0) -> float:
    """A probability, like a dropout's."""
    return config.number(*names, default=default, low=0.0, high=1.0)


def layer_kinds(config: Config, layers: int, sliding: Callable[[int], bool]) -> tuple[str, ...]:
    """ "full" or "sliding" for each layer: as `layer_types` lists them, else by the class's rule for layer i."""
    if config.given("layer_types") is None:
        return tuple(["sliding" if sliding(i) else "full" for i in range(layers)])
    types = config.texts("layer_types")
    if len(types) != layers:
        raise ConfigError("layer_types", f"should have num_hidden_layers ({layers}) entries, not {len(types)}")
    for name in types:
        if name not in _KINDS:
            raise ConfigError("layer_types", f"should hold {' or '.join(_KINDS)}, not {name[:40]!r}")
    return tuple([_KINDS[name] for name in types])


def window(config: Config, default: int | None) -> int | None:
    """`sliding_window`: how many tokens back a sliding layer sees; null for none."""
    if config.null("sliding_window"):
        return None
    return config.integer("sliding_window", default=default, high=10**9)


def switched_window(config: Config, layers: int) -> dict[str, Any]:
    """The window of classes with the switch `use_sliding_window`: the layers from `max_window_layers` on have it, if it is on."""
    size = window(config, 4096) if config.boolean("use_sliding_window", default=False) else None
    first = config.integer("max_window_layers", default=28, low=0)
    return {"sliding_window": size, "kinds": layer_kinds(config, layers, lambda i: size is not None and i >= first)}


def rotary_dim(config: Config, head_dim: int, default: float) -> int:
    """The components of a head that are rotated: `partial_rotary_factor` of them, given at the top or beside the rotary base."""
    factor = config.given("partial_rotary_factor")
    for name in ("rope_parameters", "rope_scaling"):
        inner = config.given(name)
        if isinstance(inner, Mapping) and inner.get("partial_rotary_factor") is not None:
            factor = inner["partial_rotary_factor"]
    if factor is None:
        factor = default
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 1:
        raise ConfigError("partial_rotary_factor", f"should be a number above 0 and at most 1, not {str(factor)[:40]}")
    share = Fraction(factor).limit_denominator(10_000)
    return head_dim * share.numerator // share.denominator


def masks(m: Modules, dtype: str, kinds: Sequence[str]) -> Mapping[str, Tensor | None]:
    """The mask of each kind of attention, made once per forward. A window as long as the sequence needs a mask like a shorter one.

    Chunks are a window too, but their mask is made for each sequence. A model around this one may have made masks of its own.
    """
    if m.masks is not None:
        return m.masks
    window = m.c.sliding_window
    short = window is not None and m.length >= window
    if m.recipe.one_mask and m.recipe.attention == "eager":  # layers with a window make theirs of it
        return dict.fromkeys(kinds, causal_mask(m, dtype))
    return {
        kind: causal_mask(m, dtype, windowed=short and kind == "sliding", chunked=short and kind == "chunked")
        for kind in kinds
    }


def decoder(
    m: Modules,
    ids: Tensor,
    block: Callable[..., Tensor],
    *,
    masked: Sequence[str] = ("full",),
    others: Mapping[str, Callable[..., Tensor]] | None = None,
    norm: Callable[[Modules, str, Tensor], Tensor] = rms_norm,
    scaled: bool = False,
    embed: Callable[[Tensor], Tensor] | None = None,
    dropped: float = 0.0,
    rotary_dim: int | None = None,
    rotary_dtype: str | None = None,
    angles: Callable[[Modules, str, int], Rotation] = rotation,
    names: tuple[str, str, str] = ("model.embed_tokens", "model.layers", "model.norm"),
) -> Tensor:
    """Embeddings, the layers, the last norm: token ids (rows,) to hidden states (rows, hidden_size).

    A layer's kind is the mask that it wants, or "none", and, if it is unlike the others, a word for that: "full", "sliding dense".
    masked: the kinds of mask that the model makes.
    others: by that word, the layers that run instead of `block`.
    scaled: its embedding module multiplies what it looks up; `embed` is what the model itself does to the embeddings, and
        `dropped` the dropout that it puts on them.
    rotary_dim, rotary_dtype: of cos and sin, if not the head's size and the dtype of the hidden states.
    angles: makes cos and sin from the dtype and size.
    names: of the embedding, of what the layers are in, and of the last norm.
    """
    c = m.c
    x = m.embedding(names[0], ids, c.vocab_size, c.hidden_size, scaled=scaled)
    if embed is not None:
        x = embed(x)
    inputs_embeds = x
    x = dropout(x, dropped)
    mask = {**masks(m, x.dtype, masked), "none": None}
    positions = angles(m, rotary_dtype or x.dtype, c.head_dim if rotary_dim is None else rotary_dim)
    for layer, kind in zip(m.layers(names[1], c.kinds), c.kinds, strict=True):
        mask_kind, _, word = kind.partition(" ")
        x = layer(others[word] if word and others else block, x, mask[mask_kind], positions)
    x = norm(m, names[2], x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def pre_norm(
    m: Modules,
    x: Tensor,
    attend: Callable[..., Tensor],
    feed: Callable[[Modules, Tensor], Tensor],
    mask: Tensor | None,
    positions: Rotation | None,
    *,
    norm: Callable[[Modules, str, Tensor], Tensor] = rms_norm,
    names: tuple[str, str] = ("input_layernorm", "post_attention_layernorm"),
    joined: Callable[[Modules, Tensor], Tensor] = lambda m, x: x,
) -> Tensor:
    """A layer with two halves on the residual stream, attention and feed-forward, each with a norm in front.

    `joined` is what happens to a half's result before it joins the stream: a dropout, a factor.
    """
    residual = x
    x = norm(m, names[0], x)
    x = attend(m, x, mask, positions)
    x = add(residual, joined(m, x))
    residual = x
    x = norm(m, names[1], x)
    x = feed(m, x)
    return add(residual, joined(m, x))
