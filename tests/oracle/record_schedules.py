"""Re-record the schedules of transformers, torch and accelerate from the running libraries, to the last bit.

    .oracle-venv/bin/python tests/oracle/record_schedules.py            compare with tests/golden/schedules.json
    .oracle-venv/bin/python tests/oracle/record_schedules.py --write    put the exact doubles there

Needs transformers 5.24 and torch; the other libraries' cases are left as they were recorded.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.scheduler import AcceleratedScheduler
from accelerate.state import PartialState
from transformers.optimization import get_scheduler

GOLDEN = Path(__file__).parents[1] / "golden" / "schedules.json"
TRANSFORMERS = {
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "inverse_sqrt",
    "cosine_with_min_lr",
    "cosine_warmup_with_min_lr",
    "warmup_stable_decay",
    "reduce_lr_on_plateau",
    "greedy",
}
TORCH = {
    "torch-one-cycle": "OneCycleLR",
    "torch-cosine-annealing": "CosineAnnealingLR",
    "torch-cosine-warm-restarts": "CosineAnnealingWarmRestarts",
    "torch-linear": "LinearLR",
    "torch-polynomial": "PolynomialLR",
    "torch-exponential": "ExponentialLR",
    "torch-step": "StepLR",
    "torch-constant": "ConstantLR",
}
# torch computes these from the rate of the step before, so its last digits are its own.
RECURSIVE = {"torch-cosine-annealing", "torch-linear", "torch-polynomial", "torch-exponential", "torch-step"}


def scheduler(case: dict, optimizer: torch.optim.Optimizer):
    options = {k: v for k, v in case["options"].items() if k not in ("metrics", "eval_steps")}
    if case["kind"] in TRANSFORMERS:
        return get_scheduler(
            case["kind"],
            optimizer,
            num_warmup_steps=case["warmup_steps"],
            num_training_steps=case["steps"],
            scheduler_specific_kwargs=options,
        )
    if case["kind"] == "torch-one-cycle":
        options = {"max_lr": case["learning_rate"], "total_steps": case["steps"], **options}
    return getattr(torch.optim.lr_scheduler, TORCH[case["kind"]])(optimizer, **options)


def recorded(case: dict) -> tuple[list[float], str | None]:
    """Rates at the case's steps, and the error that ended the recording."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=case["learning_rate"], momentum=0.9)
    wanted, seen = set(case["at"]), {}
    try:
        inner = scheduler(case, optimizer)
        stepper = inner
        if "ticks" in case:
            Accelerator(cpu=True)
            PartialState._shared_state["num_processes"] = case["ticks"]
            stepper = AcceleratedScheduler(inner, [], step_with_optimizer=True, split_batches=False)
        metrics = case["options"].get("metrics")
        for step in range(max([*wanted, case.get("fails_at", 0)], default=0) + 1):
            if step in wanted:
                seen[step] = float(optimizer.param_groups[0]["lr"])
            stepper.step(*([metrics[step]] if metrics and step < len(metrics) else []))
            if metrics and step + 1 == len(metrics):
                seen[step + 1] = float(optimizer.param_groups[0]["lr"])
                break
    except (ValueError, TypeError, ZeroDivisionError) as error:
        return [seen[s] for s in case["at"] if s in seen], f"{type(error).__name__}: {error}"
    return [seen[s] for s in case["at"]], None


def main() -> int:
    warnings.simplefilter("ignore")
    document = json.loads(GOLDEN.read_text())
    versions = f"transformers {version('transformers')}, torch {version('torch')}, accelerate {version('accelerate')}"
    compared = wrong = 0
    for case in document["cases"]:
        if case["kind"] not in TRANSFORMERS and case["kind"] not in TORCH:
            continue
        rates, error = recorded(case)
        compared += len(rates)
        same = len(rates) == len(case["rates"]) and all(
            float(f"{r:.12g}") == float(f"{g:.12g}") for r, g in zip(rates, case["rates"], strict=True)
        )
        if not same or ("error" in case) != (error is not None):
            wrong += 1
            print(
                "differs:",
                case["kind"],
                case["warmup_steps"],
                case["steps"],
                {k: v for k, v in case["options"].items() if k != "metrics"},
                error,
                case.get("error"),
                list(zip(case["at"], rates, case["rates"], strict=False))[:3],
            )
        elif "--write" in sys.argv and case["kind"] not in RECURSIVE:
            case.update(rates=rates, doubles=versions)
    print(f"{compared} rates of {versions} compared, {wrong} cases differ")
    if "--write" in sys.argv and not wrong:
        cases = ",\n".join(json.dumps(case) for case in document.pop("cases"))
        GOLDEN.write_text(json.dumps(document, indent=1)[:-2] + ',\n "cases": [\n' + cases + "\n]}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
