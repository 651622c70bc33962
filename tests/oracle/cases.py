"""Everything that is measured, as rows. To add a case, add a row; to add a kind of truth, add a `Truth` and its module.

A case speaks the product's own words: `plan` holds fields of calc's Scenario. Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from models import MODELS, MORE, REAL, SMALL, TINY
from vision_models import CASES as VISION

Case = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Truth:
    """One golden file: what it is about, the module that measures its cases, and how many the quick check repeats."""

    name: str
    about: str
    module: str
    cases: tuple[Case, ...]
    sample: int = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """Models times settings; attention that a model's class refuses is left out, and a class that only has eager takes it."""

    models: Iterable[str]
    batches: tuple[tuple[int, int], ...] = ((2, 56),)
    precision: tuple[str, ...] = ("bf16",)
    attention: tuple[str, ...] = ("sdpa",)
    gradient_checkpointing: tuple[str, ...] = ("none", "full")
    optimizer: tuple[str, ...] = ("adamw_torch_fused",)
    more: tuple[dict[str, Any], ...] = ({},)
    """Further plan fields, one dict per variant."""

    def __iter__(self) -> Iterator[Case]:
        for name, (batch, length), precision, attention, checkpointing, optimizer, more in itertools.product(
            self.models,
            self.batches,
            self.precision,
            self.attention,
            self.gradient_checkpointing,
            self.optimizer,
            self.more,
        ):
            supported = MODELS[name].attention
            if attention not in supported and (attention != self.attention[0] or "eager" in self.attention):
                continue
            yield {
                "model": name,
                "plan": {
                    "method": "full",
                    "precision": precision,
                    "optimizer": optimizer,
                    "micro_batch_size": batch,
                    "seq_len": length,
                    "gradient_checkpointing": checkpointing,
                    "attention": attention if attention in supported else supported[0],
                }
                | more,
            }


def rows(*grids: Iterable[Case]) -> tuple[Case, ...]:
    """All cases of all grids, none twice."""
    seen: dict[str, Case] = {}
    for case in itertools.chain(*grids):
        seen.setdefault(repr(case), case)
    return tuple(seen.values())


def named(models: Iterable[Any], *kinds: str) -> list[str]:
    return [model.name for model in models if model.kind in kinds]


def lora(rank: int, targets: Iterable[Any], **more: Any) -> tuple[dict[str, Any], ...]:
    """One plan variant per choice of targets."""
    return tuple({"method": "lora", "lora": {"rank": rank, "target_modules": target} | more} for target in targets)


def sharded(strategy: str, *ranks: int, **more: Any) -> tuple[dict[str, Any], ...]:
    """One plan variant per number of ranks."""
    return tuple({"sharding": {"strategy": strategy, "data_parallel": count} | more} for count in ranks)


ALL_TINY, REAL_LAYERS = named(TINY, "tiny"), named(REAL, "real")
MIXTURES = [
    name
    for name in (*ALL_TINY, *REAL_LAYERS)
    if "E" in MODELS[name].symbols
    or any(
        field in MODELS[name].given
        for field in ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    )
]
DENSE_TINY = [name for name in ALL_TINY if name not in MIXTURES]
DENSE_REAL = [name for name in REAL_LAYERS if name not in MIXTURES]
MIXED_TINY = [name for name in ALL_TINY if name in MIXTURES]
MIXED_REAL = [name for name in REAL_LAYERS if name in MIXTURES]
FEW = ["llama@2", "llama-tied@2", "gemma2@2", "gpt2-dropout@2", "falcon@2", "qwen3_moe@2"]
LORA_TINY = [
    "llama@2",
    "llama-tied@2",
    "gemma3@2",
    "qwen3@2",
    "phi3@2",
    "mistral@2",
    "olmo2@2",
    "cohere@2",
    "qwen3_moe@2",
]
WHOLE = ["llama-3-8b@32", "qwen2.5-3b@36", "gemma-2-2b@26", "tinyllama-1.1b@22", "qwen3-0.6b@28", "gpt2@12"]
TARGETS = (["q_proj", "v_proj"], "all-linear")
KERNELS = (
    {"loss": "liger"},
    {"kernels": "liger", "loss": "liger"},
    {"kernels": "liger"},
    {"loss": "triton"},
    {"loss": "chunked"},
)
CUT_HEADS = [
    "llama@2", "llama-tied@2", "mistral@2", "mixtral@2", "gemma@2", "gemma2@2", "gemma3@2", "phi3@2", "qwen2@2", "qwen3@2", "qwen3_moe@2",
    "smollm3@4",
]  # fmt: skip
"""Models with a head that cut cross-entropy can stand for, of those that are patched."""
FOUR = ["llama-2-7b@2", "llama-3-8b@2", "qwen2.5-3b@2", "gemma-2-2b@2"]

OPTIM = """adamw_torch adamw_torch_fused adafactor ademamix sgd adagrad adamw_bnb_8bit adamw_8bit ademamix_8bit lion_8bit lion_32bit
    paged_adamw_32bit paged_adamw_8bit paged_lion_32bit paged_lion_8bit rmsprop rmsprop_bnb
    rmsprop_bnb_8bit rmsprop_bnb_32bit lomo adalomo grokadamw schedule_free_radam schedule_free_adamw schedule_free_sgd stable_adamw
    adamw_torch_4bit adamw_torch_8bit""".split()  # noqa: SIM905
LOW_RANK_OPTIM = """galore_adamw galore_adamw_8bit galore_adafactor galore_adamw_layerwise galore_adamw_8bit_layerwise apollo_adamw
    apollo_adamw_layerwise""".split()  # noqa: SIM905
OPTIMIZER_ROWS: tuple[Case, ...] = (
    *({"optim": name} for name in OPTIM),
    *({"optim": name, "optim_args": f"rank={rank}"} for name in LOW_RANK_OPTIM for rank in (16, 128)),
    {"optim": "sgd", "optim_args": "momentum=0.9"},
    {"optim": "rmsprop", "optim_args": "momentum=0.9,centered=true"},
    {"class": "torch.optim.AdamW", "args": {"foreach": True}},
    {"class": "torch.optim.AdamW", "args": {"foreach": False}},
    {"class": "torch.optim.AdamW", "args": {"fused": True, "amsgrad": True}},
    {"class": "torch.optim.AdamW", "args": {"foreach": True, "amsgrad": True}},
    {"class": "torch.optim.SGD", "args": {"foreach": True}},
    {"class": "torch.optim.SGD", "args": {"foreach": True, "momentum": 0.9}},
    {"class": "torch.optim.SGD", "args": {"fused": True, "momentum": 0.9}},
    {"class": "torch.optim.Adafactor", "args": {}},
    {"class": "torch.optim.Muon", "args": {}, "matrices_only": True},
    {"class": "torch.optim.NAdam", "args": {}},
    {"class": "torch.optim.NAdam", "args": {"foreach": True}},
    {"class": "torch.optim.RAdam", "args": {"foreach": True}},
    {"class": "torch.optim.Adamax", "args": {}},
    {"class": "torch.optim.Adamax", "args": {"foreach": True}},
    {"class": "torch.optim.Adagrad", "args": {"foreach": True}},
    {"class": "torch.optim.RMSprop", "args": {"foreach": True}},
    {
        "class": "transformers.Adafactor",
        "args": {"lr": 1e-3, "scale_parameter": False, "relative_step": False, "beta1": 0.9},
    },
    {"class": "torchao.optim.AdamWFp8", "args": {}},
    {"class": "came_pytorch.CAME", "args": {"lr": 1e-3}},
    *(
        {"class": f"pytorch_optimizer.{name}", "args": {}}
        for name in ("Lion", "AdEMAMix", "Prodigy", "SOAP", "StableAdamW")
    ),
    *(
        {"class": f"bitsandbytes.optim.{name}", "args": {}}
        for name in ("Adam8bit", "AdamW8bit", "Lion8bit", "RMSprop8bit", "Adagrad8bit", "AdEMAMix8bit")
    ),
    {"class": "bitsandbytes.optim.SGD8bit", "args": {"lr": 1e-3, "momentum": 0.9}},
    {"class": "bitsandbytes.optim.LAMB8bit", "args": {}},
)
NOT_ALONE = (
    "persimmon@2", "gpt_neo@2", "phimoe@2", "gpt_oss@2", "glm4_moe@2", "ernie4_5_moe@2", "deepseek_v3@2", "jetmoe@2", "exaone_moe@4",
    "youtu@2", "granite4@2", "granite4-hybrid@5", "bamba@5", "jamba@7", "mamba@2", "mamba-bias@2", "falcon_mamba@2", "mamba2@2",
    "mamba2-bias@2", "minimax@5", "minimax-short@5", "gemma4_dense@9", "gemma4_moe@9", "gemma4_small@9",
    "falcon_h1@2", "falcon_h1-normed@2", "nemotron_h@7", "nemotron_h-latent@7", "gemma4_wide@9",
)  # fmt: skip
"""Models whose saved tensors are not known one by one, in their order."""
NOT_AWAY = ("jetmoe@2", "gemma4_dense@9", "gemma4_moe@9", "gemma4_small@9", "gemma4_wide@9")
"""Those that cannot be checkpointed, or whose layers are handed more than hidden states."""
FP32_NAMES = named(MORE, "fp32 encoder")
FP32_ENCODERS = (
    Grid(FP32_NAMES, batches=((2, 56), (3, 64), (1, 80)), precision=("fp32",)),
    Grid(FP32_NAMES, precision=("fp32",), more=({"padded": True},)),
    Grid(FP32_NAMES[:1], precision=("fp32",), more=lora(24, targets=(["in_proj"], "all-linear"), dropout=0.05)),
    Grid(
        FP32_NAMES[:1],
        precision=("bf16", "bf16-mixed", "bf16-autocast", "fp16-mixed"),
        gradient_checkpointing=("none",),
    ),
)
"""Encoders whose class runs in fp32 only, and that it does not run otherwise."""
WITHOUT_OUT_PROJ = ("MambaConfig", "Mamba2Config", "FalconMambaConfig", "FalconH1Config", "NemotronHConfig")
"""Classes on whose `out_proj` PEFT puts no adapter."""
RECURRENT_NAMES = named(MORE, "recurrent")
RECURRENT = (
    Grid(RECURRENT_NAMES, batches=((1, 64), (1, 16), (2, 10))),
    Grid(
        [name for name in RECURRENT_NAMES if MODELS[name].config in WITHOUT_OUT_PROJ],
        precision=("bf16", "bf16-autocast"),
        more=lora(24, targets=(["in_proj", "x_proj"],), dropout=0.05),
    ),
)
"""One sequence, one chunk and less; and adapters on layers that PEFT does not refuse."""
LINEARS = ((4096, 4096), (1024, 4096), (11008, 4096), (264, 520), (100, 37), (8960, 1536), (14336, 4096), (128256, 64))

TRUTHS = (
    Truth(
        "parameters",
        "Parameters, buffers and configs of the measured models, from the real classes",
        "parameters",
        tuple({"model": model.name} for model in (*TINY, *REAL, SMALL)),
        sample=12,
    ),
    Truth(
        "parameters_more",
        "The same of the models whose steps are recorded apart",
        "parameters",
        tuple({"model": model.name} for model in MORE),
        sample=4,
    ),
    *(
        Truth(
            f"steps_{kind}",
            f"Whole steps of {about}, tiny models",
            "train_step",
            rows(
                Grid(names, batches=((2, 56), (3, 64)), precision=("bf16", "bf16-mixed"), attention=("sdpa", "eager")),
                Grid(names, precision=("fp32", "bf16-autocast")),
                Grid(names, attention=("sdpa", "eager"), more=({"padded": True},)),
                Grid(
                    [name for name in names if "Classification" not in MODELS[name].auto],
                    precision=("bf16", "bf16-autocast"),
                    more=lora(24, targets=(targets, "all-linear"), dropout=0.05),
                ),
                *(FP32_ENCODERS if kind == "encoders" else ()),
                *(RECURRENT if kind == "recurrent" else ()),
            ),
            sample=4,
        )
        for kind, about, names, targets in (
            ("decoders", "decoders added later", named(MORE, "decoder"), ["q_b_proj", "down_proj"]),
            (
                "recurrent",
                "decoders with short convolutions or state spaces, on torch's own operations",
                named(MORE, "recurrent"),
                ["in_proj", "out_proj", "k_proj"],
            ),
            (
                "encoders",
                "encoders with each head",
                named(MORE, "encoder"),
                ["query", "value", "query_proj", "value_proj", "Wqkv"],
            ),
            ("seq2seq", "encoders with a decoder", named(MORE, "seq2seq"), ["q", "v", "q_proj", "v_proj"]),
        )
    ),
    Truth(
        "steps_published",
        "Whole steps of whole published encoders and encoder-decoders",
        "train_step",
        rows(Grid(named(MORE, "published"), batches=((2, 300),), precision=("bf16", "bf16-mixed"))),
        sample=1,
    ),
    Truth(
        "saved",
        "Tensors that one forward pass keeps for backward, by symbol",
        "saved",
        rows(
            Grid(
                ALL_TINY,
                precision=("bf16", "bf16-mixed"),
                attention=("sdpa", "eager"),
                gradient_checkpointing=("none",),
            )
        ),
        sample=8,
    ),
    Truth(
        "optimizers",
        "Optimizer states, tensor by tensor, and the temporaries of a step on the CPU",
        "optimizers",
        tuple({"model": SMALL.name, "dtype": dtype} | row for row in OPTIMIZER_ROWS for dtype in ("fp32", "bf16")),
        sample=20,
    ),
    Truth(
        "four_bit",
        "Linear weights quantised by bitsandbytes, part by part",
        "four_bit",
        tuple(
            {"out": out, "in": width, "format": kind, "double_quant": double}
            for out, width in LINEARS
            for kind in ("nf4", "fp4")
            for double in (False, True)
        ),
        sample=32,
    ),
    Truth(
        "real_cpu",
        "Real training on the CPU seen by its allocator, against the count on fake tensors",
        "real_cpu",
        (
            {"graph": "three uses"},
            {"graph": "tied by transposes"},
            {"graph": "a leaf used twice"},
            {"graph": "rows picked"},
            {"graph": "columns gathered"},
            {"graph": "largest of rows"},
            *rows(
                Grid(
                    DENSE_TINY, batches=((2, 64),), precision=("fp32", "bf16-mixed"), gradient_checkpointing=("none",)
                ),
                Grid(ALL_TINY, batches=((2, 64),), precision=("bf16",)),
                Grid(
                    ["llama@2", "llama-tied@2", "qwen2@2", "gpt2-plain@2"],
                    batches=((4, 256),),
                    precision=("bf16",),
                    optimizer=("adamw_torch",),
                ),
                Grid(
                    ["llama@2", "gemma3@2", "qwen3@2"],
                    batches=((2, 64),),
                    precision=("fp32", "bf16", "bf16-mixed"),
                    more=tuple(
                        {"method": "lora", "lora": {"rank": 24, "target_modules": target, "dropout": 0.0}}
                        for target in (["q_proj", "v_proj"], "all-linear")
                    ),
                ),
            ),
        ),
        sample=6,
    ),
    Truth(
        "steps_tiny",
        "Whole steps of every family, tiny models",
        "train_step",
        rows(Grid(ALL_TINY, batches=((2, 56), (3, 64)), precision=("bf16", "bf16-mixed"), attention=("sdpa", "eager"))),
        sample=10,
    ),
    Truth(
        "steps_precision",
        "Whole steps in the other recipes: pure fp32, autocast over bf16 weights, fp16 with a GradScaler",
        "train_step",
        rows(
            Grid(DENSE_TINY, batches=((2, 64),), precision=("fp32", "bf16-autocast", "fp16-mixed")),
            Grid(
                MIXED_TINY,
                batches=((2, 64),),
                precision=("fp32", "bf16-autocast", "fp16-mixed"),
                gradient_checkpointing=("none",),
            ),
            Grid(
                FOUR,
                batches=((1, 1024),),
                precision=("fp32", "bf16-autocast", "fp16-mixed"),
                attention=("sdpa", "eager"),
            ),
        ),
        sample=8,
    ),
    Truth(
        "steps_settings",
        "Whole steps of padded batches, accumulated gradients, other optimizers, uneven lengths and one sequence",
        "train_step",
        rows(
            Grid(DENSE_TINY, batches=((2, 56),), more=({"padded": True},), gradient_checkpointing=("none",)),
            Grid(
                FOUR,
                batches=((2, 1024),),
                precision=("bf16", "bf16-mixed"),
                attention=("sdpa", "eager"),
                more=({"padded": True},),
            ),
            Grid(FEW, batches=((2, 64),), precision=("bf16", "bf16-mixed"), more=({"gradient_accumulation_steps": 2},)),
            Grid(FEW, batches=((2, 64),), precision=("bf16", "bf16-mixed"), optimizer=("adamw_torch", "sgd")),
            Grid(FEW, batches=((1, 57), (5, 33), (1, 1)), precision=("bf16",)),
        ),
        sample=8,
    ),
    Truth(
        "steps_lora",
        "Whole steps with PEFT adapters on a frozen base",
        "train_step",
        rows(
            Grid(LORA_TINY, batches=((2, 56),), precision=("bf16", "bf16-autocast"), more=lora(24, targets=TARGETS)),
            Grid(
                ("llama@2", "qwen3@2"),
                batches=((2, 56),),
                precision=("fp32", "bf16-mixed", "fp16-autocast"),
                more=lora(24, targets=TARGETS),
            ),
            Grid(
                ("llama@2", "gemma2@2", "qwen2@2"),
                batches=((2, 56),),
                precision=("bf16", "bf16-autocast"),
                more=(
                    *lora(24, targets=TARGETS, dropout=0.05),
                    *lora(24, targets=TARGETS, adapter_dtype="bf16"),
                    *lora(24, targets=("all-linear",), use_dora=True),
                    *lora(24, targets=(["q_proj", "v_proj"],), modules_to_save=["embed_tokens", "lm_head"]),
                    *lora(24, targets=(["q_proj", "v_proj"],), modules_to_save=["lm_head"]),
                ),
            ),
            Grid(FOUR, batches=((1, 2048),), precision=("bf16", "bf16-autocast"), more=lora(16, targets=TARGETS)),
        ),
        sample=8,
    ),
    Truth(
        "steps_qlora",
        "Whole steps with adapters on a base that bitsandbytes has quantised",
        "train_step",
        rows(
            Grid(
                FOUR,
                batches=((1, 512), (2, 1024)),
                more=tuple(
                    adapters | {"method": "qlora", "quantization": quantization}
                    for adapters in lora(16, targets=("all-linear",))
                    for quantization in (
                        {"format": "nf4", "double_quant": True},
                        {"format": "nf4", "double_quant": False},
                        {"format": "nf4", "double_quant": True, "upcast_for_training": True},
                        {"format": "int8", "double_quant": False},
                    )
                ),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((2, 1024),),
                precision=("bf16-autocast",),
                more=tuple(
                    adapters | {"method": "qlora", "quantization": quantization}
                    for adapters in lora(16, targets=TARGETS)
                    for quantization in (
                        {"format": "nf4", "double_quant": True},
                        {"format": "nf4", "double_quant": True, "upcast_for_training": True},
                    )
                ),
            ),
        ),
        sample=6,
    ),
    Truth(
        "steps_kernels",
        "Whole steps with Liger's kernels and losses and with TRL's chunked loss",
        "train_step",
        rows(
            Grid(("llama-3-8b@2", "qwen2.5-3b@2", "gemma-2-2b@2"), batches=((2, 1024),), more=KERNELS),
            Grid(("llama-3-8b@2",), batches=((2, 1024),), precision=("bf16-autocast",), more=KERNELS),
        ),
        sample=3,
    ),
    Truth(
        "steps_cut",
        "Whole steps with cut cross-entropy in the place of head and loss",
        "train_step",
        rows(
            Grid(CUT_HEADS, batches=((2, 64), (1, 96)), more=({"loss": "cce"},)),
            Grid(("llama@2", "gemma2@2"), precision=("bf16-autocast",), more=({"loss": "cce"},)),
            Grid(
                ("llama@2",),
                precision=("bf16-mixed", "fp32"),
                gradient_checkpointing=("none",),
                more=({"loss": "cce"},),
            ),
            Grid(
                ("llama@2", "qwen3@2"),
                precision=("bf16", "bf16-autocast"),
                more=tuple({"loss": "cce"} | adapters for adapters in lora(24, targets=("all-linear",))),
            ),
            Grid(
                ("llama@2",), more=({"loss": "cce", "padded": True}, {"loss": "cce", "gradient_accumulation_steps": 2})
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2", "gemma-2-2b@2"),
                batches=((2, 1024),),
                more=(
                    {"loss": "cce"},
                    {"loss": "cce", "kernels": "liger"},
                    lora(16, ["all-linear"])[0]
                    | {"loss": "cce", "method": "qlora", "quantization": {"format": "nf4", "double_quant": True}},
                ),
            ),
            Grid(
                ("tinyllama-1.1b@22",), batches=((1, 2048),), gradient_checkpointing=("full",), more=({"loss": "cce"},)
            ),
        ),
        sample=3,
    ),
    Truth(
        "steps_frameworks",
        "Whole steps of older transformers releases",
        "train_step",
        rows(
            Grid(
                ("mistral@2", "qwen2@2", "gemma2@2", "gpt2-plain@2"),
                precision=("bf16", "bf16-mixed"),
                more=({"framework": "transformers-4.44"}, {"framework": "transformers-4.57"}),
            ),
            Grid(("llama@2", "phi3@2"), precision=("bf16", "bf16-mixed"), more=({"framework": "transformers-4.57"},)),
            Grid(
                ("mixtral-8x7b@2",),
                batches=((2, 512),),
                precision=("bf16", "bf16-mixed"),
                more=({"framework": "transformers-4.44"}, {"framework": "transformers-4.57"}),
            ),
            Grid(
                ("mixtral-8x7b@2",),
                batches=((2, 512),),
                precision=("bf16", "bf16-autocast"),
                more=tuple(
                    adapted | {"framework": framework}
                    for framework in ("transformers-4.44", "transformers-4.57")
                    for adapted in lora(8, (["q_proj", "v_proj"],))
                ),
            ),
            Grid(
                ("llama-3-8b@2",),
                batches=((2, 1024),),
                precision=("bf16", "bf16-mixed"),
                attention=("sdpa", "eager"),
                more=({"framework": "transformers-4.44"}, {"framework": "transformers-4.57"}),
            ),
        ),
        sample=3,
    ),
    Truth(
        "steps_selective",
        "Whole steps with TRL's selective checkpointing",
        "train_step",
        rows(
            Grid(
                ("llama@2", "mistral-window@2", "qwen3@2", "gemma2@2", "gpt2-plain@2"),
                precision=("bf16", "bf16-mixed"),
                gradient_checkpointing=("selective",),
            ),
            Grid(FOUR, batches=((1, 2048),), gradient_checkpointing=("selective",)),
            Grid(("llama@2", "qwen3@2"), gradient_checkpointing=("selective",), more=lora(24, targets=TARGETS)),
        ),
        sample=2,
    ),
    Truth(
        "steps_in_backward",
        "Whole steps whose optimizer steps inside the backward pass, weight by weight",
        "train_step",
        rows(
            Grid(
                ("llama@2", "llama-tied@2", "gemma2@2", "gpt2-plain@2", "qwen3_moe@2"),
                precision=("bf16", "bf16-mixed"),
                optimizer=("adamw_torch_fused", "adamw_torch", "sgd"),
                more=({"optimizer_in_backward": True},),
            ),
            Grid(
                ("llama@2", "gpt2-plain@2"),
                precision=("fp32", "bf16-autocast"),
                more=({"optimizer_in_backward": True},),
            ),
            Grid(
                ("llama@2",),
                optimizer=("adamw_torch_fused", "adamw_torch"),
                more=tuple(
                    {"optimizer_in_backward": True} | more
                    for more in (*lora(24, targets=TARGETS), {"padded": True}, {"loss": "liger"})
                ),
            ),
            Grid(
                ("llama@2", "llama-tied@2", "gemma2@2", "gpt2-plain@2", "qwen3_moe@2"),
                precision=("bf16", "fp32"),
                optimizer=("lomo", "adalomo"),
            ),
            Grid(
                ("llama@2", "llama-tied@2", "gemma2@2"),
                precision=("bf16", "fp32"),
                optimizer=("galore_adamw_layerwise", "galore_adamw_8bit_layerwise", "apollo_adamw_layerwise"),
                more=({"optimizer_args": {"rank": 16, "update_proj_gap": 1}},),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((1, 1024),),
                gradient_checkpointing=("full",),
                optimizer=("adamw_torch_fused", "adamw_torch"),
                more=({"optimizer_in_backward": True},),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((1, 1024),),
                gradient_checkpointing=("full",),
                optimizer=("lomo", "adalomo"),
            ),
            Grid(
                ("tinyllama-1.1b@22", "gemma-2-2b@26"),
                batches=((1, 2048),),
                gradient_checkpointing=("full",),
                more=({"optimizer_in_backward": True},),
            ),
            Grid(("tinyllama-1.1b@22",), batches=((1, 2048),), gradient_checkpointing=("full",), optimizer=("lomo",)),
        ),
        sample=3,
    ),
    Truth(
        "steps_offload",
        "Whole steps with saved activations in host memory (TRL's activation_offloading), with checkpointing and without",
        "train_step",
        rows(
            Grid(
                ("llama@2", "llama-tied@2", "gemma2@2", "gpt2-plain@2", "qwen3_moe@2"),
                batches=((2, 64), (4, 96)),
                precision=("bf16", "bf16-mixed"),
                gradient_checkpointing=("offload",),
            ),
            Grid(
                ("qwen3@2", "phi3@2", "cohere@2", "olmo2@2", "falcon@2", "mistral-window@2"),
                batches=((4, 96),),
                precision=("bf16", "bf16-autocast"),
                gradient_checkpointing=("offload",),
            ),
            Grid(
                ("llama@2", "gemma2@2"),
                batches=((4, 96),),
                precision=("fp32", "fp16-mixed"),
                gradient_checkpointing=("offload",),
            ),
            Grid(
                ("llama@2", "qwen3@2"),
                batches=((4, 96),),
                precision=("bf16", "bf16-autocast"),
                gradient_checkpointing=("offload",),
                more=(
                    *lora(24, targets=TARGETS),
                    {"padded": True},
                    {"gradient_accumulation_steps": 2},
                    {"attention": "eager"},
                ),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((2, 1024),),
                gradient_checkpointing=("offload",),
                more=(
                    {},
                    *KERNELS,
                    *(
                        adapters | {"method": "qlora", "quantization": {"format": "nf4", "double_quant": True}}
                        for adapters in lora(16, targets=("all-linear",))
                    ),
                ),
            ),
            Grid(
                ("tinyllama-1.1b@22", "qwen3-0.6b@28", "gemma-2-2b@26"),
                batches=((1, 2048),),
                gradient_checkpointing=("offload",),
            ),
            Grid(
                ("llama@2", "tinyllama-1.1b@22"),
                batches=((4, 96),),
                gradient_checkpointing=("none", "full"),
                more=({"sharding": {"activation_offload": True}},),
            ),
            Grid(
                (
                    "gemma2@2",
                    "gpt2-plain@2",
                    "qwen3_moe@2",
                    "qwen3@2",
                    "phi3@2",
                    "cohere@2",
                    "olmo2@2",
                    "falcon@2",
                    "mistral-window@2",
                ),
                batches=((4, 96),),
                precision=("bf16", "bf16-mixed"),
                gradient_checkpointing=("none",),
                more=({"sharding": {"activation_offload": True}},),
            ),
            Grid(
                ("llama@2",),
                batches=((4, 96),),
                gradient_checkpointing=("none",),
                more=tuple(
                    {"sharding": {"activation_offload": True}} | more
                    for more in (*lora(24, targets=TARGETS), {"padded": True}, {"attention": "eager"})
                ),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((2, 1024),),
                gradient_checkpointing=("none", "selective"),
                more=({"sharding": {"activation_offload": True}},),
            ),
            Grid(
                ("llama-3-8b@2",),
                batches=((2, 1024),),
                gradient_checkpointing=("none",),
                more=tuple(
                    {"sharding": {"activation_offload": True}} | more
                    for more in (
                        {"loss": "liger"},
                        {"loss": "triton"},
                        lora(16, ["all-linear"])[0]
                        | {"method": "qlora", "quantization": {"format": "nf4", "double_quant": True}},
                        *lora(16, ["all-linear"], dropout=0.05),
                    )
                ),
            ),
            Grid(
                [name for name in (*ALL_TINY, *named(MORE, "decoder", "recurrent")) if name not in NOT_ALONE],
                gradient_checkpointing=("none",),
                more=({"sharding": {"activation_offload": True}},),
            ),
            Grid(
                [name for name in (*ALL_TINY, *named(MORE, "decoder", "recurrent")) if name not in NOT_AWAY],
                gradient_checkpointing=("full",),
                more=({"sharding": {"activation_offload": True}},),
            ),
        ),
        sample=3,
    ),
    Truth(
        "sharding",
        "One rank's step under torch's FSDP2, FSDP1 and DDP",
        "sharding",
        rows(
            Grid(
                ("llama@2", "llama-tied@2"),
                batches=((2, 64),),
                precision=("bf16", "bf16-mixed"),
                more=sharded("fsdp2", 2, 4, 8),
            ),
            Grid(("llama@2", "llama-tied@2"), batches=((2, 64),), more=(*sharded("ddp", 2, 8), *sharded("fsdp", 2, 8))),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((1, 2048),),
                precision=("bf16", "bf16-mixed"),
                more=sharded("fsdp2", 2, 8),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"), batches=((1, 2048),), more=(*sharded("ddp", 8), *sharded("fsdp", 8))
            ),
            (
                {**case, "reshard_after_forward": False}
                for case in Grid(("llama@2", "llama-3-8b@2"), batches=((1, 512),), more=sharded("fsdp2", 4))
            ),
            Grid(
                ("tinyllama-1.1b@22", "qwen3-0.6b@28"),
                batches=((1, 2048),),
                more=(*sharded("fsdp2", 8), *sharded("fsdp", 8)),
            ),
            Grid(
                ("olmo2@2", "phi3@2", "cohere@2", "qwen3_moe@2"),
                batches=((2, 64),),
                more=(*sharded("fsdp2", 3), *sharded("fsdp", 3)),
            ),
            Grid(
                ("llama@2",), batches=((2, 64),), precision=("fp32",), more=(*sharded("fsdp2", 4), *sharded("fsdp", 4))
            ),
            Grid(("llama@2", "qwen3_moe@2"), batches=((2, 64),), precision=("bf16-mixed",), more=sharded("fsdp", 4)),
            Grid(
                ("llama@2", "phi3@2"),
                batches=((2, 64),),
                gradient_checkpointing=("selective",),
                more=(*sharded("fsdp2", 4), *sharded("fsdp", 4)),
            ),
            Grid(("llama@2",), batches=((2, 64),), optimizer=("adamw_torch", "sgd"), more=sharded("fsdp2", 4)),
            Grid(("llama@2",), batches=((2, 64),), precision=("bf16-mixed", "fp16-mixed"), more=sharded("ddp", 4)),
            Grid(
                ("llama@2",),
                batches=((2, 64),),
                precision=("bf16-autocast",),
                more=tuple(
                    spread | adapters | base
                    for spread in sharded("ddp", 4)
                    for adapters in lora(16, targets=("all-linear",))
                    for base in (
                        {},
                        {"method": "qlora", "quantization": {"format": "nf4", "double_quant": True}},
                    )
                ),
            ),
        ),
        sample=4,
    ),
    Truth(
        "sharding_kernels",
        "One rank's step under FSDP2 and FSDP1 with Liger's kernels and losses",
        "sharding",
        rows(
            *(
                grid
                for strategy in ("fsdp2", "fsdp")
                for kernels in (*KERNELS, {"loss": "cce"})
                for grid in (
                    Grid(
                        ("llama@2", "qwen2@2", *(() if "kernels" in kernels else ("qwen3_moe@2",))),
                        batches=((2, 64),),
                        precision=("bf16", "bf16-mixed"),
                        more=tuple(kernels | shares for shares in sharded(strategy, 2, 4)),
                    ),
                    Grid(
                        ("llama-3-8b@2", "qwen2.5-3b@2"),
                        batches=((2, 1024),),
                        precision=("bf16", "bf16-mixed"),
                        gradient_checkpointing=("full",),
                        more=tuple(kernels | shares for shares in sharded(strategy, 8)),
                    ),
                )
            ),
            Grid(
                ("llama@2",),
                batches=((2, 64),),
                more=tuple(
                    kernels | adapted | shares
                    for kernels in (*KERNELS, {"loss": "cce"})
                    for adapted in lora(24, ("all-linear",))
                    for shares in sharded("fsdp2", 4)
                ),
            ),
        ),
        sample=2,
    ),
    Truth(
        "sharding_variants",
        "One rank's step under FSDP2 and FSDP1 with weights in host memory, copies of the shards, weights kept gathered",
        "sharding",
        rows(
            *(
                grid
                for strategy in ("fsdp2", "fsdp")
                for grid in (
                    Grid(
                        ("llama@2", "llama-tied@2", "phi3@2"),
                        batches=((2, 64),),
                        precision=("bf16", "bf16-mixed"),
                        more=(
                            *sharded(strategy, 4, 8, offload="all"),
                            *sharded(strategy, 4, 8, replicas=2),
                            *sharded(strategy, 2, 8, reshard_after_forward=False),
                            *sharded(strategy, 4, replicas=2, offload="all"),
                            *sharded(strategy, 4, replicas=2, reshard_after_forward=False),
                            *sharded(strategy, 4, reshard_after_forward=False, offload="all"),
                        ),
                    ),
                    Grid(
                        ("qwen3_moe@2",),
                        batches=((2, 64),),
                        more=(
                            *sharded(strategy, 3, offload="all"),
                            *sharded(strategy, 6, replicas=2),
                            *sharded(strategy, 3, reshard_after_forward=False),
                        ),
                    ),
                    Grid(
                        ("llama@2",), batches=((2, 64),), precision=("fp32",), more=sharded(strategy, 4, offload="all")
                    ),
                    Grid(
                        ("llama-3-8b@2", "qwen2.5-3b@2"),
                        batches=((1, 2048),),
                        precision=("bf16", "bf16-mixed"),
                        gradient_checkpointing=("full",),
                        more=(
                            *sharded(strategy, 8, offload="all"),
                            *sharded(strategy, 16, replicas=2),
                            *sharded(strategy, 8, reshard_after_forward=False),
                        ),
                    ),
                    Grid(
                        ("tinyllama-1.1b@22",),
                        batches=((1, 2048),),
                        more=(
                            *sharded(strategy, 8, offload="all"),
                            *sharded(strategy, 8, replicas=2),
                            *sharded(strategy, 8, reshard_after_forward=False),
                        ),
                    ),
                )
            ),
        ),
        sample=4,
    ),
    Truth(
        "sharding_adapters",
        "One rank's step under FSDP2 with PEFT adapters beside a frozen base that is sharded with them",
        "sharding",
        rows(
            Grid(
                ("llama@2", "llama-tied@2"),
                batches=((2, 64),),
                precision=("bf16", "bf16-autocast", "bf16-mixed"),
                more=tuple(
                    adapters | shares
                    for adapters in lora(24, targets=("all-linear",))
                    for shares in sharded("fsdp2", 2, 4, 8)
                ),
            ),
            Grid(
                ("llama@2", "qwen3@2", "gemma2@2"),
                batches=((2, 64),),
                precision=("bf16", "bf16-autocast"),
                more=tuple(
                    adapters | sharded("fsdp2", 4)[0]
                    for adapters in (
                        *lora(24, targets=TARGETS[:1]),
                        *lora(24, targets=TARGETS, adapter_dtype="bf16"),
                        *lora(24, targets=TARGETS[1:], dropout=0.05),
                    )
                ),
            ),
            Grid(
                ("llama@2",),
                batches=((2, 64),),
                precision=("bf16", "bf16-autocast"),
                more=tuple(
                    lora(24, targets=("all-linear",))[0] | shares
                    for shares in (
                        *sharded("fsdp2", 4, reshard_after_forward=False),
                        *sharded("fsdp2", 4, replicas=2),
                        *sharded("fsdp2", 4, offload="all"),
                    )
                ),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((1, 2048),),
                precision=("bf16", "bf16-autocast"),
                more=tuple(lora(16, targets=("all-linear",))[0] | shares for shares in sharded("fsdp2", 2, 8)),
            ),
            Grid(
                ("tinyllama-1.1b@22",),
                batches=((1, 2048),),
                gradient_checkpointing=("full",),
                more=(lora(16, targets=("all-linear",))[0] | sharded("fsdp2", 8)[0],),
            ),
        ),
        sample=4,
    ),
    Truth(
        "sharding_quantised",
        "One rank's step under FSDP2 with PEFT adapters on a 4-bit base, stored as integers (whole on each rank) or as bf16 (sharded)",
        "sharding",
        rows(
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((2, 1024),),
                precision=("bf16", "bf16-autocast"),
                more=tuple(
                    lora(16, ["all-linear"])[0]
                    | {
                        "method": "qlora",
                        "quantization": {"format": "nf4", "double_quant": double, "quant_storage": storage},
                    }
                    | shares
                    for double in (True, False)
                    for storage in ("uint8", "bfloat16")
                    for shares in sharded("fsdp2", 2, 8)
                ),
            ),
            Grid(
                ("llama-3-8b@2",),
                batches=((2, 1024),),
                more=tuple(
                    lora(16, [["q_proj", "v_proj"]])[0]
                    | {
                        "method": "qlora",
                        "quantization": {"format": "nf4", "double_quant": True, "quant_storage": storage},
                    }
                    | sharded("fsdp2", 4)[0]
                    for storage in ("uint8", "bfloat16")
                ),
            ),
        ),
        sample=2,
    ),
    Truth(
        "sharding_accumulation",
        "One rank's step of several micro-batches under FSDP2, whose gradients are reduced with the last one or with each",
        "sharding",
        rows(
            Grid(
                ("llama@2", "llama-tied@2"),
                batches=((2, 64),),
                precision=("bf16", "bf16-mixed"),
                more=tuple(
                    {"gradient_accumulation_steps": steps} | shares
                    for steps in (2, 3)
                    for sync in (False, True)
                    for shares in sharded("fsdp2", 2, 8, sync_each_batch=sync)
                ),
            ),
            Grid(
                ("llama-3-8b@2", "qwen2.5-3b@2"),
                batches=((1, 1024),),
                precision=("bf16", "bf16-mixed"),
                gradient_checkpointing=("full",),
                more=tuple(
                    {"gradient_accumulation_steps": 3} | sharded("fsdp2", 8, sync_each_batch=sync)[0]
                    for sync in (False, True)
                ),
            ),
            Grid(
                ("llama@2",),
                batches=((2, 64),),
                more=tuple(
                    lora(24, targets=("all-linear",))[0]
                    | {"gradient_accumulation_steps": 3}
                    | sharded("fsdp2", 4, sync_each_batch=sync)[0]
                    for sync in (False, True)
                ),
            ),
            Grid(
                ("tinyllama-1.1b@22",),
                batches=((1, 1024),),
                gradient_checkpointing=("full",),
                more=tuple(
                    {"gradient_accumulation_steps": 3} | sharded("fsdp2", 8, sync_each_batch=sync)[0]
                    for sync in (False, True)
                ),
            ),
        ),
        sample=4,
    ),
    Truth(
        "steps_real",
        "Whole steps of some layers of published models",
        "train_step",
        rows(
            Grid(DENSE_REAL, batches=((2, 2048),), precision=("bf16", "bf16-mixed")),
            Grid(DENSE_REAL, batches=((1, 512),), attention=("eager",)),
            Grid(MIXED_REAL, batches=((1, 1024),)),
        ),
        sample=8,
    ),
    Truth(
        "steps_vision",
        "Whole steps of models that see images, their parts frozen and trained",
        "vision_step",
        VISION,
        sample=3,
    ),
    Truth(
        "steps_whole",
        "Whole steps of whole published models",
        "train_step",
        rows(
            Grid(WHOLE, batches=((1, 2048),)),
            Grid(WHOLE[:3], batches=((2, 512),), precision=("bf16-mixed",), gradient_checkpointing=("full",)),
        ),
        sample=1,
    ),
)
