"""Time and cost of a run.

FLOPs from the model's own parameters, hours as a range, money at a price that the visitor types.

Symbols: P parameters that multiply a token (the input embedding is only looked up; a tied table counts as the head), A
the attention's FLOPs per token, s tokens per sequence, w = heads · head_dim, L layers, c FLOPs per parameter and
token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calc.catalog.gpus import Gpu
from calc.catalog.throughput import Family, utilisation
from calc.model.counting import part_of
from calc.model.family import Dims
from calc.model.parameters import Parameter
from calc.model.vision import Seeing
from calc.schedule.expression import number
from calc.units import count


@dataclass(frozen=True, slots=True)
class Work:
    """What of a model costs FLOPs."""

    matmul_parameters: int
    """P, of experts only those that a token passes."""
    adapter_parameters: int
    attention_width: int
    """w."""
    windows: tuple[int | None, ...]
    """For each layer, how many tokens back it looks; None for all."""


def work(dims: Dims, parameters: Sequence[Parameter]) -> Work:
    """The work of a model on a token, from what its forward pass asked for; of one that sees images that of its text model alone."""
    if isinstance(dims, Seeing):
        dims, parameters = dims.text, [p for p in parameters if part_of(p.name) == "text"]
    products = {"linear", "head", "router", "expert"}
    P = sum(p.numel * p.count for p in parameters if p.role in products and not p.is_expert and len(p.shape) > 1)
    experts = sum(p.numel * p.count for p in parameters if p.is_expert)
    if experts:
        # Only mixtures have experts, and their sizes say how many of them a token passes.
        P += experts * getattr(dims, "num_experts_per_tok") // getattr(dims, "num_experts")  # noqa: B009
    if dims.tie_word_embeddings:
        P += dims.vocab_size * dims.hidden_size
    return Work(
        matmul_parameters=P,
        adapter_parameters=sum(p.numel * p.count for p in parameters if p.role == "adapter"),
        attention_width=dims.num_attention_heads * dims.head_dim,
        windows=tuple(dims.sliding_window if kind.startswith("sliding") else None for kind in dims.kinds),
    )


@dataclass(frozen=True, slots=True)
class TokenFlops:
    """FLOPs of one token in training."""

    weights: float
    """Products with weights: c · P, adapters included."""
    attention: float
    """Scores and values."""
    recomputed: float
    """The forward pass again, with gradient checkpointing."""
    formula: str
    numbers: str

    @property
    def model(self) -> float:
        """What MFU counts: recomputation left out."""
        return self.weights + self.attention

    @property
    def total(self) -> float:
        """What the card computes."""
        return self.model + self.recomputed


def flops_per_token(work: Work, *, family: Family, checkpointed: bool, seq_len: int, causal: bool = True) -> TokenFlops:
    """FLOPs per token of a sequence of `seq_len`.

    Full: 6P (2 forward, 4 backward), 8P checkpointed. Adapters: 4P and 6P, because the frozen weights need no gradient
    of their own. Attention: 4 · w · (tokens seen) forward and twice that backward in each layer; causal kernels see
    half on average.
    """
    c = 6 if family == "full" else 4
    seen = sum(_seen(seq_len, window, causal) for window in work.windows)
    forward = 4.0 * work.attention_width * seen
    weights = float(c * work.matmul_parameters + (6 * work.adapter_parameters if family != "full" else 0))
    again = 2.0 * work.matmul_parameters + forward if checkpointed else 0.0
    P = count(work.matmul_parameters)
    return TokenFlops(
        weights,
        3 * forward,
        again,
        f"{c}P + 3A{' + 2P + A' if checkpointed else ''}, A = 4 · w · Σ tokens seen",
        f"{c} · {P} + 3A{f' + 2 · {P} + A' if checkpointed else ''}, A = 4 · {number(work.attention_width)} · "
        f"{number(seen)}",
    )


def _seen(seq_len: int, window: int | None, causal: bool) -> float:
    """Tokens that a token looks at, on average over a sequence."""
    if not causal:
        return float(seq_len)
    reach = seq_len if window is None else min(window, seq_len)
    # The first `reach` tokens see what is before them, the others `reach`.
    return (reach * (reach + 1) / 2 + (seq_len - reach) * reach) / seq_len


@dataclass(frozen=True, slots=True)
class Range:
    """A figure known only as a range."""

    low: float
    expected: float
    high: float

    def scaled(self, factor: float) -> Range:
        """The range times a factor."""
        return Range(self.low * factor, self.expected * factor, self.high * factor)


class NoPeak(ValueError):
    """A card whose bf16 throughput nobody has published."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """Hours of a run and how they come about."""

    hours: Range
    tokens_per_second: Range
    """Of the whole machine."""
    utilisation: Range
    sources: tuple[str, ...]
    """Ids in `calc.catalog.throughput.PUBLISHED`; none where nothing was published for the card."""
    formula: str
    numbers: str


def run_time(
    flops: TokenFlops,
    *,
    tokens: float,
    gpu: Gpu,
    num_gpus: int,
    family: Family,
    share_of_peak: Range | None = None,
) -> RunTime:
    """How long `tokens` tokens take, padding counted as tokens. `share_of_peak` overrides the published range.

    Raises `NoPeak` for a card without a published bf16 (or fp16) throughput.
    """
    peak = gpu.bf16_dense_tflops or gpu.fp16_dense_tflops
    if peak is None:
        raise NoPeak(f"no published 16-bit throughput for {gpu.name}")
    row = utilisation(gpu, family)
    share = share_of_peak or Range(row.low, row.expected, row.high)

    def seconds(of_peak: float) -> float:
        return tokens * flops.total / (peak * 1e12 * of_peak * num_gpus)

    hours = Range(*(seconds(x) / 3600 for x in (share.high, share.expected, share.low)))
    speed = Range(*(tokens / seconds(x) if tokens else 0.0 for x in (share.low, share.expected, share.high)))
    return RunTime(
        hours,
        speed,
        share,
        () if share_of_peak else row.rows,
        "tokens · FLOPs per token / (peak · utilisation · GPUs)",
        f"{count(round(tokens))} · {flops.total / 1e9:,.1f} GFLOP / ({number(peak)} TFLOP/s · "
        f"{share.expected:.0%} · {number(num_gpus)})",
    )


def cost(time: RunTime, *, price_per_gpu_hour: float, num_gpus: int) -> Range:
    """Money for the hours at a price per card and hour."""
    return time.hours.scaled(price_per_gpu_hour * num_gpus)
