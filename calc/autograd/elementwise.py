"""Operations that work element by element, with their broadcasts and promotions."""

from __future__ import annotations

from calc.autograd.storage import active
from calc.autograd.tensor import Broad, Shape, Tensor, empty, kept, record

_RANK = {"bool": 0, "u8": 1, "i32": 2, "i64": 3, "fp16": 4, "bf16": 4, "fp32": 5}


def promoted(a: str, b: str) -> str:
    """The dtype that two operands meet in."""
    return a if _RANK[a] >= _RANK[b] else b


def cast(x: Tensor, dtype: str) -> Tensor:
    """`x.to(dtype)`: nothing when it has it already; saves nothing; the backward casts back."""
    if x.dtype == dtype:
        return x
    source, shape, first = x.dtype, x.shape, x.heads_first
    return record(
        "_to_copy", shape, dtype, (x,), lambda g: (empty(shape, source, "cast backward", first),), heads_first=first
    )


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b of one shape: saves nothing and hands its gradient to both."""
    return record("add", a.shape, promoted(a.dtype, b.dtype), (a, b), lambda g: (g, g), heads_first=a.heads_first)


def add_in_place(a: Tensor, b: Tensor) -> Tensor:
    """a += b of one shape: into a's own memory."""
    return record("add_", a.shape, a.dtype, (a, b), lambda g: (g, g), result=a.storage, heads_first=a.heads_first)


def add_constant(x: Tensor, dtype: str | None = None) -> Tensor:
    """x + number, or a tensor of that dtype without a gradient."""
    to = x.dtype if dtype is None else promoted(x.dtype, dtype)
    return record("add", x.shape, to, (x,), lambda g: (g,), heads_first=x.heads_first)


def add_broadcast(x: Tensor, small: Tensor) -> Tensor:
    """x + a tensor that is broadcast over x (a mask, a bias): the small one's gradient is a sum."""
    shape, needs = small.shape, small.requires_grad
    dtype = promoted(x.dtype, small.dtype)

    def backward(g: Tensor) -> tuple[Tensor | Broad | None, ...]:
        return g, Broad(g, shape) if needs else None

    return record("add", x.shape, dtype, (x, small), backward, heads_first=x.heads_first)


def sub_broadcast(x: Tensor, small: Tensor) -> Tensor:
    """x - a tensor that is broadcast over x (its mean): the small one's gradient is a negated copy, summed."""
    shape, small_shape, needs = x.shape, small.shape, small.requires_grad
    dtype = promoted(x.dtype, small.dtype)

    def backward(g: Tensor) -> tuple[Tensor | Broad | None, ...]:
        return g, Broad(empty(shape, dtype, "neg"), small_shape) if needs else None

    return record("sub", shape, dtype, (x, small), backward, heads_first=x.heads_first)


def clamp_in_place(x: Tensor) -> Tensor:
    """x.clamp_(...): saves a copy of what was there; the backward compares it with both bounds."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first

    def backward(g: Tensor) -> tuple[Tensor]:
        above, below = empty(shape, "bool", "ge"), empty(shape, "bool", "le")
        result = empty(shape, dtype, "where", first)
        del above, below
        return (result,)

    return record(
        "clamp_", shape, dtype, (x,), backward, result=x.storage, heads_first=first, extra=((shape, dtype, "clone"),)
    )


def clamp(x: Tensor, bounds: int) -> Tensor:
    """x within one bound or two: saves x; the backward compares it with each, and puts a number where it is beyond."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first

    def backward(g: Tensor) -> tuple[Tensor]:
        zero = empty((1,), dtype, "scalar_tensor")
        inside = [empty(shape, "bool", "compare") for _ in range(bounds)]
        result = empty(shape, dtype, "where", first)
        del zero, inside
        return (result,)

    return record("clamp", shape, dtype, (x,), backward, (x.storage,), heads_first=first)


def sub(a: Tensor, b: Tensor) -> Tensor:
    """a - b of one shape: saves nothing."""
    shape, dtype, first, needs = a.shape, promoted(a.dtype, b.dtype), a.heads_first, b.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        return g, empty(shape, dtype, "neg", first) if needs else None

    return record("sub", shape, dtype, (a, b), backward, heads_first=first)


def mul(a: Tensor, b: Tensor) -> Tensor:
    """a * b, where one may be broadcast over the other: each operand is saved if the other needs a gradient.

    Both gradients are made at full size; that of a broadcast operand is then summed to its shape.
    """
    a_shape, b_shape, needs_a, needs_b = a.shape, b.shape, a.requires_grad, b.requires_grad
    a_first = a.heads_first
    dtype = promoted(a.dtype, b.dtype)
    a_full = len(a_shape) > len(b_shape) or (len(a_shape) == len(b_shape) and a_shape[-1] >= b_shape[-1])
    same = a_shape == b_shape
    shape = a_shape if a_full else b_shape
    saved = [kept(b)] if needs_a else []
    if needs_b:
        saved.append(kept(a))

    def backward(g: Tensor) -> tuple[Tensor | Broad | None, ...]:
        gb = empty(shape, dtype, "mul backward", g.heads_first) if needs_b else None
        ga = empty(shape, dtype, "mul backward", g.heads_first) if needs_a else None
        if same:
            return ga, gb
        if a_full:
            return ga, None if gb is None else Broad(gb, b_shape)
        return None if ga is None else Broad(ga, a_shape), gb

    return record("mul", shape, dtype, (a, b), backward, saved, heads_first=a_first if a_full else b.heads_first)


def complex_mul(x: Tensor, numbers: Tensor, *, sliced: bool = False) -> Tensor:
    """x, seen as complex pairs, times complex numbers without a gradient, seen as reals again: saves the numbers.

    The backward lays a gradient out pair by pair if it lies head by head, or among others because the result was joined to them
    (`sliced`); and it copies the numbers to conjugate them.
    """
    shape, dtype, turned, alone = x.shape, x.dtype, numbers.shape, x.shape[1] == 1

    def backward(g: Tensor) -> tuple[Tensor]:
        conjugate = empty(turned, dtype, "conj")
        result = empty(shape, dtype, "mul")
        del conjugate
        return (result,)

    def ordered(g: Tensor) -> tuple[Tensor]:
        return (g if alone or not (sliced or g.heads_first) else empty(shape, dtype, "clone"),)

    product = record("mul", shape, dtype, (x,), backward, (numbers.storage,))
    return record("view_as_real", shape, dtype, (product,), ordered, result=product.storage)


def scale(x: Tensor) -> Tensor:
    """x * number: saves nothing."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first
    return record("mul", shape, dtype, (x,), lambda g: (empty(shape, dtype, "mul backward", first),), heads_first=first)


def scale_in_place(x: Tensor) -> Tensor:
    """x *= number: as `scale`, into x itself."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first
    return record(
        "mul_",
        shape,
        dtype,
        (x,),
        lambda g: (empty(shape, dtype, "mul backward", first),),
        result=x.storage,
        heads_first=first,
    )


def mul_in_place(x: Tensor, numbers: Tensor) -> Tensor:
    """x *= numbers that have no gradient: into x itself; saves the numbers."""
    shape, dtype = x.shape, x.dtype
    return record(
        "mul_",
        shape,
        dtype,
        (x,),
        lambda g: (empty(shape, dtype, "mul backward"),),
        (numbers.storage,),
        result=x.storage,
    )


def masked_fill(x: Tensor, mask: Tensor) -> Tensor:
    """x where the mask is false, a number elsewhere: saves the mask, and masks the gradient."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first
    return record(
        "masked_fill", shape, dtype, (x,), lambda g: (empty(shape, dtype, "masked_fill", first),), (mask.storage,),
        heads_first=first,
    )  # fmt: skip


def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """a where the condition holds, else b: saves the condition; each gets a gradient of its own."""
    shape, dtype, needs_a, needs_b = a.shape, promoted(a.dtype, b.dtype), a.requires_grad, b.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        ga = empty(shape, dtype, "where") if needs_a else None
        return ga, empty(shape, dtype, "where") if needs_b else None

    return record("where", shape, dtype, (a, b), backward, (condition.storage,))


def where_else(condition: Tensor, x: Tensor, shape: Shape) -> Tensor:
    """x, broadcast to `shape`, where the condition holds, else a number, which becomes a tensor of its own for the moment."""
    dtype, small = x.dtype, x.shape

    def backward(g: Tensor) -> tuple[Tensor | Broad]:
        number = empty((1,), dtype, "scalar_tensor")
        chosen = empty(shape, dtype, "where")
        del number
        return (chosen if small == shape else Broad(chosen, small),)

    number = empty((1,), dtype, "scalar_tensor")
    result = record("where", shape, dtype, (x,), backward, (condition.storage,))
    del number
    return result


def minimum(x: Tensor, number: Tensor | None = None) -> Tensor:
    """The smaller (or larger) of x and a number in a tensor, which may be the module's: saves both; the backward halves the gradient
    where they are equal."""
    shape, dtype = x.shape, x.dtype
    saved = (x.storage,) if number is None else (x.storage, number.storage)

    def backward(g: Tensor) -> tuple[Tensor]:
        half = empty(shape, dtype, "div")
        equal = empty(shape, "bool", "eq")
        result = empty(shape, dtype, "where")
        greater = empty(shape, "bool", "gt")
        del half, equal, greater
        return (result,)

    return record("minimum", shape, dtype, (x,), backward, saved)


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1: saves its result."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        plus = empty(shape, dtype, "add")
        result = empty(shape, dtype, "expm1 backward")
        del plus
        return (result,)

    return record("expm1", shape, dtype, (x,), backward, saves_output=True)


def square(x: Tensor) -> Tensor:
    """x ** 2, or to another fixed power: saves x."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        power = empty(shape, dtype, "pow")
        twice = empty(shape, dtype, "mul")
        result = empty(shape, dtype, "pow backward")
        del power, twice
        return (result,)

    return record("pow", shape, dtype, (x,), backward, (x.storage,))


def mean(x: Tensor) -> Tensor:
    """Mean over the last axis, kept as an axis of one."""
    shape, dtype = x.shape, x.dtype
    return record("mean", (*shape[:-1], 1), dtype, (x,), lambda g: (empty(shape, dtype, "mean backward"),))


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x): saves its result."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        cube = empty(shape, dtype, "pow")
        scaled = empty(shape, dtype, "mul")
        result = empty(shape, dtype, "rsqrt backward")
        del cube, scaled
        return (result,)

    return record("rsqrt", shape, dtype, (x,), backward, saves_output=True)


def sqrt(x: Tensor) -> Tensor:
    """The root: saves its result."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        twice = empty(shape, dtype, "mul")
        result = empty(shape, dtype, "div")
        del twice
        return (result,)

    return record("sqrt", shape, dtype, (x,), backward, saves_output=True)


def clone(x: Tensor) -> Tensor:
    """A copy; saves nothing and passes its gradient on."""
    return record("clone", x.shape, x.dtype, (x,), lambda g: (g,), heads_first=x.heads_first)


def neg(x: Tensor) -> Tensor:
    """-x."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first
    return record("neg", shape, dtype, (x,), lambda g: (empty(shape, dtype, "neg", first),), heads_first=first)


def activation(x: Tensor, name: str) -> Tensor:
    """silu, gelu and the like as one kernel: saves x, the backward makes one tensor."""
    shape, dtype = x.shape, x.dtype
    return record(name, shape, dtype, (x,), lambda g: (empty(shape, dtype, f"{name} backward"),), (kept(x),))


def from_output(x: Tensor, name: str) -> Tensor:
    """tanh, sigmoid, relu, exp: saves its result."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first
    return record(
        name,
        shape,
        dtype,
        (x,),
        lambda g: (empty(shape, dtype, f"{name} backward", first),),
        saves_output=True,
        heads_first=first,
    )


def dropout(x: Tensor, p: float) -> Tensor:
    """Dropout in training: nothing at p = 0, else a mask of one byte per element is kept."""
    if p == 0:
        return x
    shape, dtype, first = x.shape, x.dtype, x.heads_first
    return record(
        "native_dropout", shape, dtype, (x,), lambda g: (empty(shape, dtype, "dropout backward", first),),
        heads_first=first, extra=((shape, "bool", "dropout mask"),),
    )  # fmt: skip


def softmax(x: Tensor, dtype: str | None = None) -> Tensor:
    """Softmax over the last axis: saves its result. fp16 becomes fp32 inside the kernel, bf16 by a cast before it.

    Scratch of the backward (SoftMax.cu): gradient times result.
    """
    scores = x if dtype is None or x.dtype == "fp16" else cast(x, dtype)  # x is held by the call
    shape, source, first = scores.shape, scores.dtype, scores.heads_first
    result_dtype = dtype or source

    def backward(g: Tensor) -> tuple[Tensor]:
        result = empty(shape, source, "softmax backward", first)
        if active.ledger.scratch:
            product = empty(shape, result_dtype, "softmax backward product")
            del product
        return (result,)

    return record("_softmax", shape, result_dtype, (scores,), backward, saves_output=True, heads_first=first)


def safe_softmax(x: Tensor) -> Tensor:
    """Softmax that gives zeros where a whole row is masked. Scratch (NativeTransformers): the plain softmax, and where the input is minus infinity."""
    plain = [empty(x.shape, x.dtype, "softmax"), empty(x.shape, "bool", "eq")] if active.ledger.scratch else []
    y = softmax(x)
    del plain
    return y


def logsumexp(x: Tensor) -> Tensor:
    """Log of the sum of exponentials over the last axis: saves its input and its result. Scratch (ReduceOps): the exponentials."""
    shape, dtype, first = x.shape, x.dtype, x.heads_first

    def backward(g: Tensor) -> tuple[Tensor]:
        above = empty(shape, dtype, "sub", first)
        shares = empty(shape, dtype, "exp", first)
        result = empty(shape, dtype, "mul", first)
        del above, shares
        return (result,)

    above = empty(shape, dtype, "sub") if active.ledger.scratch else None
    del above
    return record("logsumexp", shape[:-1], dtype, (x,), backward, (x.storage,), saves_output=True)


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """native_layer_norm: saves what it is given, and mean and reciprocal deviation in fp32 for each row."""
    shape, dtype = x.shape, x.dtype
    affine = [t for t in (weight, bias) if t is not None]
    shapes = [(t.shape, t.dtype, t.requires_grad) for t in affine]
    needs = x.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        gx = empty(shape, dtype, "layer_norm backward") if needs else None
        return (gx, *(empty(s, d, "layer_norm backward") if r else None for s, d, r in shapes))

    rows = (*shape[:-1], 1)
    saved = [kept(t) for t in (bias, x, weight) if t is not None]
    return record(
        "native_layer_norm", shape, dtype, (x, *affine), backward, saved,
        extra=((rows, "fp32", "layer_norm mean"), (rows, "fp32", "layer_norm rstd")),
    )  # fmt: skip
