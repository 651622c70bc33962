"""Activation functions by their name in config.json. Mirrors transformers 5.24.0 activations.py: some are one kernel, some are Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from calc.autograd import fused
from calc.autograd.elementwise import (
    activation,
    add,
    add_constant,
    cast,
    expm1,
    from_output,
    minimum,
    mul,
    scale,
    square,
    sub,
    where,
)
from calc.autograd.tensor import Tensor, empty
from calc.model.config import Config, ConfigError
from calc.model.modules import Modules

Activation = Callable[[Modules, Tensor], Tensor]


def _kernel(name: str, m: Modules, x: Tensor) -> Tensor:
    """One kernel that saves its input."""
    return activation(x, name)


def _result(name: str, m: Modules, x: Tensor) -> Tensor:
    """One kernel that saves its result."""
    return from_output(x, name)


def _power(m: Modules, x: Tensor) -> Tensor:
    """x ** 2 or x ** 3, which autocast does in fp32."""
    return square(x if m.recipe.autocast is None else cast(x, "fp32"))


def _gelu_new(m: Modules, x: Tensor) -> Tensor:
    """0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), in Python."""
    half = scale(x)
    return mul(half, add_constant(from_output(scale(add(x, scale(_power(m, x)))), "tanh")))


def _gelu_fast(m: Modules, x: Tensor) -> Tensor:
    """0.5·x·(1 + tanh(x·0.7978845608·(1 + 0.044715·x·x))), in Python."""
    half = scale(x)
    return mul(half, add_constant(from_output(mul(scale(x), add_constant(mul(scale(x), x))), "tanh")))


def _quick_gelu(m: Modules, x: Tensor) -> Tensor:
    """x·sigmoid(1.702·x), in Python."""
    return mul(x, from_output(scale(x), "sigmoid"))


def _relu_squared(m: Modules, x: Tensor) -> Tensor:
    """relu(x)²."""
    return _power(m, from_output(x, "relu"))


def _xielu(m: Modules, x: Tensor) -> Tensor:
    """x > 0: a·x² + x/2, else (expm1(min(x, eps)) - x)·b + x/2, in Python, with trained a and b."""
    first = activation(_widened(m, m.weight("mlp.act_fn.alpha_p", (1,), "other")), "softplus")
    second = add_constant(activation(_widened(m, m.weight("mlp.act_fn.alpha_n", (1,), "other")), "softplus"))
    positive = empty(x.shape, "bool", "gt")
    above = add(mul(mul(first, x), x), scale(x))
    below = add(mul(sub(_grown(m, x), x), second), scale(x))
    return where(positive, above, below)


def _grown(m: Modules, x: Tensor) -> Tensor:
    """expm1(min(x, eps))."""
    return expm1(_widened(m, minimum(x)))


def _widened(m: Modules, x: Tensor) -> Tensor:
    """x for a function that autocast does in fp32."""
    return x if m.recipe.autocast is None else cast(x, "fp32")


ACTIVATIONS: Mapping[str, Activation] = {
    **{name: partial(_kernel, name) for name in ("silu", "gelu", "mish", "hardswish", "leaky_relu", "relu6")},
    **{name: partial(_result, name) for name in ("relu", "tanh", "sigmoid")},
    "swish": partial(_kernel, "silu"),
    "gelu_pytorch_tanh": partial(_kernel, "gelu"),
    "gelu_new": _gelu_new,
    "gelu_accurate": _gelu_new,
    "gelu_python_tanh": _gelu_new,
    "gelu_fast": _gelu_fast,
    "quick_gelu": _quick_gelu,
    "relu2": _relu_squared,
    "xielu": _xielu,
    "linear": lambda m, x: x,
}


def activated(m: Modules, x: Tensor, name: str) -> Tensor:
    """x after the activation of that name."""
    return ACTIVATIONS[name](m, x)


def gated(m: Modules, gate: Tensor, up: Callable[[], Tensor], name: str) -> Tensor:
    """activation(gate) times what `up` makes: the gate is activated first, unless a kernel does both at once."""
    if name in m.recipe.kernels.gated:
        return fused.gated(gate, up(), name)
    gate = activated(m, gate, name)
    return mul(gate, up())


def activation_name(config: Config, *fields: str, default: str) -> str:
    """The activation that a config names; one that is not modelled is an error that lists those that are."""
    return known_activation(fields[0], config.text(*fields, default=default))


def known_activation(field: str, name: str) -> str:
    """The name, if it is one of an activation."""
    if name not in ACTIVATIONS:
        raise ConfigError(field, f"should be one of {', '.join(sorted(ACTIVATIONS))}, not {name[:40]!r}")
    return name
