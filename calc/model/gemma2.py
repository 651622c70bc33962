"""Gemma 2: norms before and after each half, alternating windows, capped scores and logits.

Mirrors transformers 5.24.0 models/gemma2/modeling_gemma2.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from calc.autograd.elementwise import add, from_output, scale
from calc.autograd.tensor import Tensor
from calc.model.activations import activation_name
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, pre_norm, sizes, window
from calc.model.family import Dims, Family, lm_head, rotary_buffers
from calc.model.llama import mlp, self_attention
from calc.model.modules import Modules
from calc.model.norms import gemma_rms_norm
from calc.model.rotary import Rotation


@dataclass(frozen=True)
class Gemma2Dims(Dims):
    """Whether logits pass through a tanh that bounds them."""

    final_logit_softcapping: bool = False


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=("full", "sliding"), norm=partial(gemma_rms_norm, apart=True), scaled=True)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return sandwich(m, x, self_attention, mask, positions)


def vault_body(m: Modules, ids: Tensor) -> Tensor:
    """VaultGemma: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, vault_block, masked=("full", "sliding"), norm=gemma_rms_norm, scaled=True)


def vault_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """VaultGemma's layer: norms only in front."""
    return pre_norm(
        m,
        x,
        self_attention,
        mlp,
        mask,
        positions,
        norm=gemma_rms_norm,
        names=("input_layernorm", "pre_feedforward_layernorm"),
    )


def sandwich(m: Modules, x: Tensor, attend: Callable[..., Tensor], mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer with a norm before and after each of its halves."""
    residual = x
    x = gemma_rms_norm(m, "input_layernorm", x, apart=True)
    x = attend(m, x, mask, positions)
    x = gemma_rms_norm(m, "post_attention_layernorm", x, apart=True)
    x = add(residual, x)
    residual = x
    x = gemma_rms_norm(m, "pre_feedforward_layernorm", x, apart=True)
    x = mlp(m, x)
    x = gemma_rms_norm(m, "post_feedforward_layernorm", x, apart=True)
    return add(residual, x)


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits, bounded by a tanh if the config says so."""
    logits = lm_head(m, x)
    if m.c.final_logit_softcapping:
        logits = scale(logits)
        logits = from_output(logits, "tanh")
        logits = scale(logits)
    return logits


def capped(config: Config, name: str, default: float | None) -> bool:
    """Whether a cap is set: null means none."""
    if config.null(name) or (default is None and config.given(name) is None):
        return False
    config.number(name, default=default)
    return True


def dims(config: Config) -> Dims:
    """Gemma2Config's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    common = sizes(
        config,
        vocab_size=256000,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        tie_word_embeddings=True,
    )
    return Gemma2Dims(
        **{
            **common,
            "hidden_act": activation_name(config, "hidden_activation", default="gelu_pytorch_tanh"),
            "kinds": layer_kinds(config, common["num_hidden_layers"], lambda i: i % 2 == 0),
        },
        sliding_window=window(config, 4096),
        attention_bias=bias,
        output_bias=bias,
        attn_logit_softcapping=capped(config, "attn_logit_softcapping", 50.0),
        final_logit_softcapping=capped(config, "final_logit_softcapping", 30.0),
    )


FAMILIES = tuple(
    Family(
        id=model_type,
        types={model_type: name},
        dims=dims,
        body=forward,
        head=head,
        attentions=("eager", "flash_attention_2", "flash_attention_3"),
        buffers=lambda dims, size: rotary_buffers(dims.head_dim) + size,
        source=f"transformers 5.24.0, models/{model_type}/modeling_{model_type}.py",
    )
    for model_type, name, forward in (("gemma2", "Gemma 2", body), ("vaultgemma", "VaultGemma", vault_body))
)
