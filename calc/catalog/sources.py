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
    Source(
        "oracle",
        "Recorded from the real frameworks on a fake GPU (tests/oracle)",
        "https://github.com/pytorch/pytorch",
        "torch 2.13.0, transformers 5.24.0, peft 0.21.2, bitsandbytes 0.50.2; byte-exact allocations",
    ),
    Source(
        "torch-ddp",
        "PyTorch's gradient buckets",
        "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp",
        "v2.13.0; recorded in tests/golden/oracle/sharding.json",
    ),
    Source(
        "torch-fsdp",
        "PyTorch's fully_shard and FullyShardedDataParallel",
        "https://github.com/pytorch/pytorch/tree/v2.13.0/torch/distributed/fsdp",
        "v2.13.0; recorded in tests/golden/oracle/sharding.json and sharding_variants.json",
    ),
    Source(
        "torch-derivatives",
        "PyTorch derivatives.yaml: what each operation saves for its backward",
        "https://github.com/pytorch/pytorch/blob/main/tools/autograd/derivatives.yaml",
        "torch 2.13.0",
    ),
    Source(
        "transformers",
        "transformers modelling code and Trainer",
        "https://github.com/huggingface/transformers",
        "5.24.0",
    ),
    Source("peft", "PEFT LoRA layers", "https://github.com/huggingface/peft", "0.21.2"),
    Source(
        "bitsandbytes",
        "bitsandbytes optimizers and 4-bit storage",
        "https://github.com/bitsandbytes-foundation/bitsandbytes",
        "0.50.2",
    ),
    Source(
        "torch-cublas-workspace",
        "PyTorch CUDABlas: the workspace that it gives each cuBLAS handle",
        "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/cuda/CublasHandlePool.cpp",
        "read 2026-11-30",
    ),
    Source(
        "torch-caching-allocator",
        "PyTorch caching allocator: cached blocks are freed before an allocation fails",
        "https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp",
        "torch 2.13.0",
    ),
    Source(
        "fitcheck",
        "fitcheck-llm 0.3.1: allocated, reserved and process memory of 61 runs on a T4",
        "https://pypi.org/project/fitcheck-llm/",
        "data/measurements, read 2026-11",
    ),
    Source(
        "fms-acceleration",
        "Foundation Model Stack benchmarks on A100 80 GB: torch's peak and nvidia-smi's",
        "https://github.com/foundation-model-stack/fms-acceleration/blob/main/scripts/benchmarks/refs/a100_80gb.csv",
        "123 runs, packed to 4,096 tokens, read 2026-11",
    ),
    Source(
        "simumax",
        "SimuMax B200 release: real Megatron-LM runs, allocated and reserved",
        "https://github.com/MooreThreads/SimuMax/blob/main/docs/b200/b200_release_v1.2_summary.json",
        "8 runs, read 2026-11",
    ),
    Source(
        "llama-recipes-41",
        "llama-recipes pull request 41: active and reserved peaks under FSDP",
        "https://github.com/meta-llama/llama-cookbook/pull/41",
        "3 runs on four A100 40 GB, read 2026-11",
    ),
    Source(
        "transformers-memory-anatomy",
        "transformers: anatomy of a model's memory, bert-large on a V100",
        "https://github.com/huggingface/transformers/blob/0016acf7/docs/source/en/perf_train_gpu_one.mdx",
        "1,343 MiB before any tensor, torch 1.x, 2022",
    ),
    Source(
        "oom-messages",
        "Out-of-memory messages in public issues: in use, less allocated, less cached",
        "https://github.com/issues",
        "figures rounded to 0.01 GiB, read 2026-11-30",
    ),
    Source(
        "transformers-schedules",
        "transformers: optimization.py, the schedules",
        "https://github.com/huggingface/transformers/blob/main/src/transformers/optimization.py",
        "5.24.0, run",
    ),
    Source(
        "transformers-trainer",
        "transformers: Trainer and TrainingArguments, steps and warmup",
        "https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py",
        "4.44.2, 4.51.3, 4.57.6, 5.14.1, 5.24.0, run",
    ),
    Source(
        "torch-schedules",
        "PyTorch: torch.optim.lr_scheduler",
        "https://docs.pytorch.org/docs/stable/optim.html",
        "2.14.1, run",
    ),
    Source(
        "deepspeed",
        "DeepSpeed: lr_schedules.py",
        "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/lr_schedules.py",
        "0.19.8, run",
    ),
    Source(
        "megatron",
        "Megatron-LM: optimizer_param_scheduler.py",
        "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/optimizer_param_scheduler.py",
        "megatron-core 0.16.1, run",
    ),
    Source(
        "torchtitan",
        "torchtitan: lr_scheduler.py",
        "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/lr_scheduler.py",
        "b5bcd76c6, 2026-08-21, run",
    ),
    Source(
        "nanogpt",
        "nanoGPT: train.py, get_lr",
        "https://github.com/karpathy/nanoGPT/blob/master/train.py",
        "3adf61e1, 2025-11-12, run",
    ),
    Source(
        "timm",
        "timm: cosine_lr.py",
        "https://github.com/huggingface/pytorch-image-models/blob/main/timm/scheduler/cosine_lr.py",
        "1.0.31, run; issue 1242 for the drop",
    ),
    Source(
        "torchtune",
        "torchtune: lr_schedulers.py and recipes",
        "https://github.com/pytorch/torchtune/tree/main/recipes/configs",
        "0.6.1, run",
    ),
    Source(
        "litgpt",
        "litgpt: finetune and pretrain scripts",
        "https://github.com/Lightning-AI/litgpt/tree/main/litgpt",
        "0.5.13, run",
    ),
    Source(
        "axolotl",
        "axolotl: schedulers and examples",
        "https://github.com/axolotl-ai-cloud/axolotl/blob/main/src/axolotl/utils/schedulers.py",
        "0.19.0, run; 257 examples counted at 067b021c8",
    ),
    Source(
        "accelerate-scheduler",
        "accelerate: AcceleratedScheduler",
        "https://github.com/huggingface/accelerate/blob/main/src/accelerate/scheduler.py",
        "1.15.0, run",
    ),
    Source(
        "opennmt",
        "OpenNMT-py: noam_decay",
        "https://github.com/OpenNMT/OpenNMT-py/blob/master/onmt/utils/optimizers.py",
        "3.5.1, run",
    ),
    Source(
        "schedulefree",
        "Schedule-Free learning, README",
        "https://github.com/facebookresearch/schedule_free",
        "1.4.1, run",
    ),
    Source(
        "llama-factory",
        "LLaMA-Factory: trainer_utils.py and examples",
        "https://github.com/hiyouga/LLaMA-Factory/tree/main/examples",
        "source read",
    ),
    Source("trl", "TRL: trainer arguments, packing, GRPO sampler", "https://huggingface.co/docs/trl", "1.16.0, run"),
    Source("torch-finfo", "PyTorch: torch.finfo", "https://docs.pytorch.org/docs/stable/type_info.html", "2.13.0, run"),
    Source(
        "nvidia-tf32",
        "NVIDIA: TensorFloat-32",
        "https://blogs.nvidia.com/blog/tensorfloat-32-precision-format/",
        "not run",
    ),
    Source("mixed-precision", "Mixed Precision Training", "https://arxiv.org/abs/1710.03740", "2017"),
    Source(
        "torchao-stochastic",
        "torchao: bf16 stochastic rounding in its optimizers",
        "https://github.com/pytorch/ao/pull/1124",
        "2024",
    ),
    Source(
        "kahan-bf16",
        "Revisiting BFloat16 Training: Kahan summation and stochastic rounding",
        "https://arxiv.org/abs/2010.06192",
        "2020",
    ),
    Source(
        "grad-scaler",
        "PyTorch: automatic mixed precision, gradient scaling",
        "https://docs.pytorch.org/docs/stable/amp.html",
        "torch 2.14",
    ),
    Source(
        "deepspeed-config",
        "DeepSpeed: fp16 loss scale settings",
        "https://www.deepspeed.ai/docs/config-json/",
        "read, not run",
    ),
    Source("paper-adamw", "Decoupled Weight Decay Regularization", "https://arxiv.org/abs/1711.05101"),
    Source("paper-adam", "Adam: A Method for Stochastic Optimization", "https://arxiv.org/abs/1412.6980"),
    Source(
        "paper-adafactor",
        "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
        "https://arxiv.org/abs/1804.04235",
    ),
    Source(
        "paper-sgd",
        "On the importance of initialization and momentum in deep learning",
        "https://proceedings.mlr.press/v28/sutskever13.html",
    ),
    Source(
        "paper-adagrad",
        "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
        "https://jmlr.org/papers/v12/duchi11a.html",
    ),
    Source(
        "paper-rmsprop",
        "RMSprop, as PyTorch documents it",
        "https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html",
    ),
    Source(
        "paper-nadam",
        "Incorporating Nesterov Momentum into Adam",
        "https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ",
    ),
    Source("paper-muon", "Muon is Scalable for LLM Training", "https://arxiv.org/abs/2502.16982"),
    Source("paper-adam8bit", "8-bit Optimizers via Block-wise Quantization", "https://arxiv.org/abs/2110.02861"),
    Source("paper-adam4bit", "Memory Efficient Optimizers with 4-bit States", "https://arxiv.org/abs/2309.01507"),
    Source("paper-torchao", "torchao: low-bit optimizers", "https://github.com/pytorch/ao/tree/main/torchao/optim"),
    Source("paper-lion", "Symbolic Discovery of Optimization Algorithms", "https://arxiv.org/abs/2302.06675"),
    Source("paper-ademamix", "The AdEMAMix Optimizer: Better, Faster, Older", "https://arxiv.org/abs/2409.03137"),
    Source(
        "paper-galore",
        "GaLore: Memory-Efficient LLM Training by Gradient Low-Rank Projection",
        "https://arxiv.org/abs/2403.03507",
    ),
    Source("paper-apollo", "APOLLO: SGD-like Memory, AdamW-level Performance", "https://arxiv.org/abs/2412.05270"),
    Source(
        "paper-lomo",
        "Full Parameter Fine-tuning for Large Language Models with Limited Resources",
        "https://arxiv.org/abs/2306.09782",
    ),
    Source(
        "paper-adalomo",
        "AdaLomo: Low-memory Optimization with Adaptive Learning Rate",
        "https://arxiv.org/abs/2310.10195",
    ),
    Source("paper-schedule-free", "The Road Less Scheduled", "https://arxiv.org/abs/2405.15682"),
    Source(
        "paper-stable-adamw",
        "Stable and low-precision training for large-scale vision-language models",
        "https://arxiv.org/abs/2304.13013",
    ),
    Source("paper-grokadamw", "GrokAdamW", "https://github.com/cognitivecomputations/grokadamw"),
    Source(
        "paper-came",
        "CAME: Confidence-guided Adaptive Memory Efficient Optimization",
        "https://arxiv.org/abs/2307.02047",
    ),
    Source("paper-soap", "SOAP: Improving and Stabilizing Shampoo using Adam", "https://arxiv.org/abs/2409.11321"),
    Source(
        "paper-prodigy", "Prodigy: An Expeditiously Adaptive Parameter-Free Learner", "https://arxiv.org/abs/2306.06101"
    ),
    Source("paper-qlora", "QLoRA: Efficient Finetuning of Quantized LLMs", "https://arxiv.org/abs/2305.14314"),
    Source(
        "paper-llm-int8",
        "LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale",
        "https://arxiv.org/abs/2208.07339",
    ),
    Source(
        "torch-foreach-norm",
        "PyTorch: partial sums of the norm kernel that clipping uses",
        "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/ForeachReduceOp.cu",
        "read 2026-11-30",
    ),
    Source(
        "warmup-zero",
        "transformers issue 34754: the first warmup step has rate 0",
        "https://github.com/huggingface/transformers/issues/34754",
        "intended; also torchtune 2010, gpt-neox 1373",
    ),
    Source(
        "cosine-restarts",
        "transformers issue 20552: cosine_with_restarts needs num_cycles",
        "https://github.com/huggingface/transformers/issues/20552",
        "2022",
    ),
    Source(
        "greedy-lr",
        "GreedyLR: a novel adaptive learning rate scheduler",
        "https://arxiv.org/abs/2512.14527",
        "run in transformers 5.24.0",
    ),
    Source(
        "floor-steps",
        "transformers pull request 37923: steps per epoch are rounded up",
        "https://github.com/huggingface/transformers/pull/37923",
        "4.52; issues 33455, 36297, 37777",
    ),
    Source(
        "logged-rate",
        "transformers pull request 36973: log the rate that was used",
        "https://github.com/huggingface/transformers/pull/36973",
        "4.51; issue 35942",
    ),
    Source(
        "warmup-ratio",
        "transformers pull request 41326: warmup_ratio is deprecated",
        "https://github.com/huggingface/transformers/pull/41326",
        "5.0; gone in 5.15",
    ),
    Source(
        "wsd",
        "transformers pull request 35453: warmup, stable, decay without stable steps",
        "https://github.com/huggingface/transformers/pull/35453",
        "4.49; issue 34905",
    ),
    Source(
        "deepspeed-warmup",
        "DeepSpeed issue 1298: warmup is logarithmic",
        "https://github.com/deepspeedai/DeepSpeed/issues/1298",
        "0.19.8, run",
    ),
    Source(
        "timm-prefix",
        "timm issue 1242: the rate drops at the end of the warmup",
        "https://github.com/huggingface/pytorch-image-models/issues/1242",
        "1.0.31, run",
    ),
    Source(
        "grpo-batch",
        "TRL issue 3204: the batch counts completions",
        "https://github.com/huggingface/trl/issues/3204",
        "1.16.0, run",
    ),
    Source(
        "resume",
        "transformers issue 27749: the learning rate after resuming",
        "https://github.com/huggingface/transformers/issues/27749",
        "5.24.0, run; also 34053, 23099",
    ),
    Source(
        "lora-without-regret",
        "Thinking Machines: LoRA Without Regret",
        "https://thinkingmachines.ai/blog/lora/",
        "2025-09; several summaries agree",
    ),
    Source(
        "tinker-cookbook",
        "tinker-cookbook: hyperparam_utils, get_lr",
        "https://github.com/thinking-machines-lab/tinker-cookbook/blob/main/tinker_cookbook/hyperparam_utils.py",
        "02face34; SFT on tulu3, batch 128, 780 steps",
    ),
    Source("qlora", "QLoRA: scripts and README", "https://github.com/artidoro/qlora", "batch 16, 1,875 steps"),
    Source("alpaca", "Stanford Alpaca: README", "https://github.com/tatsu-lab/stanford_alpaca", "2023"),
    Source(
        "tulu3", "open-instruct: Tülu 3", "https://github.com/allenai/open-instruct/blob/main/docs/tulu3.md", "2024-11"
    ),
    Source(
        "alignment-handbook",
        "Alignment Handbook: Zephyr recipes",
        "https://github.com/huggingface/alignment-handbook/tree/main/recipes",
        "zephyr-7b-beta",
    ),
    Source(
        "unsloth-guide",
        "Unsloth: LoRA hyperparameters guide",
        "https://docs.unsloth.ai/get-started/fine-tuning-llms-guide/lora-hyperparameters-guide",
        "read 2026-11",
    ),
    Source("trl-defaults", "TRL: defaults of its trainers", "https://huggingface.co/docs/trl", "1.16.0, run"),
    Source(
        "loraplus",
        "LoRA+: efficient low rank adaptation of large models",
        "https://arxiv.org/abs/2402.12354",
        "2024; axolotl repeats 2^4",
    ),
    Source(
        "rslora",
        "A rank stabilization scaling factor for fine-tuning with LoRA",
        "https://arxiv.org/abs/2312.03732",
        "2023",
    ),
    Source(
        "lion",
        "Symbolic discovery of optimization algorithms (Lion), section 5",
        "https://arxiv.org/abs/2302.06675",
        "quoted by lion-pytorch's README",
    ),
    Source(
        "muon",
        "Muon is scalable for LLM training",
        "https://arxiv.org/abs/2502.16982",
        "and torch.optim.Muon's documentation",
    ),
    Source("lomo", "LOMO: configurations", "https://github.com/OpenLMLab/LOMO/tree/main/lomo/config", "2023"),
    Source("goyal", "Accurate, large minibatch SGD", "https://arxiv.org/abs/1706.02677", "2017"),
    Source(
        "malladi",
        "On the SDEs and scaling rules for adaptive gradient algorithms",
        "https://arxiv.org/abs/2205.10287",
        "2022",
    ),
    Source(
        "surge",
        "Surge phenomenon in optimal learning rate and batch size scaling",
        "https://arxiv.org/abs/2405.14578",
        "2024",
    ),
    Source(
        "critical-batch",
        "How does critical batch size scale in pre-training?",
        "https://arxiv.org/abs/2410.21676",
        "2024",
    ),
    Source(
        "critical-batch-revisited",
        "Critical batch size revisited",
        "https://arxiv.org/abs/2505.23971",
        "2025; 1B and 7B",
    ),
    Source(
        "step-law",
        "Step Law: optimal hyperparameter scaling in pre-training",
        "https://arxiv.org/abs/2503.04715",
        "2025; 3,700 models",
    ),
    Source(
        "deepseek-llm",
        "DeepSeek LLM: scaling open-source language models",
        "https://arxiv.org/abs/2401.02954",
        "2024; constants not read again",
    ),
    Source(
        "untuned-warmup",
        "On the adequacy of untuned warmup for adaptive optimization",
        "https://arxiv.org/abs/1910.04209",
        "2019",
    ),
    Source(
        "linear-to-zero",
        "Straight to zero: linearly decaying the learning rate",
        "https://arxiv.org/abs/2502.15938",
        "2025; 610M",
    ),
    Source(
        "cooldown",
        "Scaling laws and compute-optimal training beyond fixed durations",
        "https://arxiv.org/abs/2405.18392",
        "2024",
    ),
    Source(
        "lora-learns-less",
        "LoRA learns less and forgets less",
        "https://arxiv.org/abs/2405.09673",
        "2024; seen in summaries",
    ),
    Source(
        "devocean",
        "SK DEVOCEAN: LLM fine-tuning optimisation guide by experiment, part 2",
        "https://www.velopers.kr/post/2725",
        "Korean, in summary with a link to the guide; the figures are the guide's own",
    ),
    Source(
        "deep-nexus",
        "Deep Nexus One: hyperparameter tuning strategy, lesson text",
        "https://dtub.ru/video/c2FGCEynwe0",
        "Korean, 2025-10",
    ),
    Source(
        "ms-swift",
        "ms-swift: command-line parameters",
        "https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html",
        "read 2026-11",
    ),
    Source(
        "decision-rule",
        "Plimsoll's own rule, drawn from the rows beside it",
        "https://github.com/thinking-machines-lab/tinker-cookbook/blob/main/tinker_cookbook/hyperparam_utils.py",
        "a start, not a measurement",
    ),
    Source(
        "llm-foundry",
        "llm-foundry: training benchmarks",
        "https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/benchmarking",
        "MPT on A100 and H100, tokens per second and MFU stated",
    ),
    Source(
        "torchtitan-performance",
        "torchtitan: performance of Llama 3.1 8B",
        "https://github.com/pytorch/torchtitan/blob/main/docs/performance.md",
        "2024-12, 8 H100 of 96 GB at 500 W",
    ),
    Source(
        "torchtune-readme",
        "torchtune: README, speed and memory",
        "https://github.com/pytorch/torchtune",
        "Llama 3.2 3B, Llama 3.1 8B",
    ),
    Source(
        "qwen-readme",
        "Qwen: README, memory and speed of fine-tuning",
        "https://github.com/QwenLM/Qwen",
        "A100 80 GB, gradient accumulation 8",
    ),
    Source(
        "neural-nova",
        "Neural Nova: Qwen3 4B, stock and tuned",
        "https://www.neural-nova.com/blog/accelerating-qwen3-4b-fine-tuning-by-56",
        "A100 40 GB, 4,096 packed, checkpointed, batch 1",
    ),
    Source(
        "kaplan",
        "Scaling laws for neural language models, section 2.1",
        "https://arxiv.org/abs/2001.08361",
        "2 FLOPs per parameter and token",
    ),
    Source(
        "flash-attention-2",
        "FlashAttention-2: the backward pass recomputes scores",
        "https://arxiv.org/abs/2307.08691",
        "2023",
    ),
    Source("mercatus", "mercatus-ai.com: GPU prices", "https://mercatus-ai.com", "snapshot of May 2026, third party"),
    Source(
        "deploybase", "deploybase.ai: RunPod prices", "https://deploybase.ai", "snapshot of 2026-03-10, third party"
    ),
    Source(
        "deepspeed-fp16-optimizer",
        "DeepSpeed: FP16_Optimizer.step",
        "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/fp16/fused_optimizer.py",
        "read at 051b9c8",
    ),
    Source(
        "zero",
        "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
        "https://arxiv.org/abs/1910.02054",
        "section 3.1: fp32 copy of the parameters beside 16-bit ones",
    ),
    Source(
        "liger",
        "Liger Kernel: README and its example for the Hugging Face Trainer",
        "https://github.com/linkedin/Liger-Kernel",
        "Llama 3 8B, Qwen2 7B and Gemma 7B on four A100, read at ead96b6",
    ),
    Source(
        "flash-attention",
        "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
        "https://arxiv.org/abs/2205.14135",
        "BERT-large 1.15 times, GPT-2 3 times as fast, end to end",
    ),
    Source(
        "transformers-checkpointing",
        "transformers: gradient checkpointing",
        "https://huggingface.co/docs/transformers/en/grad_checkpointing",
        "about 20 % slower, read 2026-11",
    ),
    Source(
        "no-trainer",
        "transformers: run_clm_no_trainer.py, a training loop with accelerate",
        "https://github.com/huggingface/transformers/blob/main/examples/pytorch/language-modeling/run_clm_no_trainer.py",
        "read, not run",
    ),
    Source(
        "liger-kernel",
        "Liger Kernel: its operations for norms, rotation, gated products, and the fused head",
        "https://github.com/linkedin/Liger-Kernel/tree/main/src/liger_kernel/ops",
        "0.8.5, run on a pretended GPU",
    ),
    Source(
        "cut-cross-entropy",
        "Cut Your Losses in Large-Vocabulary Language Models",
        "https://arxiv.org/abs/2411.09009",
        "the package cut-cross-entropy 25.1.1, run on a pretended GPU with its kernels left out",
    ),
    Source(
        "foak",
        "fms-acceleration: fused ops and kernels, out of Unsloth's and Liger's",
        "https://github.com/foundation-model-stack/fms-acceleration/tree/main/plugins/fused-ops-and-kernels",
        "0.7.4 and its history since 2024-10, read; measured by fms-acceleration",
    ),
    Source(
        "torch-attention",
        "PyTorch: choice of attention kernel, its formula, and what flash attention's backward allocates",
        "https://github.com/pytorch/pytorch/tree/main/aten/src/ATen/native/transformers",
        "torch 2.13.0, formula run on a pretended GPU",
    ),
    Source(
        "torch-softmax",
        "PyTorch SoftMax.cu: the backward of softmax multiplies gradient and result first",
        "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/SoftMax.cu",
        "read 2026-11; 7 readings of fitcheck show it",
    ),
)
