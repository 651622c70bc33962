"""What an optimizer allocates while it steps: the library's own loop, run on byte counts.

Each rule mirrors the order in which the library's code makes and drops tensors. A temporary is an object that counts
itself in an `Arena` when it is made and out when Python drops it, so a local variable that outlives its turn of the
loop, as many do, is counted as long as it really lives. Where a library does something more costly now and then (renews
a projection, leaves a warm-up branch), the rule runs that branch if `worst` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import Literal, Protocol

from calc.catalog.dtypes import DTYPES
from calc.catalog.optimizers.states import Settings, Weight, half_precision, orthogonalized, projection, targeted
from calc.units import Bytes

Groups = Sequence[Sequence[Weight]]
"""Parameter groups in the optimizer's order, each in the model's order."""


class Temporary:
    """A tensor of so many bytes, alive as long as Python keeps it."""

    __slots__ = ("arena", "size")

    def __init__(self, arena: Arena, size: int) -> None:
        self.arena, self.size = arena, size
        arena.live += size
        if arena.live > arena.peak:
            arena.peak, arena.at = arena.live, arena.now
        if arena.live > arena.here:
            arena.here = arena.live

    def become_permanent(self) -> None:
        """The tensor takes the place of something that was released, and stays."""
        self.size = 0

    def __del__(self) -> None:
        self.arena.live -= self.size


class Locals(SimpleNamespace):
    """Local variables of a library's function: a name holds its tensor until bound anew or the function returns."""


class Arena:
    """Live and peak bytes of temporaries, and the parameter at which the peak was reached."""

    __slots__ = ("alone", "at", "here", "live", "now", "peak", "seen")

    def __init__(self, *, alone: bool = False) -> None:
        self.alone = alone
        """Each parameter has a step of its own, so nothing waits for the next layer."""
        self.live = self.peak = self.here = 0
        self.now: Weight | None = None
        self.at: Weight | None = None
        self.seen: list[tuple[Weight, int]] = []
        """Every parameter in the order stepped, with the most bytes alive during its turn."""

    def __call__(self, size: int) -> Temporary:
        return Temporary(self, size)

    def turns(self, group: Sequence[Weight]) -> Iterator[Weight]:
        """The parameters one by one. Repeated layers come twice: what one leaves behind, the next one meets."""
        for weight in group if self.alone else in_order(group):
            if self.now is not None:
                self.seen.append((self.now, self.here))
            self.now, self.here = weight, self.live
            yield weight

    def release(self, size: int) -> None:
        """Bytes of something that stood before the step, such as a gradient, go."""
        self.live -= size


class Run(Protocol):
    """Runs one step on byte counts."""

    def __call__(self, arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None: ...


def in_order(group: Sequence[Weight]) -> Iterator[Weight]:
    """A group as the optimizer meets it, each run of repeated layers at most twice."""
    run: list[Weight] = []
    for weight in group:
        if weight.count > 1:
            run.append(weight)
            continue
        yield from run
        yield from run
        run = []
        yield weight
    yield from run
    yield from run


def size(weight: Weight) -> int:
    """Bytes of one tensor like the parameter."""
    return weight.numel * int(DTYPES[weight.dtype].size)


def widened(weight: Weight) -> int:
    """Bytes of the parameter in fp32."""
    return 4 * weight.numel


def by_dtype(group: Sequence[Weight]) -> list[int]:
    """Bytes of a whole group, dtype by dtype in order of appearance: what a foreach kernel makes one copy of."""
    totals: dict[str, int] = {}
    for weight in group:
        totals[weight.dtype] = totals.get(weight.dtype, 0) + size(weight) * weight.count
    return list(totals.values())


# ---------------------------------------------------------------------------------------- in place


def in_place(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """One kernel reads and writes everything where it lies."""


# ---------------------------------------------------------------------------------------- PyTorch


def foreach_root(arena: Arena, group: Sequence[Weight]) -> None:
    """One copy of the group: the root of the second moment, divided and shifted in place."""
    local = Locals()
    for total in by_dtype(group):
        local.root = arena(total)


def loop_root(arena: Arena, group: Sequence[Weight]) -> None:
    """The root of one parameter's second moment; it waits for the next one."""
    local = Locals()
    for weight in arena.turns(group):
        local.root = arena(size(weight))


def loop_root_divided(arena: Arena, group: Sequence[Weight]) -> None:
    """Root and quotient of one parameter at a time; the quotient waits for the next one."""
    local = Locals()
    for weight in arena.turns(group):
        root = arena(size(weight))
        local.denominator = arena(size(weight))
        del root


def adamw_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.AdamW and NAdam: fused if asked, else foreach (PyTorch's choice on a GPU), or the loop."""
    if settings.get("fused"):
        return
    for group in groups:
        (foreach_root if settings["foreach"] else loop_root_divided)(arena, group)


def rmsprop_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.RMSprop: the root of the mean square."""
    for group in groups:
        (foreach_root if settings["foreach"] else loop_root)(arena, group)


def adagrad_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.Adagrad: foreach makes the root and, without weight decay, the scaled gradient."""
    for group in groups:
        if not settings["foreach"]:
            loop_root(arena, group)
            continue
        local = Locals()
        for total in by_dtype(group):
            local.root = arena(total)
            # With weight decay the gradients were copied before, and that copy is scaled in place.
            local.numerator = arena(total)


def adamax_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.Adamax: the absolute gradient."""
    for group in groups:
        if settings["foreach"]:
            foreach_root(arena, group)
            continue
        for weight in arena.turns(group):
            arena(size(weight))


def sgd_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.SGD: in place, but for weight decay, which adds the weights to a copy of the gradients."""
    for group in groups:
        if not settings["weight_decay"]:
            continue
        if settings["foreach"]:
            foreach_root(arena, group)
        else:
            loop_root(arena, group)


def torch_adafactor_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.Adafactor: a loop, the estimate of one second moment at a time."""
    for group in groups:
        local = Locals()
        for weight in arena.turns(group):
            b = size(weight) // weight.numel
            if len(weight.shape) > 1:
                *_, rows, columns = weight.shape
                local.row_mean = arena(weight.numel // columns * b)
                local.column_mean = arena(weight.numel // rows * b)
                estimate = arena(size(weight))
                arena(weight.numel // (rows * columns) * b)
            else:
                local.squared = arena(size(weight))
                estimate = arena(size(weight))
            local.estimate = estimate
            local.update = estimate
            del estimate


def muon_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch.optim.Muon: Newton-Schulz in bf16 on one matrix at a time; a fused AdamW beside it takes the rest."""
    steps = int(settings["ns_steps"])
    for group in groups:
        local = Locals()
        for weight in arena.turns([w for w in group if orthogonalized(w, settings)]):
            local.update = arena(size(weight))
            local.update = _newton_schulz(arena, local.update, weight, steps)


def _newton_schulz(arena: Arena, update: Temporary, weight: Weight, steps: int) -> Temporary:
    local = Locals()
    local.orthogonal = update if weight.dtype == "bf16" else arena(2 * weight.numel)
    square = 2 * min(weight.shape) ** 2
    # The loop's variables outlive its turns; from the third turn on, each is like the one before.
    for _ in range(min(steps, 3)):
        local.gram = arena(square)
        local.polynomial = arena(square)
        local.orthogonal = arena(2 * weight.numel)
    return local.orthogonal  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------- Adafactor and CAME


def _factored(arena: Arena, shape: tuple[int, ...]) -> Temporary:
    """The product of row and column factors in fp32, made while both live; of a vector, the root of its moment."""
    n = prod(shape)
    if len(shape) < 2:
        return arena(4 * n)
    factors = arena(4 * n // shape[-1]), arena(4 * n // shape[-2])
    product = arena(4 * n)
    del factors
    return product


def adafactor_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """transformers' Adafactor: fp32 copies of a 16-bit gradient and weight, the squared gradient, the update."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            _adafactor(arena, local, weight, settings, project=False, worst=worst)


def galore_adafactor_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """GaLore's Adafactor: the same on the projected gradient, whose update is projected back and scaled."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            _adafactor(arena, local, weight, settings, project=targeted(weight, settings), worst=worst)


def _adafactor(arena: Arena, local: Locals, weight: Weight, settings: Settings, *, project: bool, worst: bool) -> None:
    half, shape = half_precision(weight, settings), weight.shape
    local.gradient = None
    if half:
        local.gradient = arena(widened(weight))
    if project:
        if worst:
            _decompose(arena, weight, settings, "fp32")
        _, shape = projection(weight.shape, settings, svd=True)
        local.gradient = arena(4 * prod(shape))
    local.weight = None
    if half:
        local.weight = arena(widened(weight))
    squared = arena(4 * prod(shape))
    local.update = arena(4 * prod(shape))
    del squared
    local.update = _factored(arena, shape)
    if settings["beta1"]:
        local.update = None  # the first moment, a state, takes its place
    if project:
        whole = arena(widened(weight))
        local.update = arena(widened(weight))
        del whole
    arena(widened(weight))


def came_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """CAME: as Adafactor, with the residual of the update and that residual's own factors beside it."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            n = widened(weight)
            local.gradient = None
            if half_precision(weight, settings):
                local.gradient = arena(n)
            squared = arena(n)
            local.update = arena(n)
            del squared
            local.update = _factored(arena, weight.shape)
            difference = arena(n)
            power = arena(n)
            del difference
            local.residual = arena(n)
            del power
            estimate = _factored(arena, weight.shape)
            if len(weight.shape) > 1:
                local.residual_estimate = estimate
            local.update = estimate
            del estimate
            arena(n)


# ---------------------------------------------------------------------------------------- low rank


def galore_adamw_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """GaLore's AdamW: projected gradient, root, quotient, and the quotient projected back and scaled."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            low, n = targeted(weight, settings), size(weight)
            local.gradient = None
            if low:
                if worst:
                    _decompose(arena, weight, settings, weight.dtype)
                _, shape = projection(weight.shape, settings, svd=True)
                n = n // weight.numel * prod(shape)
                local.gradient = arena(n)
            local.denominator = arena(n)
            local.update = arena(n)
            if low:
                whole = arena(size(weight))
                local.update = arena(size(weight))
                del whole


def _decompose(arena: Arena, weight: Weight, settings: Settings, dtype: str) -> None:
    """A renewed projection: both singular factors in fp32, and a product that is made and dropped."""
    rows, columns = weight.shape
    m = min(rows, columns)
    (basis_rows, basis_columns), low = projection(weight.shape, settings, svd=True)
    rank = min(basis_rows, basis_columns)
    local = Locals()
    if dtype != "fp32":
        local.matrix = arena(widened(weight))
    local.factors = arena(4 * rows * m), arena(4 * m), arena(4 * m * columns)
    diagonal = arena(4 * rank * rank)
    local.product = arena(4 * prod(low))
    del diagonal
    if dtype != "fp32":
        local.basis = arena(int(DTYPES[dtype].size) * basis_rows * basis_columns)


def galore_adamw_8bit_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """GaLore's 8-bit AdamW: each target is cloned and stands in for its own low-rank update; its gradient goes."""
    kept = []
    for group in groups:
        for weight in arena.turns(group):
            if not targeted(weight, settings):
                continue
            if worst:
                _decompose(arena, weight, settings, weight.dtype)
            n = size(weight)
            _, shape = projection(weight.shape, settings, svd=True)
            low = n // weight.numel * prod(shape)
            kept.append(arena(low))  # the projected gradient, which takes the gradient's place
            saved = arena(n)
            update = arena(low)
            arena.release(n)  # the weight's first storage; the clone becomes the weight
            arena.release(n)  # the gradient
            whole = arena(n)
            scaled = arena(n)
            del whole
            del update, scaled
            saved.become_permanent()


def apollo_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """APOLLO: low-rank states give a scale per channel, by which the raw gradient is scaled in full size."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            low, n, b = targeted(weight, settings), size(weight), size(weight) // weight.numel
            svd = settings["proj"] == "svd"
            local.gradient = None
            if low:
                basis, shape = projection(weight.shape, settings, svd=svd)
                if worst and svd:
                    _decompose(arena, weight, settings, weight.dtype)
                elif worst:
                    drawn = arena(4 * prod(basis))
                    arena(4 * prod(basis))
                    del drawn
                n = b * prod(shape)
                local.gradient = arena(n)
            local.denominator = arena(n)
            local.update = arena(n)
            if low:
                if settings["scale_type"] == "channel":
                    local.scale = arena(max(weight.shape) * b)
                local.scaled = arena(size(weight))
                local.norm = arena(b)
                local.scaled = arena(size(weight))
                local.update = local.scaled


# ---------------------------------------------------------------------------------------- inside the backward pass


def lomo_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """LOMO: gradient and weight of one parameter in fp32; the 16-bit gradient goes in between."""
    for group in groups:
        for weight in arena.turns(group):
            if half_precision(weight, settings):
                gradient = arena(widened(weight))
                arena.release(size(weight))
                arena(widened(weight))
                del gradient


def adalomo_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """AdaLomo: as LOMO, with the squared gradient and the update from factored moments."""
    for group in groups:
        for weight in arena.turns(group):
            n, half, local = widened(weight), half_precision(weight, settings), Locals()
            if half:
                local.gradient = arena(n)
                arena.release(size(weight))
            squared = arena(n)
            local.update = arena(n)
            del squared
            local.update = _factored(arena, weight.shape)
            if half:
                local.weight = arena(n)


# ---------------------------------------------------------------------------------------- others


def adamw_hf_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """transformers' own AdamW (before 5): the root of one parameter at a time."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            local.denominator = arena(size(weight))


def stable_adamw_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """torch-optimi's StableAdamW: Triton kernels on a GPU; else one parameter at a time, or all with foreach=True."""
    if settings["triton"]:
        return
    for group in groups:
        if settings["foreach"]:
            foreach_root(arena, group)
            continue
        for weight in arena.turns(group):
            power = arena(size(weight))
            arena(size(weight))
            del power


def schedule_free_adamw_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """Schedule-free AdamW: the root for every parameter at once; the first group's waits while the second's is made."""
    local = Locals()
    for group in groups:
        local.denominator = [arena(total) for total in by_dtype(group)]


def schedule_free_radam_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """Schedule-free RAdam: in place at first, then like schedule-free AdamW once the variance is rectified."""
    if worst:
        schedule_free_adamw_step(arena, groups, settings, worst=worst)


def grokadamw_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """GrokAdamW on a GPU: three states of one parameter brought from the host, the amplified gradient, the root."""
    for group in groups:
        local = Locals()
        for weight in arena.turns(group):
            n = size(weight)
            local.moments = arena(n), arena(n)
            local.slow = arena(n)
            scaled = arena(n)
            local.amplified = arena(n)
            del scaled
            arena(n)


def lion_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """pytorch_optimizer's Lion: the interpolated moment of every parameter at once."""
    for group in groups:
        for total in by_dtype(group):
            arena(total)


def ademamix_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """pytorch_optimizer's AdEMAMix: root and update of every parameter at once."""
    for group in groups:
        for total in by_dtype(group):
            root = arena(total)
            arena(total)
            del root


def prodigy_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """pytorch_optimizer's Prodigy: distances from the start, later the root, of every parameter at once on a GPU."""
    if settings["foreach"]:
        lion_step(arena, groups, settings, worst=worst)
        return
    # A first pass measures distances one by one, each dropped at once; the second is this one, with roots that wait.
    adamw_hf_step(arena, groups, settings, worst=worst)


def soap_step(arena: Arena, groups: Groups, settings: Settings, *, worst: bool) -> None:
    """SOAP: four copies of one gradient in and out of the eigenbasis, the outer products; now and then a new basis."""
    local = Locals()
    for group in groups:
        for weight in arena.turns(group):
            n, b = size(weight), size(weight) // weight.numel
            axes = (
                [d for d in weight.shape if d <= int(settings["max_precondition_dim"])] if len(weight.shape) > 1 else []
            )
            local.projected = _turned(arena, n, len(axes))
            arena(n)
            local.denominator = arena(n)
            local.moment = _turned(arena, n, len(axes))
            local.update = _turned(arena, n, len(axes), arena(n))
            _outer_products(arena, axes, b)
            if worst:
                _new_bases(arena, axes, b, n)


def _turned(arena: Arena, n: int, axes: int, source: Temporary | None = None) -> Temporary | None:
    """A gradient turned axis by axis; an axis without basis is only permuted, which is a view."""
    for _ in range(axes):
        source = arena(n)
    return source


def _outer_products(arena: Arena, axes: Sequence[int], b: int) -> None:
    local = Locals()
    for d in axes:
        local.product = arena(d * d * b)


def _new_bases(arena: Arena, axes: Sequence[int], b: int, n: int) -> None:
    """One round of power iteration and QR in fp32 for each axis."""
    local, bases = Locals(), []
    for d in axes:
        local.matrix_product = arena(d * d * b)
        arena(d * d * b)
        local.sorted_moment = arena(n)
        local.power = arena(d * d * b)
        wide = arena(4 * d * d) if b != 4 else None
        local.q, local.upper = arena(4 * d * d), arena(4 * d * d)
        del wide
        if b != 4:
            local.q = arena(d * d * b)
        bases.append(local.q)


# ---------------------------------------------------------------------------------------- clipping


NORM_CHUNK = 65_536
"""Elements per block of PyTorch's multi-tensor kernels (`kChunkSize`, MultiTensorApply.cuh)."""


def clipping(parameters: Sequence[Weight]) -> Bytes:
    """Bytes that `clip_grad_norm_` allocates on a GPU: partial sums for every tensor, then a norm per tensor.

    The partial sums are one fp32 array of tensors times chunks of the longest tensor, whatever the shorter ones need
    (`foreach_tensor_norm_cuda`, ForeachReduceOp.cu).
    """
    most = 0
    groups: dict[str, list[Weight]] = {}
    for weight in parameters:
        groups.setdefault(weight.dtype, []).append(weight)
    norms = 0
    for dtype, group in groups.items():
        b = int(DTYPES[dtype].size)
        tensors = sum(weight.count for weight in group)
        chunks = -(-max(weight.numel for weight in group) // NORM_CHUNK)
        norms += tensors * b
        most = max(most, norms + 4 * tensors * chunks)
    widest = max((int(DTYPES[dtype].size) for dtype in groups), default=0)
    stacked = 2 * norms + widest
    return Bytes(max(most, stacked))


# ---------------------------------------------------------------------------------------- with their formulas


def _kernel(settings: Settings, *, foreach: str, loop: str) -> str:
    if settings.get("fused") or settings.get("triton"):
        return "0: one kernel, in place"
    return f"{foreach} of the larger group" if settings.get("foreach") else f"{loop} of the largest parameter"


@dataclass(frozen=True, slots=True)
class StepRule:
    """The step of an optimizer: how it runs on byte counts, and its peak in the field's symbols."""

    run: Run
    formula: Callable[[Settings], str]
    certainty: Literal["exact", "modelled"] = "exact"
    """Exact: as recorded. Modelled: read in the library's code, or beside a solver or compiler whose own memory is not counted."""


IN_PLACE = StepRule(in_place, lambda s: "0: in place")
COMPILED = StepRule(in_place, lambda s: "0: compiled, in registers", "modelled")
ADAMW = StepRule(adamw_step, lambda s: _kernel(s, foreach="P·b", loop="2·n·b"))
RMSPROP = StepRule(rmsprop_step, lambda s: _kernel(s, foreach="P·b", loop="n·b"), "modelled")
ADAGRAD = StepRule(adagrad_step, lambda s: _kernel(s, foreach="2·P·b", loop="n·b"), "modelled")
ADAMAX = StepRule(adamax_step, lambda s: _kernel(s, foreach="P·b", loop="n·b"), "modelled")
SGD = StepRule(sgd_step, lambda s: _kernel(s, foreach="P·b", loop="n·b") if s["weight_decay"] else "0: in place")
TORCH_ADAFACTOR = StepRule(
    torch_adafactor_step, lambda s: "n·b of the largest parameter, and what waits from the one before"
)
MUON = StepRule(muon_step, lambda s: "n·b + 4·n + 4·min(r, c)² of the largest matrix")
ADAFACTOR = StepRule(adafactor_step, lambda s: "8·n of the largest parameter, 16·n if it is 16-bit")
GALORE_ADAFACTOR = StepRule(
    galore_adafactor_step, lambda s: "8·n of the largest parameter (16-bit: 16·n), or its singular vectors", "modelled"
)
CAME = StepRule(came_step, lambda s: "12·n of the largest parameter, 16·n if it is 16-bit")
GALORE_ADAMW = StepRule(
    galore_adamw_step, lambda s: "2·n·b of the largest parameter, or its singular vectors in fp32", "modelled"
)
GALORE_ADAMW_8BIT = StepRule(
    galore_adamw_8bit_step, lambda s: "n·b of the largest target, or its singular vectors in fp32", "modelled"
)
APOLLO = StepRule(apollo_step, lambda s: "2·n·b of the largest parameter")
LOMO = StepRule(lomo_step, lambda s: "8·n − n·b of the largest parameter if it is 16-bit, else 0", "modelled")
ADALOMO = StepRule(adalomo_step, lambda s: "12·n − n·b of the largest parameter if it is 16-bit, else 8·n", "modelled")
ADAMW_HF = StepRule(adamw_hf_step, lambda s: "n·b of the largest parameter", "modelled")
STABLE_ADAMW = StepRule(stable_adamw_step, lambda s: _kernel(s, foreach="P·b", loop="2·n·b"), "modelled")
SCHEDULE_FREE_ADAMW = StepRule(schedule_free_adamw_step, lambda s: "P·b")
SCHEDULE_FREE_RADAM = StepRule(
    schedule_free_radam_step, lambda s: "P·b once rectified, 0 in the first steps", "modelled"
)
GROKADAMW = StepRule(grokadamw_step, lambda s: "5·n·b of the largest parameter", "modelled")
LION = StepRule(lion_step, lambda s: "P·b")
ADEMAMIX = StepRule(ademamix_step, lambda s: "2·P·b")
PRODIGY = StepRule(prodigy_step, lambda s: _kernel(s, foreach="P·b", loop="n·b"), "modelled")
SOAP = StepRule(soap_step, lambda s: "5·n·b of the largest parameter and squares of its axes", "modelled")
