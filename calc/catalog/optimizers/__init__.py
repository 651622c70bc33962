"""Optimizers: what each keeps per parameter, what its step needs, what it costs and where it runs.

One row per name that `TrainingArguments(optim=...)` of transformers 5.24 knows, and the others that people fine-tune with.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.catalog.table import Table


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimizer as a trainer names it."""

    id: str
    label: str


OPTIMIZERS = Table(
    "optimizer",
    Optimizer("adamw_torch", "AdamW (PyTorch)"),
    Optimizer("adamw_torch_fused", "AdamW, fused (PyTorch)"),
    Optimizer("adamw_torch_xla", "AdamW for XLA devices"),
    Optimizer("adamw_torch_npu_fused", "AdamW, fused for Ascend NPUs"),
    Optimizer("adafactor", "Adafactor (transformers)"),
    Optimizer("adamw_anyprecision", "AdamW, any precision (torchdistX)"),
    Optimizer("adamw_torch_4bit", "AdamW, 4-bit states (torchao)"),
    Optimizer("adamw_torch_8bit", "AdamW, 8-bit states (torchao)"),
    Optimizer("ademamix", "AdEMAMix, 32-bit states (bitsandbytes)"),
    Optimizer("sgd", "SGD (PyTorch)"),
    Optimizer("adagrad", "Adagrad (PyTorch)"),
    Optimizer("adamw_bnb_8bit", "AdamW, 8-bit states (bitsandbytes)"),
    Optimizer("adamw_8bit", "AdamW, 8-bit states (bitsandbytes)"),
    Optimizer("ademamix_8bit", "AdEMAMix, 8-bit states (bitsandbytes)"),
    Optimizer("lion_8bit", "Lion, 8-bit states (bitsandbytes)"),
    Optimizer("lion_32bit", "Lion, 32-bit states (bitsandbytes)"),
    Optimizer("paged_adamw_32bit", "AdamW, paged 32-bit states (bitsandbytes)"),
    Optimizer("paged_adamw_8bit", "AdamW, paged 8-bit states (bitsandbytes)"),
    Optimizer("paged_ademamix_32bit", "AdEMAMix, paged 32-bit states (bitsandbytes)"),
    Optimizer("paged_ademamix_8bit", "AdEMAMix, paged 8-bit states (bitsandbytes)"),
    Optimizer("paged_lion_32bit", "Lion, paged 32-bit states (bitsandbytes)"),
    Optimizer("paged_lion_8bit", "Lion, paged 8-bit states (bitsandbytes)"),
    Optimizer("rmsprop", "RMSprop (PyTorch)"),
    Optimizer("rmsprop_bnb", "RMSprop, 32-bit states (bitsandbytes)"),
    Optimizer("rmsprop_bnb_8bit", "RMSprop, 8-bit states (bitsandbytes)"),
    Optimizer("rmsprop_bnb_32bit", "RMSprop, 32-bit states (bitsandbytes)"),
    Optimizer("galore_adamw", "GaLore AdamW"),
    Optimizer("galore_adamw_8bit", "GaLore AdamW, 8-bit states"),
    Optimizer("galore_adafactor", "GaLore Adafactor"),
    Optimizer("galore_adamw_layerwise", "GaLore AdamW, layer by layer"),
    Optimizer("galore_adamw_8bit_layerwise", "GaLore AdamW, 8-bit states, layer by layer"),
    Optimizer("galore_adafactor_layerwise", "GaLore Adafactor, layer by layer"),
    Optimizer("lomo", "LOMO"),
    Optimizer("adalomo", "AdaLomo"),
    Optimizer("grokadamw", "GrokAdamW"),
    Optimizer("schedule_free_radam", "Schedule-free RAdam"),
    Optimizer("schedule_free_adamw", "Schedule-free AdamW"),
    Optimizer("schedule_free_sgd", "Schedule-free SGD"),
    Optimizer("apollo_adamw", "APOLLO AdamW"),
    Optimizer("apollo_adamw_layerwise", "APOLLO AdamW, layer by layer"),
    Optimizer("stable_adamw", "StableAdamW (torch-optimi)"),
    Optimizer("sgd_momentum", "SGD with momentum (PyTorch)"),
    Optimizer("nadam", "NAdam (PyTorch)"),
    Optimizer("adamax", "Adamax (PyTorch)"),
    Optimizer("torch_adafactor", "Adafactor (PyTorch)"),
    Optimizer("muon", "Muon (PyTorch)"),
    Optimizer("adamw_torch_fp8", "AdamW, fp8 states (torchao)"),
    Optimizer("came", "CAME"),
    Optimizer("lion", "Lion (pytorch_optimizer)"),
    Optimizer("ademamix_torch", "AdEMAMix (pytorch_optimizer)"),
    Optimizer("prodigy", "Prodigy (pytorch_optimizer)"),
    Optimizer("soap", "SOAP (pytorch_optimizer)"),
    Optimizer("adamw_hf", "AdamW (transformers before 5)"),
)
