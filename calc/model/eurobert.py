"""EuroBERT: Llama's layers in which every token sees every token, with a masked-language head or a classifier of tokens.

Mirrors transformers 5.24.0 models/eurobert/modeling_eurobert.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import cast
from calc.autograd.storage import LOGITS, active
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import bidirectional_mask
from calc.model.bert import Task, cross_entropy_of, task
from calc.model.config import Config, ConfigError
from calc.model.decoder import sizes
from calc.model.family import Dims, Family
from calc.model.llama import block
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import rotation


@dataclass(frozen=True)
class EuroBertDims(Dims):
    """Llama's sizes, and which head is on it."""

    task: Task = "masked-lm"
    num_labels: int = 2


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    counted = empty((m.length,), "i64", "arange")
    mask = bidirectional_mask(m, x.dtype)
    positions = rotation(m, x.dtype, c.head_dim, counted)
    for layer in m.layers("model.layers", c.kinds):
        x = layer(block, x, mask, positions)
    x = rms_norm(m, "model.norm", x)
    del inputs_embeds
    return x


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states to the loss of the task and the logits."""
    c = m.c
    active.ledger.kind = LOGITS
    if c.task == "token-classification":
        logits = m.linear("classifier", x, c.num_labels, True, role="head")
        return cross_entropy_of(m, logits), logits
    if c.tie_word_embeddings:
        offset = m.weight("lm_head.bias", (c.vocab_size,), "bias") if c.mlp_bias else None
        logits = m.product(x, m.tied(), offset)
    else:
        logits = m.linear("lm_head", x, c.vocab_size, c.mlp_bias, role="head")
    return cross_entropy_of(m, cast(logits, "fp32")), logits


def dims(config: Config) -> Dims:
    """EuroBertConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    named = task(config)
    if named["task"] == "sequence-classification":
        raise ConfigError(
            "architectures", "should name a masked-language head or a classifier of tokens; the other is not modelled"
        )
    return EuroBertDims(
        **sizes(
            config, vocab_size=128256, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12
        ),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        **named,
    )  # fmt: skip


GAPS = frozenset(("releases before 5", "other losses"))
"""What is not modelled of this class."""

FAMILIES = (
    Family(
        id="eurobert",
        types={"eurobert": "EuroBERT"},
        dims=dims,
        body=body,
        loss=loss,
        gaps=GAPS,
        source="transformers 5.24.0, models/eurobert/modeling_eurobert.py",
    ),
)
