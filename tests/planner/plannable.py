"""Sixty scenarios as people run them, twenty that fit and forty that do not."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from calc import Scenario, estimate
from calc.memory.problems import Refused

MODELS = (
    "meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.1", "Qwen/Qwen2.5-7B", "google/gemma-2b", "meta-llama/Llama-3.2-1B",
    "mistralai/Mixtral-8x7B-v0.1",
)  # fmt: skip
CARDS = ("rtx-4090", "a100-sxm-80gb", "t4")
PLANS: tuple[dict[str, Any], ...] = (
    {"method": "full", "optimizer": "adamw_torch", "micro_batch_size": 8, "seq_len": 4096, "attention": "flash_attention_2"},
    {"method": "full", "precision": "bf16-mixed", "micro_batch_size": 1, "seq_len": 2048, "gradient_checkpointing": "full"},
    {"method": "full", "precision": "bf16-autocast", "micro_batch_size": 2, "seq_len": 1024, "optimizer": "adafactor"},
    {"method": "lora", "precision": "bf16-autocast", "micro_batch_size": 4, "seq_len": 2048, "lora": {"rank": 64, "dropout": 0.05}},
    {"method": "qlora", "precision": "bf16-autocast", "micro_batch_size": 2, "seq_len": 4096, "gradient_checkpointing": "full",
     "optimizer": "paged_adamw_8bit"},
    {"method": "qlora", "precision": "fp16-autocast", "micro_batch_size": 1, "seq_len": 512, "attention": "sdpa"},
    {"method": "full", "precision": "fp16-mixed", "micro_batch_size": 4, "seq_len": 1024, "attention": "eager",
     "gradient_accumulation_steps": 4},
    {"method": "lora", "precision": "fp16-autocast", "micro_batch_size": 1, "seq_len": 1024, "gradient_checkpointing": "full",
     "padded": True},
)  # fmt: skip


@cache
def scenarios() -> tuple[tuple[Scenario, bool], ...]:
    """The scenarios, each with whether it fits."""
    found: dict[bool, list[Scenario]] = {True: [], False: []}
    wanted = {True: 20, False: 40}
    for plan, model, gpu in product(PLANS, MODELS, CARDS):
        scenario = Scenario.model_validate({"model": model, "plan": plan, "hardware": {"gpu": gpu}})
        try:
            verdict = estimate(scenario).verdict
        except Refused:
            continue
        fits = verdict in ("fits", "tight")
        if verdict != "impossible" and len(found[fits]) < wanted[fits]:
            found[fits].append(scenario)
    assert [20, 40] == [len(found[True]), len(found[False])]
    return tuple((scenario, fits) for fits, some in found.items() for scenario in some)
