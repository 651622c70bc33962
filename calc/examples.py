"""Scenarios worth opening: the one that the page starts on, and presets one click away."""

from __future__ import annotations

from dataclasses import dataclass

from calc.catalog.table import Table
from calc.scenario import FullFineTuning, Hardware, Lora, LoraAdapter, QLora, Scenario

ATTENTION_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclass(frozen=True, slots=True)
class Example:
    """A scenario with a stable id; the page's texts hold its title."""

    id: str
    scenario: Scenario


EXAMPLES = Table(
    "example",
    # What a first full fine-tune on one "80 GB" card gets wrong: everything else is lean, and it still dies in the
    # first optimizer step, where AdamW's two states and its temporaries meet.
    Example(
        "full-9b-one-card",
        Scenario(
            model="google/gemma-2-9b",
            plan=FullFineTuning(
                optimizer="adamw_torch",
                micro_batch_size=1,
                seq_len=4096,
                gradient_checkpointing="full",
                attention="flash_attention_2",
            ),
            hardware=Hardware(gpu="a100-sxm-80gb"),
        ),
    ),
    Example(
        "qlora-8b-24gb",
        Scenario(
            model="meta-llama/Llama-3.1-8B",
            plan=QLora(
                lora=LoraAdapter(rank=16, alpha=32),
                precision="bf16-autocast",
                optimizer="paged_adamw_8bit",
                micro_batch_size=2,
                seq_len=2048,
                gradient_checkpointing="full",
            ),
            hardware=Hardware(gpu="rtx-4090"),
        ),
    ),
    Example(
        "lora-7b-40gb",
        Scenario(
            model="mistralai/Mistral-7B-v0.1",
            plan=Lora(
                lora=LoraAdapter(rank=16, alpha=32, target_modules=ATTENTION_PROJECTIONS),
                precision="bf16-autocast",
                micro_batch_size=4,
                seq_len=2048,
                gradient_checkpointing="full",
                attention="flash_attention_2",
            ),
            hardware=Hardware(gpu="a100-sxm-40gb"),
        ),
    ),
    Example(
        "full-gemma-2b-fp32",
        Scenario(
            model="google/gemma-2b",
            plan=FullFineTuning(precision="fp32", optimizer="adamw_torch", micro_batch_size=1, seq_len=1024),
            hardware=Hardware(gpu="a100-sxm-80gb"),
        ),
    ),
)
OPENING = EXAMPLES["full-9b-one-card"].scenario
