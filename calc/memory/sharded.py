"""Which plans over several GPUs are modelled, and what keeps the others from being so: each one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calc.catalog.frameworks import FRAMEWORKS
from calc.memory.breakdown import Problem
from calc.memory.recipes import PRECISIONS, optimizer_of
from calc.memory.refused import Refused
from calc.model.family import Architecture
from calc.model.parameters import Parameter
from calc.scenario import FullFineTuning, Lora, Plan, QLora, Scenario

PRECISIONS_OF = {
    "ddp": tuple(row.id for row in PRECISIONS.values() if not row.master),
    "fsdp": ("bf16", "fp32", "bf16-mixed"),
    "fsdp2": ("bf16", "fp32", "bf16-mixed"),
}
"""Words of `plan.precision` that are modelled under each strategy; a strategy that is not here is not modelled."""
OPTIMIZERS_OF_SHARES = {"fsdp2": ("adamw_torch_fused", "adamw_torch", "sgd"), "fsdp": ("adamw_torch_fused",)}
"""Optimizers that work element by element, so that a share of a weight has a share of its states, and that were recorded; with flat parameters
what a step makes for each group would hang on the order in which tensors lie in them."""
OPTIMIZERS_ON_HOST = ("adamw_torch_fused",)
"""Those that were recorded stepping in host memory."""
FLAT = 16
"""Bytes that the tensors of a flat parameter begin at a multiple of."""


def sharding_notes(plan: Plan) -> tuple[Problem, ...]:
    """What the owner of a sharded plan should know."""
    if plan.sharding.strategy not in ("fsdp", "fsdp2") or plan.precision not in ("bf16-mixed", "bf16-autocast"):
        return ()
    return (
        Problem(
            "sharding_without_autocast",
            "Mixed precision is that of FSDP itself here. The Trainer puts autocast around it as well, under which layer norms give fp32: "
            "models with LayerNorm then keep more for the backward pass.",
            "plan.precision",
            blocking=False,
        ),
    )


def refuse_sharding(scenario: Scenario) -> None:
    """What is not modelled of a plan over several GPUs, whatever the model. Raises `Refused`."""
    plan, gpus = scenario.plan, scenario.hardware.num_gpus
    strategy, ranks = plan.sharding.strategy, plan.sharding.data_parallel
    _refuse_what_needs_shares(plan)
    if strategy == "none":
        if gpus > 1 or ranks > 1:
            raise Refused(
                "no_strategy",
                f"{max(gpus, ranks)} GPUs need a way to share the work: choose {', '.join(PRECISIONS_OF)}, or one GPU.",
                "plan.sharding.strategy",
            )
        return
    if strategy not in PRECISIONS_OF:
        raise Refused(
            "strategy_not_modelled",
            f"{strategy} is not modelled yet; the strategies that are: {', '.join(PRECISIONS_OF)}.",
            "plan.sharding.strategy",
        )
    if gpus != ranks or ranks == 1:
        raise Refused(
            "gpus_that_share",
            f"{strategy} runs on two GPUs or more, each with data of its own: data_parallel ({ranks}) must equal num_gpus ({gpus}).",
            "plan.sharding.data_parallel",
        )
    modelled = PRECISIONS_OF[strategy]
    if strategy == "fsdp2" and not isinstance(plan, FullFineTuning):
        modelled = (*modelled, "bf16-autocast")
    if plan.precision not in modelled:
        raise Refused(
            "precision_not_modelled",
            f"{plan.precision} is not modelled under {strategy}; choose {', '.join(modelled)}.",
            "plan.precision",
        )
    if optimizer_of(plan).frees_gradients:
        raise Refused(
            "step_in_backward",
            f"{plan.optimizer} steps inside the backward pass, before gradients have been summed over the GPUs; choose adamw_torch.",
            "plan.optimizer",
        )
    if strategy != "ddp":
        _refuse_fully_sharded(plan)


def _refuse_what_needs_shares(plan: Plan) -> None:
    """Fields that speak of shares of the weights, where there are none."""
    sharding = plan.sharding
    if sharding.strategy in ("fsdp", "fsdp2"):
        return
    if sharding.offload != "none":
        raise Refused(
            "offload_not_modelled",
            f"offload to host memory is modelled under fsdp and fsdp2 (all of weights, gradients and states), not under {sharding.strategy}; "
            "set it to none, or take a paged optimizer.",
            "plan.sharding.offload",
        )
    if sharding.replicas > 1:
        raise Refused(
            "copies_of_shares",
            f"copies of the sharded weights need fsdp or fsdp2; under {sharding.strategy} set replicas to 1.",
            "plan.sharding.replicas",
        )
    if sharding.sync_each_batch:
        raise Refused(
            "no_sync",
            f"when gradients are reduced matters under fsdp2 only; under {sharding.strategy} leave it off.",
            "plan.sharding.sync_each_batch",
        )
    if not sharding.reshard_after_forward:
        raise Refused(
            "no_resharding",
            f"weights stay gathered after the forward pass under fsdp and fsdp2 only; under {sharding.strategy} leave it on.",
            "plan.sharding.reshard_after_forward",
        )


def _refuse_fully_sharded(plan: Plan) -> None:
    strategy, ranks, copies = plan.sharding.strategy, plan.sharding.data_parallel, plan.sharding.replicas
    if copies > 1 and (ranks % copies or ranks == copies):
        raise Refused(
            "copies_of_shares",
            f"{ranks} GPUs cannot hold {copies} copies that two GPUs or more share each: replicas must divide data_parallel and leave two.",
            "plan.sharding.replicas",
        )
    if plan.sharding.offload == "optimizer":
        raise Refused(
            "offload_of_states_alone",
            f"{strategy} moves weights, gradients and states to host memory together (cpu_offload), not the states alone; choose all, or none.",
            "plan.sharding.offload",
        )
    if plan.sharding.offload == "all" and plan.optimizer not in OPTIMIZERS_ON_HOST:
        raise Refused(
            "optimizer_not_modelled",
            f"{plan.optimizer} is not modelled on weights in host memory yet; choose {', '.join(OPTIMIZERS_ON_HOST)}.",
            "plan.optimizer",
        )
    if isinstance(plan, QLora) or (isinstance(plan, Lora) and strategy == "fsdp"):
        raise Refused(
            "adapters_not_modelled",
            f"{plan.method} is not modelled under {strategy} yet; choose ddp, or lora under fsdp2.",
            "plan.method",
        )
    if isinstance(plan, Lora) and (plan.lora.use_dora or plan.lora.modules_to_save):
        raise Refused(
            "adapters_not_modelled",
            f"DoRA and layers trained whole beside adapters are not modelled under {strategy} yet; do without, or choose ddp.",
            "plan.lora.use_dora" if plan.lora.use_dora else "plan.lora.modules_to_save",
        )
    if plan.optimizer not in OPTIMIZERS_OF_SHARES[strategy]:
        raise Refused(
            "optimizer_not_modelled",
            f"{plan.optimizer} is not modelled under {strategy} yet; choose {', '.join(OPTIMIZERS_OF_SHARES[strategy])}.",
            "plan.optimizer",
        )
    if plan.gradient_accumulation_steps > 1 and (strategy == "fsdp" or copies > 1 or plan.sharding.offload != "none"):
        raise Refused(
            "accumulation_not_modelled",
            f"gradient accumulation is not modelled under {strategy} with copies or host memory, nor under fsdp; set it to 1, or take fsdp2 alone.",
            "plan.gradient_accumulation_steps",
        )
    if FRAMEWORKS[plan.framework].reentrant_checkpointing:
        raise Refused(
            "framework_not_modelled",
            f"{strategy} is modelled for transformers 5.24 only, not for {FRAMEWORKS[plan.framework].label}.",
            "plan.framework",
        )


def refuse_sharded_model(plan: Plan, model: Architecture | None, parameters: Callable[[], Sequence[Parameter]]) -> None:
    """Models whose blocks are not one stack of their own weights in one dtype, under FSDP. Raises `Refused`."""
    if plan.sharding.strategy not in ("fsdp", "fsdp2"):
        return
    if model is None:
        raise Refused(
            "activations_not_modelled",
            f"{plan.sharding.strategy} is modelled only where the activations of the model are; choose ddp, or one GPU.",
            "plan.sharding.strategy",
        )
    found = parameters()
    stacks = {p.name.partition(".*.")[0] for p in found if ".*." in p.name}
    if len(stacks) != 1 or model.family.loss is not None:
        raise Refused(
            "model_not_modelled",
            f"{plan.sharding.strategy} is modelled for language models with one stack of layers, not for {model.name}; choose ddp.",
            "plan.sharding.strategy",
        )
    if len({p.dtype for p in found}) != 1:
        raise Refused(
            "several_dtypes",
            f"{model.name} keeps some weights in another dtype than the rest, which FSDP does not take together; choose ddp.",
            "plan.sharding.strategy",
        )
    if plan.sharding.strategy == "fsdp" and any(p.numel % (FLAT // 2) for p in found):
        raise Refused(
            "padded_flat_parameter",
            f"fsdp pads tensors of {model.name} to {FLAT} bytes within its flat parameters, which is not modelled; choose fsdp2.",
            "plan.sharding.strategy",
        )
