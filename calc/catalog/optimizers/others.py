"""Optimizers of single packages: schedule-free, StableAdamW, GrokAdamW, CAME, Lion, AdEMAMix, Prodigy, SOAP."""

from __future__ import annotations

from math import inf

from calc.catalog.optimizers import steps
from calc.catalog.optimizers.pytorch import FOREACH, MOMENTS
from calc.catalog.optimizers.row import Argument, GroupValue, Optimizer
from calc.catalog.optimizers.states import (
    Factored,
    Full,
    OnHost,
    Preconditioners,
    Same,
    Scalar,
    Settings,
    StateRule,
    Weight,
    When,
    half_precision,
    option,
)

SCHEDULE_FREE_COST = "Needs no learning-rate schedule; its authors report results on par with tuned schedules."
SCHEDULE_FREE_NOTE = (
    "The weights themselves hold an interpolation; call the optimizer's eval() before evaluation and saving."
)
SCHEDULE_FREE_ARGUMENTS = (
    Argument("weight_lr_power", "number", 2.0, "Weighting of the average by the learning rate."),
    Argument("r", "number", 0.0, "Weighting of the average by the step."),
)
SCHEDULE_FREE_GROUP: dict[str, GroupValue] = {
    "r": 0.0,
    "k": 0,
    "train_mode": False,
    "weight_sum": 0.0,
    "lr_max": -1.0,
    "scheduled_lr": 0.0,
    "weight_lr_power": 2.0,
    "weight_decay": 0.0,
    "foreach": True,
}
AVERAGED: tuple[StateRule, ...] = (Same("z"), Same("exp_avg_sq"))


def kahan_summed(weight: Weight, settings: Settings) -> bool:
    """16-bit parameters carry the rounding error of their updates, unless that is turned off."""
    return half_precision(weight, settings) and bool(settings["kahan_sum"])


def placeholder(weight: Weight, settings: Settings) -> bool:
    """optimi's Triton kernels want a tensor where there is no compensation, so a byte stands in for it."""
    return bool(settings["triton"]) and not kahan_summed(weight, settings)


def matrix(weight: Weight, settings: Settings) -> bool:
    """A parameter with rows and columns."""
    return len(weight.shape) > 1


ROWS = (
    Optimizer(
        "schedule_free_adamw",
        "Schedule-free AdamW",
        "Schedule-free",
        "schedulefree>=1.4",
        AVERAGED,
        steps.SCHEDULE_FREE_ADAMW,
        "oracle",
        "paper-schedule-free",
        SCHEDULE_FREE_COST,
        SCHEDULE_FREE_ARGUMENTS,
        {"betas": (0.9, 0.999), "eps": 1e-8, "warmup_steps": 0, **SCHEDULE_FREE_GROUP},
        note=SCHEDULE_FREE_NOTE,
    ),
    Optimizer(
        "schedule_free_radam",
        "Schedule-free RAdam",
        "Schedule-free",
        "schedulefree>=1.4",
        AVERAGED,
        steps.SCHEDULE_FREE_RADAM,
        "oracle",
        "paper-schedule-free",
        f"{SCHEDULE_FREE_COST} Needs no warmup either.",
        SCHEDULE_FREE_ARGUMENTS,
        {"betas": (0.9, 0.999), "eps": 1e-8, "silent_sgd_phase": True, **SCHEDULE_FREE_GROUP},
        note=f"The copy during the step appears once the variance is rectified, at step 5. {SCHEDULE_FREE_NOTE}",
    ),
    Optimizer(
        "schedule_free_sgd",
        "Schedule-free SGD",
        "Schedule-free",
        "schedulefree>=1.4",
        (Same("z"),),
        steps.IN_PLACE,
        "oracle",
        "paper-schedule-free",
        SCHEDULE_FREE_COST,
        SCHEDULE_FREE_ARGUMENTS,
        {"momentum": 0.9, "warmup_steps": 0, **SCHEDULE_FREE_GROUP},
        note=SCHEDULE_FREE_NOTE,
    ),
    Optimizer(
        "stable_adamw",
        "StableAdamW (torch-optimi)",
        "AdamW",
        "torch-optimi",
        (
            *MOMENTS,
            Scalar("eps_sq"),
            When(kahan_summed, (Same("kahan_comp"),)),
            When(placeholder, (Scalar("kahan_comp", "u8", shape=(1,)),)),
            option("triton", Scalar("mean_square", "fp32", shape=(1,))),
        ),
        steps.STABLE_ADAMW,
        "oracle",
        "paper-stable-adamw",
        "AdamW with Adafactor's clipping; in pure bf16 Kahan summation keeps small updates for 2 more bytes each.",
        (
            Argument("kahan_sum", "flag", True, "Carry rounding errors of 16-bit weights in a buffer of their size."),
            Argument(
                "triton", "flag", True, "Triton kernels, optimi's choice on a GPU; false runs PyTorch operations."
            ),
            Argument("foreach", "flag", False, "Without Triton: all tensors at once instead of a loop."),
            Argument("decouple_lr", "flag", False, "Weight decay apart from the learning rate."),
            Argument("max_lr", "number", 0.0, "Highest learning rate, for decouple_lr."),
        ),
        {
            "beta1": 0.9,
            "beta2": 0.999,
            "eps": 1e-8,
            "weight_decay": 0.0,
            "decouple_lr": False,
            "max_lr": None,
            "kahan_sum": None,
            "foreach": None,
            "triton": None,
            "gradient_release": False,
            "setup": False,
        },
        note="Any text for kahan_sum in optim_args, even False, turns it on in the Trainer.",
    ),
    Optimizer(
        "grokadamw",
        "GrokAdamW",
        "AdamW",
        "grokadamw",
        (OnHost("exp_avg"), OnHost("exp_avg_sq"), OnHost("grok_ema")),
        steps.GROKADAMW,
        "oracle",
        "paper-grokadamw",
        "Aims at late generalisation. Every step brings each state from the host and back, which is slow.",
        (
            Argument("alpha_init", "number", 0.98, "Memory of the slow gradient."),
            Argument("lamb", "number", 2.0, "How much the slow gradient is amplified."),
            Argument("gamma", "number", 0.1, "Decay of beta1 from layer to layer."),
            Argument("grokking_signal_decay_rate", "number", 0.1, "How fast the memory reacts to the signal."),
            Argument("gradient_clipping", "number", 1.0, "Largest norm of one parameter's gradient."),
        ),
        {
            "betas": (0.9, 0.999),
            "eps": 1e-8,
            "weight_decay": 0.01,
            "alpha_init": 0.98,
            "lamb": 2.0,
            "gamma": 0.1,
            "grokking_signal_fns": None,
            "grokking_signal_decay_rate": 0.1,
            "gradient_clipping": 1.0,
        },
        note="States lie in host memory, in param_groups, not in the optimizer's state.",
    ),
    Optimizer(
        "came",
        "CAME",
        "CAME",
        "came-pytorch",
        (
            Full("exp_avg"),
            Factored("exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"),
            When(matrix, (Factored("exp_avg_res_row", "exp_avg_res_col", ""),)),
            Scalar("RMS"),
        ),
        steps.CAME,
        "oracle",
        "paper-came",
        "Half of AdamW's state in fp32; its authors report AdamW-like convergence. A loop with several fp32 copies.",
        (),
        {"eps": (1e-30, 1e-16), "clip_threshold": 1.0, "betas": (0.9, 0.999, 0.9999), "weight_decay": 0.0},
        ("step",),
        grouping="one",
        note="The first moment is fp32 even for 16-bit weights.",
    ),
    Optimizer(
        "lion",
        "Lion (pytorch_optimizer)",
        "Lion",
        "pytorch_optimizer",
        (Same("exp_avg"),),
        steps.LION,
        "oracle",
        "paper-lion",
        "One moment. Wants a learning rate 3 to 10 times smaller than AdamW's and a larger weight decay.",
        (),
        {
            "betas": (0.9, 0.99),
            "weight_decay": 0.0,
            "weight_decouple": True,
            "fixed_decay": False,
            "foreach": None,
        },
        grouping="one",
    ),
    Optimizer(
        "ademamix_torch",
        "AdEMAMix (pytorch_optimizer)",
        "AdEMAMix",
        "pytorch_optimizer",
        (*MOMENTS, Same("exp_avg_slow")),
        steps.ADEMAMIX,
        "oracle",
        "paper-ademamix",
        "A third moment with a long memory; its authors report that a model trained on fewer tokens matches AdamW.",
        (),
        {
            "betas": (0.9, 0.999, 0.9999),
            "weight_decay": 0.0,
            "weight_decouple": False,
            "fixed_decay": False,
            "alpha": 5.0,
            "t_alpha_beta3": None,
            "eps": 1e-8,
            "foreach": None,
        },
        grouping="one",
    ),
    Optimizer(
        "prodigy",
        "Prodigy (pytorch_optimizer)",
        "Prodigy",
        "pytorch_optimizer",
        (Same("s"), Same("p0"), *MOMENTS),
        steps.PRODIGY,
        "oracle",
        "paper-prodigy",
        "Finds the learning rate by itself, at twice AdamW's state.",
        (FOREACH,),
        {
            "betas": (0.9, 0.999),
            "beta3": None,
            "d": 1e-6,
            "d0": 1e-6,
            "d_max": 1e-6,
            "d_coef": 1.0,
            "growth_rate": inf,
            "weight_decay": 0.0,
            "weight_decouple": True,
            "fixed_decay": False,
            "bias_correction": False,
            "safeguard_warmup": False,
            "step": 1,
            "foreach": None,
            "eps": 1e-8,
        },
        grouping="one",
    ),
    Optimizer(
        "soap",
        "SOAP (pytorch_optimizer)",
        "SOAP",
        "pytorch_optimizer",
        (*MOMENTS, Preconditioners()),
        steps.SOAP,
        "oracle",
        "paper-soap",
        "Fewer steps than AdamW, its authors report, at the price of squares of every axis: mostly for smaller models.",
        (
            Argument("max_precondition_dim", "count", 10_000, "Longer axes get no statistic."),
            Argument("precondition_frequency", "count", 10, "Steps between new eigenbases."),
        ),
        {
            "betas": (0.95, 0.95),
            "shampoo_beta": None,
            "weight_decay": 0.01,
            "precondition_frequency": 10,
            "max_precondition_dim": 10_000,
            "merge_dims": False,
            "precondition_1d": False,
            "correct_bias": True,
            "normalize_gradient": False,
            "eps": 1e-8,
        },
        grouping="one",
        note="Every few steps a new basis is found with QR in fp32; its workspace inside the solver is not counted.",
    ),
)
