"""Optimizers of torchao: AdamW with 8-bit, 4-bit and fp8 states."""

from __future__ import annotations

from calc.catalog.optimizers import steps
from calc.catalog.optimizers.pytorch import AMSGRAD
from calc.catalog.optimizers.row import Argument, Optimizer
from calc.catalog.optimizers.states import Coded, Scalar, option

COMPILED = "The step is compiled on a GPU; without compilation it copies the largest parameter several times in fp32."


def _row(name: str, label: str, bits: int, code_table: int, paper: str, cost: str) -> Optimizer:
    return Optimizer(
        name,
        label,
        "AdamW",
        "torchao>=0.4",
        (
            Scalar("step", "fp32", "host"),
            Coded("exp_avg", bits, code_table),
            Coded("exp_avg_sq", bits, code_table),
            option("amsgrad", Coded("max_exp_avg_sq", bits, code_table)),
        ),
        steps.COMPILED,
        "oracle",
        paper,
        cost,
        (
            Argument("block_size", "count", 256, "B, elements that share a scale."),
            Argument("bf16_stochastic_round", "flag", False, "Round bf16 weights at random: small updates survive."),
            AMSGRAD,
        ),
        {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False},
        note=COMPILED,
    )


ROWS = (
    _row(
        "adamw_torch_8bit",
        "AdamW, 8-bit states (torchao)",
        8,
        256,
        "paper-adam8bit",
        "A quarter of the fp32 state, embeddings included. The first step waits for the compiler.",
    ),
    _row(
        "adamw_torch_4bit",
        "AdamW, 4-bit states (torchao)",
        4,
        16,
        "paper-adam4bit",
        "An eighth of the fp32 state; its authors report accuracy near 32-bit Adam's. The first step is compiled.",
    ),
    _row(
        "adamw_torch_fp8",
        "AdamW, fp8 states (torchao)",
        8,
        0,
        "paper-torchao",
        "A quarter of the fp32 state, without code tables; fp8 arithmetic needs an Ada, Hopper or newer GPU.",
    ),
)
