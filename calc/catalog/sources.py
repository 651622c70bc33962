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
)
