"""What published recipes, papers and guides advise: one figure a row, as a range, with its source.

Where sources disagree there are rows for both. A row says how it is known: read in the source's own text, counted over
many examples, reported by others, or this project's own rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from calc.catalog.table import Table

Topic = Literal[
    "learning rate",
    "warmup",
    "schedule",
    "batch",
    "clipping",
    "epochs",
    "optimizer",
    "precision",
    "epsilon",
    "pretraining",
]
Method = Literal["any", "full", "lora", "qlora"]
Objective = Literal["any", "sft", "dpo", "rl"]
Known = Literal["read", "counted", "reported", "ours"]


@dataclass(frozen=True, slots=True)
class Advice:
    """One piece of advice."""

    id: str
    topic: Topic
    method: Method
    objective: Objective
    low: float | None
    """Lowest value advised; None where the advice is not a number."""
    start: float | None
    """Where to start."""
    high: float | None
    unit: str
    """rate, share of T, steps, sequences, norm, epochs, times."""
    text: str
    """The advice in a sentence."""
    source: str
    known: Known
    billions: tuple[float, float] = (0, math.inf)
    """Model sizes it speaks of, in 10**9 parameters, from and below."""
    optimizer: str = ""
    """The optimizer it speaks of, by id; empty for AdamW and its kin."""


def _rate(
    id: str,
    method: Method,
    low: float,
    start: float,
    high: float,
    text: str,
    source: str,
    known: Known = "read",
    *,
    objective: Objective = "sft",
    billions: tuple[float, float] = (0, math.inf),
    optimizer: str = "",
) -> Advice:
    return Advice(
        id, "learning rate", method, objective, low, start, high, "rate", text, source, known, billions, optimizer
    )


def _words(
    id: str,
    topic: Topic,
    text: str,
    source: str,
    known: Known = "read",
    *,
    method: Method = "any",
    objective: Objective = "any",
    optimizer: str = "",
) -> Advice:
    return Advice(id, topic, method, objective, None, None, None, "", text, source, known, optimizer=optimizer)


def _amount(
    id: str,
    topic: Topic,
    low: float,
    start: float,
    high: float,
    unit: str,
    text: str,
    source: str,
    known: Known = "read",
    *,
    method: Method = "any",
    objective: Objective = "any",
    billions: tuple[float, float] = (0, math.inf),
) -> Advice:
    return Advice(id, topic, method, objective, low, start, high, unit, text, source, known, billions)


# Rows stand in the order in which a page shows them: the nearest to a measurement first.
GUIDANCE = Table(
    "advice",
    # Learning rate, full fine-tuning
    _rate(
        "full-alpaca",
        "full",
        2e-5,
        2e-5,
        2e-5,
        "Alpaca 7B: 2e-5 at batch 128 for 3 epochs.",
        "alpaca",
        billions=(3, 14),
    ),
    _rate(
        "full-tulu3-8b",
        "full",
        5e-6,
        5e-6,
        5e-6,
        "Tülu 3 8B: 5e-6, linear, warmup 0.03, 2 epochs, batch 128.",
        "tulu3",
        billions=(3, 14),
    ),
    _rate("full-tulu3-70b", "full", 2e-6, 2e-6, 2e-6, "Tülu 3 70B: 2e-6.", "tulu3", billions=(30, math.inf)),
    _rate(
        "full-tinker",
        "full",
        3e-5,
        1e-4,
        1e-4,
        "A tenth of the best LoRA rate per model: 1e-4 for small Qwen3 and Llama 3.2, 3e-5 for Llama 3.1 8B and 70B.",
        "tinker-cookbook",
    ),
    _rate(
        "full-axolotl",
        "full",
        2e-5,
        2e-5,
        2e-5,
        "axolotl's examples: 2e-5 in 21 of 79 full runs.",
        "axolotl",
        "counted",
    ),
    _rate(
        "full-llama-factory",
        "full",
        1e-5,
        1e-5,
        1e-5,
        "LLaMA-Factory's examples: 1e-5, cosine, warmup 0.1.",
        "llama-factory",
    ),
    _rate(
        "full-torchtune",
        "full",
        5e-6,
        2e-5,
        2e-5,
        "torchtune: 2e-5; 5e-6 for Qwen2.5 3B and 7B and Phi-4.",
        "torchtune",
    ),
    _rate("full-ms-swift", "full", 1e-5, 1e-5, 1e-5, "ms-swift's default: 1e-5, cosine, weight decay 0.1.", "ms-swift"),
    _rate("full-deep-nexus", "full", 1e-5, 1e-5, 1e-5, "A Korean course: 1e-5.", "deep-nexus", "reported"),
    _rate("full-trl", "full", 2e-5, 2e-5, 2e-5, "TRL's default for SFT: 2e-5.", "trl-defaults"),
    _rate(
        "full-trainer", "full", 5e-5, 5e-5, 5e-5, "Trainer's default: 5e-5, linear, no warmup.", "transformers-trainer"
    ),
    # Learning rate, LoRA and QLoRA
    _rate(
        "lora-ten-times",
        "lora",
        1e-4,
        2e-4,
        1e-3,
        "About ten times the full rate, about fifteen in runs under 100 steps; large batches hurt LoRA sooner.",
        "lora-without-regret",
        "reported",
    ),
    _rate(
        "lora-tinker",
        "lora",
        1e-4,
        3e-4,
        1e-3,
        "Swept per model: 1e-3 for Qwen3 4B to 30B-A3B and Llama 3.2, 3e-4 for Llama 3.1 8B and 70B "
        "and Qwen3 32B, 1e-4 for gpt-oss-20b.",
        "tinker-cookbook",
    ),
    _rate(
        "lora-unsloth",
        "lora",
        5e-6,
        2e-4,
        2e-4,
        "Unsloth: start at 2e-4, search down to 5e-6; 1 to 3 epochs.",
        "unsloth-guide",
    ),
    _rate(
        "lora-axolotl",
        "lora",
        2e-4,
        2e-4,
        2e-4,
        "axolotl's examples: 2e-4 in 56 of 72 LoRA runs.",
        "axolotl",
        "counted",
    ),
    _rate(
        "lora-llama-factory",
        "lora",
        1e-4,
        1e-4,
        1e-4,
        "LLaMA-Factory's examples: 1e-4, cosine, warmup 0.1.",
        "llama-factory",
    ),
    _rate(
        "lora-torchtune",
        "lora",
        3e-4,
        3e-4,
        2e-3,
        "torchtune: 3e-4; 2e-3 for 0.5B and 1.5B; warmup of 100 steps.",
        "torchtune",
    ),
    _rate("lora-ms-swift", "lora", 1e-4, 1e-4, 1e-4, "ms-swift's default: 1e-4.", "ms-swift"),
    _rate("lora-deep-nexus", "lora", 1e-4, 1e-4, 1e-4, "A Korean course: 1e-4.", "deep-nexus", "reported"),
    _rate(
        "qlora-small",
        "qlora",
        2e-4,
        2e-4,
        2e-4,
        "QLoRA 7B and 13B: 2e-4, rank 64, batch 16, constant, clipping 0.3.",
        "qlora",
        billions=(0, 14),
    ),
    _rate("qlora-large", "qlora", 1e-4, 1e-4, 1e-4, "QLoRA 33B and 65B: 1e-4.", "qlora", billions=(14, math.inf)),
    _rate(
        "qlora-zephyr",
        "qlora",
        2e-4,
        2e-4,
        2e-4,
        "Zephyr 7B: 2e-4, rank 16, cosine, warmup 0.1.",
        "alignment-handbook",
        billions=(3, 14),
    ),
    _rate(
        "qlora-axolotl",
        "qlora",
        2e-4,
        2e-4,
        2e-4,
        "axolotl's examples: 2e-4 in 87 of 106 QLoRA runs.",
        "axolotl",
        "counted",
    ),
    # Learning rate, preference and reinforcement
    _rate(
        "dpo-tulu3-8b",
        "full",
        5e-7,
        5e-7,
        5e-7,
        "Tülu 3 8B: 5e-7, warmup 0.1, 1 epoch, batch 128.",
        "tulu3",
        objective="dpo",
        billions=(3, 14),
    ),
    _rate(
        "dpo-tulu3-70b",
        "full",
        2e-7,
        2e-7,
        2e-7,
        "Tülu 3 70B and 405B: 2e-7.",
        "tulu3",
        objective="dpo",
        billions=(30, math.inf),
    ),
    _rate(
        "dpo-zephyr",
        "full",
        5e-7,
        5e-7,
        5e-7,
        "Zephyr 7B: 5e-7, cosine, warmup 0.1.",
        "alignment-handbook",
        objective="dpo",
        billions=(3, 14),
    ),
    _rate("dpo-lora-llama-factory", "lora", 5e-6, 5e-6, 5e-6, "LLaMA-Factory: 5e-6.", "llama-factory", objective="dpo"),
    _rate(
        "dpo-lora-torchtune",
        "lora",
        5e-4,
        5e-4,
        5e-4,
        "torchtune: 5e-4, a hundred times more.",
        "torchtune",
        objective="dpo",
    ),
    _rate("dpo-trl", "full", 1e-6, 1e-6, 1e-6, "TRL's default for DPO and KTO: 1e-6.", "trl-defaults", objective="dpo"),
    _rate(
        "rl-tulu3",
        "full",
        1e-7,
        3e-7,
        3e-7,
        "Tülu 3 with verifiable rewards: 3e-7 for 8B, 1e-7 for 70B.",
        "tulu3",
        objective="rl",
    ),
    _rate("rl-trl", "full", 1e-6, 1e-6, 1e-6, "TRL's default for GRPO and RLOO: 1e-6.", "trl-defaults", objective="rl"),
    _rate("rl-unsloth", "lora", 5e-6, 5e-6, 5e-6, "Unsloth: 5e-6 with LoRA.", "unsloth-guide", objective="rl"),
    # Learning rate, any method and other optimizers
    _rate(
        "any-devocean",
        "any",
        1e-6,
        1e-4,
        1e-3,
        "Search between 1e-3 and 1e-6, starting at 1e-4.",
        "devocean",
        "reported",
    ),
    _words(
        "size-tinker",
        "learning rate",
        "Across sizes the rate goes with 1 / √parameters, as a rule of thumb.",
        "tinker-cookbook",
    ),
    _words(
        "loraplus",
        "learning rate",
        "LoRA+: the rate of B is 16 times that of A.",
        "loraplus",
        "reported",
        method="lora",
    ),
    _words(
        "rslora",
        "learning rate",
        "With alpha / √rank the rate hardly depends on the rank; with plain alpha / rank neither, in LoRA "
        "Without Regret.",
        "rslora",
        "reported",
        method="lora",
    ),
    _rate("lomo-full", "full", 0.03, 0.03, 0.03, "LOMO: 0.03, because it has no momentum.", "lomo", optimizer="lomo"),
    _rate(
        "lomo-lora",
        "lora",
        0.005,
        0.005,
        0.005,
        "LOMO with LoRA: 0.005, its AdamW part 5e-4.",
        "lomo",
        optimizer="lomo",
    ),
    _words(
        "lion",
        "learning rate",
        "Lion: a third to a tenth of AdamW's rate, and three to ten times its weight decay.",
        "lion",
        optimizer="lion_32bit",
    ),
    _words(
        "muon",
        "learning rate",
        "Muon: with the update scaled by 0.2 · √max(rows, columns), AdamW's rate and weight decay hold.",
        "muon",
        optimizer="muon",
    ),
    _words(
        "schedulefree",
        "learning rate",
        "Schedule-free AdamW: 1 to 10 times the scheduled rate, SGD 10 to 50 times; warm up.",
        "schedulefree",
        optimizer="schedule_free_adamw",
    ),
    # Warmup
    _amount(
        "warmup-qlora",
        "warmup",
        0.03,
        0.03,
        0.03,
        "share of T",
        "3 % in QLoRA and Tülu 3's SFT, and axolotl's default.",
        "tulu3",
    ),
    _amount(
        "warmup-axolotl",
        "warmup",
        0.1,
        0.1,
        0.1,
        "share of T",
        "axolotl's examples: warmup_ratio 0.1 in 219 of 257.",
        "axolotl",
        "counted",
    ),
    _amount(
        "warmup-dpo", "warmup", 0.1, 0.1, 0.1, "share of T", "DPO: 10 % in Tülu 3 and Zephyr.", "tulu3", objective="dpo"
    ),
    _amount(
        "warmup-devocean-small",
        "warmup",
        0.05,
        0.05,
        0.05,
        "share of T",
        "5 % for small models, shorter when data are few.",
        "devocean",
        "reported",
        billions=(0, 14),
    ),
    _amount(
        "warmup-devocean-large",
        "warmup",
        0.1,
        0.1,
        0.1,
        "share of T",
        "10 % for large models, shorter when data are few.",
        "devocean",
        "reported",
        billions=(14, math.inf),
    ),
    _amount(
        "warmup-deep-nexus",
        "warmup",
        0.05,
        0.05,
        0.1,
        "share of T",
        "A Korean course: 5 to 10 %.",
        "deep-nexus",
        "reported",
    ),
    _amount(
        "warmup-untuned",
        "warmup",
        40,
        2000,
        2000,
        "steps",
        "Untuned: 2 / (1 − beta2) steps, 2,000 at 0.999 and 40 at 0.95. That is longer than most fine-tuning runs.",
        "untuned-warmup",
    ),
    # Schedule
    _words(
        "schedule-linear",
        "schedule",
        "Linear to zero beats cosine to a tenth, the more so the longer the run.",
        "linear-to-zero",
    ),
    _words(
        "schedule-cooldown",
        "schedule",
        "Constant with a cooldown matches cosine, and a 1 − √ cooldown over about a fifth of the run beats a "
        "linear one.",
        "cooldown",
    ),
    _words("schedule-devocean", "schedule", "Cosine or linear; constant is not recommended.", "devocean", "reported"),
    _words(
        "schedule-qlora",
        "schedule",
        "Constant is a bit better than cosine, says QLoRA's help text.",
        "qlora",
        method="qlora",
    ),
    _words("schedule-axolotl", "schedule", "axolotl's examples: cosine in 234 of 257.", "axolotl", "counted"),
    # Batch
    _words(
        "batch-linear",
        "batch",
        "SGD: the rate grows with the batch (k times the batch, k times the rate).",
        "goyal",
        "reported",
    ),
    _words(
        "batch-sqrt",
        "batch",
        "Adam: the rate grows with the root of the batch; 1 − beta grows with the batch, epsilon shrinks with "
        "its root.",
        "malladi",
    ),
    _words(
        "batch-surge",
        "batch",
        "Adam: the best rate rises, then falls with the batch; its peak moves right as the loss falls.",
        "surge",
    ),
    _words("batch-critical", "batch", "The critical batch grows with the data, not with the model.", "critical-batch"),
    _words(
        "batch-critical-warmup",
        "batch",
        "The critical batch is near 0 at first, rises fast and levels off: grow the batch during a run.",
        "critical-batch-revisited",
    ),
    _words(
        "batch-lora",
        "batch",
        "LoRA loses more than full fine-tuning at large batches.",
        "lora-without-regret",
        "reported",
        method="lora",
    ),
    _amount("batch-recipes", "batch", 16, 128, 128, "sequences", "16 in QLoRA, 128 in Alpaca and Tülu 3.", "tulu3"),
    # Clipping
    _amount("clip-default", "clipping", 1.0, 1.0, 1.0, "norm", "1.0 in Trainer and TRL.", "transformers-trainer"),
    _amount("clip-qlora", "clipping", 0.3, 0.3, 0.3, "norm", "0.3 in QLoRA.", "qlora", method="qlora"),
    # Epochs
    _amount(
        "epochs-few",
        "epochs",
        3,
        3,
        5,
        "epochs",
        "Under 1,000 rows: 3 to 5; up to 10,000: 2 to 3; more: 1 to 2.",
        "deep-nexus",
        "reported",
    ),
    _amount("epochs-unsloth", "epochs", 1, 1, 3, "epochs", "1 to 3; more overfits.", "unsloth-guide"),
    # Optimizer, precision, epsilon
    _words(
        "optimizer-devocean",
        "optimizer",
        "AdamW if memory allows, then adamw_8bit, then paged_adamw_8bit; Adafactor may be unstable.",
        "devocean",
        "reported",
    ),
    _words(
        "optimizer-lora",
        "optimizer",
        "Plain AdamW with LoRA: its states are small there.",
        "devocean",
        "reported",
        method="lora",
    ),
    _words(
        "lora-best",
        "optimizer",
        "LoRA: the highest rate that stays stable, on all modules, for instruction data rather than new domains.",
        "lora-learns-less",
        "reported",
        method="lora",
    ),
    _words("precision-devocean", "precision", "bf16 rather than fp16 on Ampere and newer.", "devocean", "reported"),
    _words("epsilon-fp16", "epsilon", "1e-8 rounds to 0 in pure fp16: use 1e-7 or more there.", "torch-finfo"),
    # Pretraining, for comparison
    _words(
        "pretrain-step-law",
        "pretraining",
        "Step Law: rate 1.79 · N^−0.713 · D^0.307, batch 0.58 · D^0.571 tokens.",
        "step-law",
    ),
    _words(
        "pretrain-deepseek",
        "pretraining",
        "DeepSeek: rate 0.3118 · C^−0.1250, batch 0.2920 · C^0.3271 tokens.",
        "deepseek-llm",
        "reported",
    ),
    # This project's own starting rule
    _rate(
        "start-full-small",
        "full",
        2e-5 / 3,
        2e-5,
        6e-5,
        "Start at 2e-5 up to 3B.",
        "decision-rule",
        "ours",
        billions=(0, 3),
    ),
    _rate(
        "start-full-medium",
        "full",
        1e-5 / 3,
        1e-5,
        3e-5,
        "Start at 1e-5 from 3B to 30B.",
        "decision-rule",
        "ours",
        billions=(3, 30),
    ),
    _rate(
        "start-full-large",
        "full",
        5e-6 / 3,
        5e-6,
        1.5e-5,
        "Start at 5e-6 from 30B.",
        "decision-rule",
        "ours",
        billions=(30, math.inf),
    ),
    _rate(
        "start-lora-small",
        "lora",
        2e-4 / 3,
        2e-4,
        6e-4,
        "Start at 2e-4 up to 30B.",
        "decision-rule",
        "ours",
        billions=(0, 30),
    ),
    _rate(
        "start-lora-large",
        "lora",
        1e-4 / 3,
        1e-4,
        3e-4,
        "Start at 1e-4 from 30B.",
        "decision-rule",
        "ours",
        billions=(30, math.inf),
    ),
    _rate("start-dpo-full", "full", 5e-7 / 3, 5e-7, 1.5e-6, "Start at 5e-7.", "decision-rule", "ours", objective="dpo"),
    _rate("start-dpo-lora", "lora", 5e-6 / 3, 5e-6, 1.5e-5, "Start at 5e-6.", "decision-rule", "ours", objective="dpo"),
)


def advice(
    topic: Topic, *, method: Method, parameters: float, objective: Objective = "sft", optimizer: str = ""
) -> tuple[Advice, ...]:
    """The rows that speak of a topic for this method, size, objective and optimizer, in table order.

    Rows about LoRA hold for QLoRA too; the project's own starting rule is left to `starting_rate`.
    """
    size = parameters / 1e9
    methods = {"any", method} | ({"lora"} if method == "qlora" else set())
    return tuple(
        row
        for row in GUIDANCE.values()
        if row.topic == topic
        and row.method in methods
        and row.objective in ("any", objective)
        and row.optimizer in ("", optimizer)
        and row.billions[0] <= size < row.billions[1]
        and row.known != "ours"
    )


def starting_rate(*, method: Method, parameters: float, objective: Objective = "sft") -> Advice:
    """Where to start, and a grid of a third, one and three times that: this project's rule, drawn from the rows.

    Raises `LookupError` for what the rule does not speak of.
    """
    kept = "lora" if method == "qlora" else method
    size = parameters / 1e9
    for row in GUIDANCE.values():
        if (
            row.known == "ours"
            and row.method == kept
            and row.objective == objective
            and row.billions[0] <= size < row.billions[1]
        ):
            return row
    raise LookupError(f"no starting rule for {objective} with method {method}")


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A learning rate carried to another batch size, by one rule."""

    rule: Literal["linear", "square root", "surge"]
    rate: float
    formula: str
    note: str
    source: str


def rescaled(rate: float, *, batch: float, new_batch: float, noise_batch: float | None = None) -> tuple[Rescaled, ...]:
    """The rate at another batch size, by each published rule. Sources disagree, so all are shown.

    The surge rule needs the batch at which the best rate peaks, `noise_batch`; without it only the first two answer.
    """
    kappa = new_batch / batch
    rows = [
        Rescaled("linear", rate * kappa, "lr · B′ / B", "For SGD.", "goyal"),
        Rescaled(
            "square root",
            rate * math.sqrt(kappa),
            "lr · √(B′ / B)",
            "For Adam; trust it within a factor of 2.",
            "malladi",
        ),
    ]
    if noise_batch is not None:

        def spread(B: float) -> float:
            return math.sqrt(noise_batch / B) + math.sqrt(B / noise_batch)

        rows.append(
            Rescaled(
                "surge",
                rate * spread(batch) / spread(new_batch),
                "lr · (√(Bn/B) + √(B/Bn)) / (√(Bn/B′) + √(B′/Bn))",
                "For Adam: it falls again past the noise batch Bn.",
                "surge",
            )
        )
    return tuple(rows)


def warmup_rule(steps: int) -> int:
    """Warmup steps to start with.

    3 % of the run or about 10 steps, at most a tenth of the run (this project's rule).
    """
    return min(max(math.ceil(0.03 * steps), 10), math.ceil(0.1 * steps))


def step_law(*, parameters: float, tokens: float) -> tuple[float, float]:
    """Pretraining rate and batch in tokens by Step Law: N parameters without embeddings, D tokens.

    For comparison only.
    """
    return 1.79 * parameters**-0.713 * tokens**0.307, 0.58 * tokens**0.571
