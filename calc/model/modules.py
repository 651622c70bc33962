"""Modules: the weights that a forward pass asks for by name, and what a framework puts around the primitives.

A family's forward pass calls `m.linear("self_attn.q_proj", x, width)`. Here that becomes a plain product, one under autocast, one
with an adapter beside it, or one with a quantised weight, as in torch, PEFT and bitsandbytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from calc.autograd.elementwise import add_broadcast, cast, scale
from calc.autograd.linear import mm
from calc.autograd.lookup import embedding
from calc.autograd.offload import AWAY
from calc.autograd.quantized import int8_mm, packed4_mm
from calc.autograd.shapes import row_by_row
from calc.autograd.storage import ACTIVATIONS, CASTS, Standing, Storage, active
from calc.autograd.tensor import (
    Accumulate,
    Checkpoint,
    Leaf,
    Shape,
    Tensor,
    backward,
    parameter,
    record,
    recording_mode,
)
from calc.model.adapters import adapted, fused, targeted
from calc.model.parameter_adapters import converted
from calc.model.parameters import Parameter, Role
from calc.model.recipe import Recipe

if TYPE_CHECKING:
    from calc.model.sharding import FullyShard

ATTENTION = frozenset(("flash attention", "efficient attention"))
"""What selective checkpointing does not compute again in TRL (`gradient_checkpointing_kwargs={"selective": True}`)."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A part of the model with sizes of its own, such as a vision tower: what `Modules` works with while the part runs."""

    dims: Any
    batch: int
    length: int
    part: str
    """One of `calc.model.recipe.PARTS`."""
    home: str = ""
    """Where its modules hang, in place of the "model" that they begin with elsewhere."""
    padded: bool = False


class Modules:
    """The model while it runs: recipe, weights by name, and the block that runs."""

    def __init__(
        self, recipe: Recipe, dims: Any, on_gradient: Callable[[Leaf], None] | None = None, model_type: str = ""
    ) -> None:
        self.recipe, self.whole, self.on_gradient, self.model_type = recipe, dims, on_gradient, model_type
        self.enter(Stack(dims, recipe.batch, recipe.length, "text", padded=recipe.padded))
        self.prefix = ""
        self.block: int | None = None
        self.weights: dict[tuple[int | None, str], Leaf] = {}
        self.roles: dict[tuple[int | None, str], tuple[str, Role]] = {}
        self.blocks: list[tuple[int, str]] = []
        self.casts: dict[int, Tensor] = {}
        self.table: Tensor | None = None
        self.held: list[Any] = []
        """What the block's Python frame keeps alive until it returns."""
        self.returned: list[Any] = []
        """What the last block returned beside its result: kept until the next one is done, or the model's forward."""
        self.in_forward = True
        self.viewed = False
        self.waiting: dict[str, Tensor] = {}
        """Results of layers that a fused kernel computed with another's, until they are asked for."""
        self.contexts: list[Any] = []
        """What the graph's own functions keep alive until the graph is let go, after the backward."""
        self.not_adapted, self.adapted_parameters = (
            (frozenset[str](), frozenset[str]())
            if recipe.adapters is None
            else converted(model_type, recipe.adapters.targets, recipe.grouped_experts)
        )
        """Layers that get no adapter, by the last part of their name, since parameters have one in their stead; and those parameters."""
        self.outputs: list[Tensor] = []
        """What the caller of the model keeps alive until the step is over."""
        self.given: tuple[Tensor, ...] = ()
        """Inputs beside the token ids: images."""
        self.padding: Tensor | None = None
        """The batch's own mask (rows, 1), where there is padding and layers multiply their states by it."""
        self.sees: Callable[[Tensor], Tensor] | None = None
        """What puts images in the place of their tokens, in the result of the input embedding."""
        self.masks: Mapping[str, Tensor | None] | None = None
        """Masks that were made before the text model runs, in place of its own."""
        self.frame: list[Tensor] = []
        """What the model around the text model keeps alive until its forward is over."""
        self.deep: list[Tensor] = []
        """Features that join the text model's first layers."""
        self.seen: list[Tensor] = []
        """What the model hands back of its images, alive until the loss is there."""
        self.apart = False
        """Nothing uses what runs now, so its weights get no gradient."""
        self.without_gradient: set[tuple[int | None, str]] = set()
        self.sharding: FullyShard | None = None
        """What gathers the weights of a block before it runs, where each GPU has a share of them."""

    # -- parts -----------------------------------------------------------------------------------------------------------

    def enter(self, stack: Stack) -> None:
        """Work with the sizes of a part from now on."""
        self.stack, self.c = stack, stack.dims
        self.batch, self.length, self.rows = stack.batch, stack.length, stack.batch * stack.length
        if self.recipe.padded != stack.padded:
            self.recipe = replace(self.recipe, padded=stack.padded)

    @contextmanager
    def within(self, stack: Stack) -> Iterator[None]:
        """Work with the sizes of a part in this block."""
        before = self.stack
        self.enter(stack)
        try:
            yield
        finally:
            self.enter(before)

    @property
    def trains(self) -> bool:
        """Whether the part that runs is trained."""
        return self.stack.part in self.recipe.trained

    # -- weights ---------------------------------------------------------------------------------------------------------

    def weight(
        self, name: str, shape: Shape, role: Role, *, dtype: str | None = None, trainable: bool | None = None
    ) -> Tensor:
        """The parameter of that name in the block that runs, made on first use."""
        key = (self.block, name)
        found = self.weights.get(key)
        if found is None:
            if trainable is None:
                trainable = self.recipe.adapters is None and self.trains
                if self.recipe.adapters is not None and self._saved_whole(name):
                    self._make(f"{name} (original)", shape, dtype or self.recipe.dtype, role, False)
                    trainable = True
            found = self._make(name, shape, dtype or self.recipe.dtype, role, trainable)
        return found

    def _make(self, name: str, shape: Shape, dtype: str, role: Role, trainable: bool) -> Leaf:
        found = self.weights[(self.block, name)] = parameter(shape, dtype, name, trainable)
        found.role = role
        full = self.prefix + name
        if self.stack.home and full.startswith("model."):
            full = self.stack.home + full.removeprefix("model")
        self.roles[(self.block, name)] = (full, role)
        if self.apart:
            self.without_gradient.add((self.block, name))
        if trainable:
            found.hook = self.on_gradient
        sharded = self.recipe.sharded
        if trainable and self.recipe.accumulated and (sharded is None or sharded.turn != "each"):
            found.grad = Tensor(shape, found.dtype, Standing(shape, found.dtype, "gradient"))
        return found

    def _saved_whole(self, name: str) -> bool:
        """Whether PEFT's `modules_to_save` means this layer: it is copied, and the copy is trained whole."""
        adapters = self.recipe.adapters
        if adapters is None or not adapters.saved_modules:
            return False
        return any(f".{module}." in f".{name}." for module in adapters.saved_modules)

    def tied(self) -> Tensor:
        """The input embedding's table, used again; where PEFT was told to save the head, a trained copy of it."""
        assert self.table is not None
        if self._saved_whole("lm_head.weight"):
            return self.weight("lm_head.weight (copy)", self.table.shape, "head", trainable=True)
        return self.table

    def lowered(self, weight: Tensor) -> Tensor:
        """A weight, or another leaf, as autocast hands it to a product: cast once per forward if it needs a gradient, else each time."""
        to = self.recipe.autocast
        if to is None or weight.dtype != "fp32":
            return weight
        if not weight.requires_grad:
            return cast(weight, to)
        known = self.casts.get(id(weight))
        if known is None:
            ledger = active.ledger
            before, ledger.kind = ledger.kind, CASTS
            known = self.casts[id(weight)] = cast(weight, to)
            ledger.kind = before
        return known

    # -- layers ----------------------------------------------------------------------------------------------------------

    def matmul(self, name: str, x: Tensor, out: int, bias: bool = False) -> Tensor:
        """A linear layer that is written x @ weight.T + bias: autocast casts the weight's view each time, and the bias is added by itself."""
        self.viewed = True
        try:
            return self.linear(name, x, out, bias)
        finally:
            self.viewed = False

    def linear(
        self, name: str, x: Tensor, out: int, bias: bool = False, *, role: Role = "linear", transposed: bool = False
    ) -> Tensor:
        """nn.Linear(x.shape[-1], out) of that name, with whatever the recipe puts around it."""
        adapters = self.recipe.adapters
        if (
            adapters is not None
            and role == "linear"
            and self.trains
            and targeted(name, adapters.targets)
            and not (self.not_adapted and name.rpartition(".")[2] in self.not_adapted)
        ):
            known = fused(self, adapters, name, x, out, bias)
            if known is not None:
                return known
            return adapted(self, adapters, name, x, out, bias, transposed)
        return self._plain(name, x, out, bias, role, transposed)

    def base_linear(self, name: str, x: Tensor, out: int, bias: bool, transposed: bool) -> Tensor:
        """The layer that an adapter stands beside."""
        return self._plain(f"{name}.base_layer", x, out, bias, "linear", transposed)

    def _plain(self, name: str, x: Tensor, out: int, bias: bool, role: Role, transposed: bool) -> Tensor:
        shape = (x.shape[-1], out) if transposed else (out, x.shape[-1])
        if self.recipe.quantized is not None and role == "linear" and not self._saved_whole(name):
            return self._quantized(name, x, (out, x.shape[-1]), bias)
        weight = self.weight(f"{name}.weight", shape, role)
        offset = self.weight(f"{name}.bias", (out,), "bias") if bias else None
        if not self.viewed:
            return self.product(x, weight, offset, transposed=transposed)
        to = self.recipe.autocast
        y = mm(x, weight) if to is None else _cast_product(x, weight, to)
        return y if offset is None else add_broadcast(y, offset)

    def _quantized(self, name: str, x: Tensor, shape: Shape, bias: bool) -> Tensor:
        """bitsandbytes' Linear4bit and Linear8bitLt."""
        base = self.recipe.quantized
        assert base is not None
        self.weight(f"{name}.weight", shape, "linear", dtype=base.dtype, trainable=False)
        kept = (
            None if base.format == "int8" else base.compute
        )  # the first forward turns the bias itself to the products' dtype
        offset = self.weight(f"{name}.bias", (shape[0],), "bias", dtype=kept) if bias else None
        if base.format == "int8":
            return int8_mm(x, shape, bias=offset)
        dtype = x.dtype
        x = cast(x, base.compute)
        if offset is not None:
            offset = cast(offset, base.compute)
        return cast(packed4_mm(x, shape, nested=base.double_quant, bias=offset), dtype)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, transposed: bool = False) -> Tensor:
        """F.linear, under autocast if there is one, which casts from the last argument to the first.

        What the head saves is needed again at once, so it never goes to host memory.
        """
        mode = recording_mode
        if mode.offload is None or (weight is not self.table and not weight.name.startswith("lm_head.")):
            return self._product(x, weight, bias, transposed)
        offload, mode.offload = mode.offload, None
        try:
            return self._product(x, weight, bias, transposed)
        finally:
            mode.offload = offload

    def _product(self, x: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
        if self.recipe.autocast is not None:
            if not transposed:
                bias = None if bias is None else self.lowered(bias)
            weight = self.lowered(weight)
            # A leaf is kept like a weight; x itself is held by the frame that called.
            lowered = cast(x, self.recipe.autocast) if x.accumulator is None else self.lowered(x)
            if transposed:  # addmm has its bias in front
                bias = None if bias is None else self.lowered(bias)
            return mm(row_by_row(lowered), weight, bias, transposed=transposed)
        return mm(row_by_row(x), weight, bias, transposed=transposed)

    def embedding(
        self, name: str, ids: Tensor, num_rows: int, width: int, role: Role = "embedding", *, scaled: bool = False
    ) -> Tensor:
        """nn.Embedding of that name; `scaled` for a module that multiplies what it looks up by a number.

        The first one is the model's input embedding: a tied head uses its table, and images take their places in its result.
        """
        table = self.weight(f"{name}.weight", (num_rows, width), role)
        x = embedding(table, ids)
        if scaled:
            x = scale(x)
        if self.table is not None:
            return x
        self.table = table
        x = self.asked(x)
        if self.sees is not None:
            sees, self.sees = self.sees, None
            x = sees(x)
        return x

    def asked(self, x: Tensor) -> Tensor:
        """The first result of a part, which checkpointing makes ask for a gradient where the part is frozen (`enable_input_require_grads`)."""
        if self.recipe.checkpointing != "none" and not x.requires_grad:
            x = Leaf(x.shape, x.dtype, x.storage)
            x.accumulator = Accumulate(x)
            self.contexts.append(x)  # the graph holds it, and its gradient, as it holds weights
            offload = recording_mode.offload
            if offload is not None:  # and that of the step before is still there
                offload.left += [Storage(x.shape, x.dtype, "input of the step before") for _ in range(2)]
        return x

    # -- blocks ----------------------------------------------------------------------------------------------------------

    def layers(self, prefix: str, kinds: Sequence[str]) -> Iterator[Callable[..., Any]]:
        """The blocks to run, one per entry of `kinds`: each a function that runs a block's forward as the recipe says.

        A model with two stacks calls this for each in turn; its blocks are numbered through.
        """
        self.in_forward = True
        for index, kind in enumerate(kinds, len(self.blocks)):
            self.prefix, self.block = f"{prefix}.*.", index
            self.blocks.append((index, kind))
            active.ledger.begin("forward", index)
            run = self._run
            if self.recipe.checkpointing != "none":
                again = self.recipe.reentrant and self.recipe.checkpointing == "full"
                run = self._reentrant if again else self._checkpointed
            yield run if self.sharding is None else partial(self._gathered, self.sharding, run)
        self.prefix, self.block, self.in_forward = "", None, False
        active.ledger.begin("head", None)

    def let_go(self, results: list[Tensor]) -> None:
        """What came into the blocks, and what came out of each, was held until all were done; now it is let go, block by block."""
        results.reverse()
        results.pop()
        for index, _kind in self.blocks:
            active.ledger.begin("let go", index)
            results.pop()
        active.ledger.begin("head", None)

    def returns(self, *tensors: Tensor) -> None:
        """The block that ends hands these back beside its result, to a caller who does not look at them."""
        if self.in_forward:
            self.returned[:] = tensors

    def _gathered(
        self, sharding: FullyShard, run: Callable[..., Any], block: Callable[..., Any], x: Tensor, *context: Any
    ) -> Any:
        group = self.block
        return sharding.leaves(group, run(block, sharding.enters(group, x), *context))

    def _run(self, block: Callable[..., Tensor], x: Tensor, *context: Any) -> Tensor:
        try:
            return block(self, x, *context)
        finally:
            self.held.clear()

    def _checkpointed(self, block: Callable[..., Tensor], x: Tensor, *context: Any) -> Tensor:
        index, prefix, stack = self.block, self.prefix, self.stack
        offload = recording_mode.offload
        given = None if offload is None else offload.pack(x.storage)
        source = Leaf(x.shape, x.dtype, x.storage if given is None else AWAY)
        source.requires_grad, source.accumulator = x.requires_grad, x.accumulator

        def again() -> None:
            before = self.block, self.prefix, self.casts
            self.block, self.prefix, self.casts = index, prefix, {}
            if offload is not None and given is not None:
                source.storage, given.kept = offload.unpack(given), None
            try:
                with self.within(stack):
                    block(self, source, *context)
            finally:
                self.held.clear()
                self.block, self.prefix, self.casts = before
                if offload is not None:
                    source.storage = AWAY

        checkpoint = Checkpoint(again, ATTENTION if self.recipe.checkpointing == "selective" else frozenset())
        mode = recording_mode
        mode.checkpoint = checkpoint
        try:
            return block(self, x, *context)
        finally:
            mode.checkpoint = None
            self.held.clear()

    def _reentrant(self, block: Callable[..., Tensor], x: Tensor, *context: Any) -> Tensor:
        """torch.utils.checkpoint of the older kind: no graph at first; in the backward the block runs again, whole, with a graph of its own.

        The block's result and its gradient are alive as long as that graph is run backwards.
        """
        index, prefix, stack, mode = self.block, self.prefix, self.stack, recording_mode
        mode.enabled = False
        try:
            y = self._run(block, x, *context)
        finally:
            mode.enabled = True

        def nested(g: Tensor) -> tuple[Tensor | None]:
            before = self.block, self.prefix, self.casts
            ledger = active.ledger
            kind, scope = ledger.kind, ledger.scope
            self.block, self.prefix, self.casts = index, prefix, {}
            source = Leaf(x_shape, x_dtype, x_storage)
            ledger.kind = ACTIVATIONS
            try:
                with self.within(stack):
                    again = self._run(block, source, *context)
            finally:
                self.block, self.prefix, self.casts = before
            ledger.kind = kind
            backward(again, g)
            ledger.scope = scope
            gradient = source.grad
            if gradient is not None:
                gradient.storage.become(kind)
            return (gradient,)

        x_shape, x_dtype, x_storage = x.shape, x.dtype, x.storage
        self.contexts.append(context)
        return record("checkpoint", y.shape, y.dtype, (x,), nested, (x.storage,), result=y.storage)

    def inventory(self, represented: dict[int, int], sharding: FullyShard | None = None) -> tuple[Parameter, ...]:
        """Every parameter asked for; `represented` says how many layers each block that ran stands for. With `sharding` the share of each
        that one GPU stores."""
        rows: dict[tuple[str, Shape, str, Role, bool], int] = {}
        for key, tensor in self.weights.items():
            full, role = self.roles[key]
            trained = tensor.requires_grad and key not in self.without_gradient
            shape, dtype = (tensor.shape, tensor.dtype) if sharding is None else sharding.stored(*key)
            row = (full, shape, dtype, role, trained)
            rows[row] = rows.get(row, 0) + (1 if key[0] is None else represented[key[0]])
        return tuple(
            Parameter(
                name=name.replace(".base_layer.", "."),
                shape=shape,
                dtype=dtype,
                role=role,
                count=count,
                trainable=trainable,
            )
            for (name, shape, dtype, role, trainable), count in rows.items()
        )


def _cast_product(x: Tensor, weight: Tensor, to: str) -> Tensor:
    lowered = cast(weight, to)
    return mm(cast(x, to), lowered)
