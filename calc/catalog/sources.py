"""Where a figure comes from: papers, library files read in their own text, recordings of the real code, published readings.

A line of an answer, a catalogue row and a test name a source by its id; this table says what it is, where it lies and when it was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.catalog.table import Table


@dataclass(frozen=True, slots=True)
class Source:
    """One place that a figure can be checked against."""

    id: str
    title: str
    url: str
    detail: str = ""
    """Version, table, line or date: what narrows the place down."""


SOURCES = Table(
    "source",
    Source("oracle", "Recorded from the real frameworks on a fake GPU (tests/oracle)", "https://github.com/pytorch/pytorch",
           "torch 2.13.0, transformers 5.24.0, peft 0.21.2, bitsandbytes 0.50.2; byte-exact allocations"),
    Source("torch-derivatives", "PyTorch derivatives.yaml: what each operation saves for its backward",
           "https://github.com/pytorch/pytorch/blob/main/tools/autograd/derivatives.yaml", "torch 2.13.0"),
    Source("transformers", "transformers modelling code and Trainer", "https://github.com/huggingface/transformers", "5.24.0"),
    Source("peft", "PEFT LoRA layers", "https://github.com/huggingface/peft", "0.21.2"),
    Source("bitsandbytes", "bitsandbytes optimizers and 4-bit storage", "https://github.com/bitsandbytes-foundation/bitsandbytes", "0.50.2"),
    Source("torch-cublas-workspace", "PyTorch CUDABlas: the workspace that it gives each cuBLAS handle",
           "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/cuda/CublasHandlePool.cpp", "read 2026-11-30"),
    Source("torch-caching-allocator", "PyTorch caching allocator: cached blocks are freed before an allocation fails",
           "https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp", "torch 2.13.0"),
    Source("fitcheck", "fitcheck-llm 0.3.1: allocated, reserved and process memory of 61 runs on a T4",
           "https://pypi.org/project/fitcheck-llm/", "data/measurements, read 2026-11"),
    Source("fms-acceleration", "Foundation Model Stack benchmarks on A100 80 GB: torch's peak and nvidia-smi's",
           "https://github.com/foundation-model-stack/fms-acceleration/blob/main/scripts/benchmarks/refs/a100_80gb.csv",
           "123 runs, packed to 4,096 tokens, read 2026-11"),
    Source("simumax", "SimuMax B200 release: real Megatron-LM runs, allocated and reserved",
           "https://github.com/MooreThreads/SimuMax/blob/main/docs/b200/b200_release_v1.2_summary.json",
           "8 runs, read 2026-11"),
    Source("llama-recipes-41", "llama-recipes pull request 41: active and reserved peaks under FSDP",
           "https://github.com/meta-llama/llama-cookbook/pull/41", "3 runs on four A100 40 GB, read 2026-11"),
    Source("transformers-memory-anatomy", "transformers: anatomy of a model's memory, bert-large on a V100",
           "https://github.com/huggingface/transformers/blob/0016acf7/docs/source/en/perf_train_gpu_one.mdx",
           "1,343 MiB before any tensor, torch 1.x, 2022"),
    Source("oom-messages", "Out-of-memory messages in public issues: in use, less allocated, less cached", "https://github.com/issues",
           "figures rounded to 0.01 GiB, read 2026-11-30"),
    Source("transformers-schedules", "transformers: optimization.py, the schedules",
           "https://github.com/huggingface/transformers/blob/main/src/transformers/optimization.py", "5.24.0, run"),
    Source("transformers-trainer", "transformers: Trainer and TrainingArguments, steps and warmup",
           "https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py", "4.44.2, 4.51.3, 4.57.6, 5.14.1, 5.24.0, run"),
    Source("torch-schedules", "PyTorch: torch.optim.lr_scheduler", "https://docs.pytorch.org/docs/stable/optim.html", "2.14.1, run"),
    Source("deepspeed", "DeepSpeed: lr_schedules.py", "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/lr_schedules.py",
           "0.19.8, run"),
    Source("megatron", "Megatron-LM: optimizer_param_scheduler.py",
           "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/optimizer_param_scheduler.py", "megatron-core 0.16.1, run"),
    Source("torchtitan", "torchtitan: lr_scheduler.py", "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/lr_scheduler.py",
           "b5bcd76c6, 2026-08-21, run"),
    Source("nanogpt", "nanoGPT: train.py, get_lr", "https://github.com/karpathy/nanoGPT/blob/master/train.py", "3adf61e1, 2025-11-12, run"),
    Source("timm", "timm: cosine_lr.py", "https://github.com/huggingface/pytorch-image-models/blob/main/timm/scheduler/cosine_lr.py",
           "1.0.31, run; issue 1242 for the drop"),
    Source("torchtune", "torchtune: lr_schedulers.py and recipes", "https://github.com/pytorch/torchtune/tree/main/recipes/configs", "0.6.1, run"),
    Source("litgpt", "litgpt: finetune and pretrain scripts", "https://github.com/Lightning-AI/litgpt/tree/main/litgpt", "0.5.13, run"),
    Source("axolotl", "axolotl: schedulers and examples", "https://github.com/axolotl-ai-cloud/axolotl/blob/main/src/axolotl/utils/schedulers.py",
           "0.19.0, run; 257 examples counted at 067b021c8"),
    Source("accelerate-scheduler", "accelerate: AcceleratedScheduler", "https://github.com/huggingface/accelerate/blob/main/src/accelerate/scheduler.py",
           "1.15.0, run"),
    Source("opennmt", "OpenNMT-py: noam_decay", "https://github.com/OpenNMT/OpenNMT-py/blob/master/onmt/utils/optimizers.py", "3.5.1, run"),
    Source("schedulefree", "Schedule-Free learning, README", "https://github.com/facebookresearch/schedule_free", "1.4.1, run"),
    Source("llama-factory", "LLaMA-Factory: trainer_utils.py and examples", "https://github.com/hiyouga/LLaMA-Factory/tree/main/examples", "source read"),
    Source("trl", "TRL: trainer arguments, packing, GRPO sampler", "https://huggingface.co/docs/trl", "1.16.0, run"),
    Source("torch-finfo", "PyTorch: torch.finfo", "https://docs.pytorch.org/docs/stable/type_info.html", "2.13.0, run"),
    Source("nvidia-tf32", "NVIDIA: TensorFloat-32", "https://blogs.nvidia.com/blog/tensorfloat-32-precision-format/", "not run"),
    Source("mixed-precision", "Mixed Precision Training", "https://arxiv.org/abs/1710.03740", "2017"),
    Source("torchao-stochastic", "torchao: bf16 stochastic rounding in its optimizers", "https://github.com/pytorch/ao/pull/1124", "2024"),
    Source("kahan-bf16", "Revisiting BFloat16 Training: Kahan summation and stochastic rounding", "https://arxiv.org/abs/2010.06192", "2020"),
    Source("grad-scaler", "PyTorch: automatic mixed precision, gradient scaling", "https://docs.pytorch.org/docs/stable/amp.html", "torch 2.14"),
    Source("deepspeed-config", "DeepSpeed: fp16 loss scale settings", "https://www.deepspeed.ai/docs/config-json/", "read, not run"),
)
