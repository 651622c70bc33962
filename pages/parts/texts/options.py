"""Labels of the words that a Scenario field may hold, and the flags that lead to each precision."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "option.method.full": Text("Full", "전체"),
    "option.method.lora": Text("LoRA", "LoRA"),
    "option.method.qlora": Text("QLoRA", "QLoRA"),
    "option.precision.fp32": Text("fp32 throughout", "모두 fp32"),
    "option.precision.bf16": Text("bf16 throughout", "모두 bf16"),
    "option.precision.bf16-autocast": Text("bf16 weights, bf16 autocast", "bf16 가중치, bf16 autocast"),
    "option.precision.bf16-mixed": Text("fp32 weights, bf16 autocast", "fp32 가중치, bf16 autocast"),
    "option.precision.fp16-mixed": Text("fp32 weights, fp16 autocast", "fp32 가중치, fp16 autocast"),
    "option.precision.fp16-autocast": Text("fp16 base, fp32 adapters", "fp16 기본 모델, fp32 어댑터"),
    "option.precision.bf16-master": Text("bf16 with fp32 master copy", "bf16과 fp32 마스터 사본"),
    "option.precision.fp16-master": Text("fp16 with fp32 master copy", "fp16과 fp32 마스터 사본"),
    "flags.fp32": Text("`dtype=float32`, neither `bf16` nor `fp16`", "`dtype=float32`, `bf16`과 `fp16` 없음"),
    "flags.bf16": Text("`dtype=bfloat16` without `bf16=True`", "`dtype=bfloat16`, `bf16=True` 없음"),
    "flags.bf16-autocast": Text(
        "`dtype=bfloat16` with `bf16=True`, the usual Trainer run", "`dtype=bfloat16`과 `bf16=True`, 흔한 Trainer 설정"
    ),
    "flags.bf16-mixed": Text("`dtype=float32` with `bf16=True`", "`dtype=float32`와 `bf16=True`"),
    "flags.fp16-mixed": Text("`dtype=float32` with `fp16=True`", "`dtype=float32`와 `fp16=True`"),
    "flags.fp16-autocast": Text(
        "`dtype=float16` with `fp16=True` and adapters", "`dtype=float16`과 `fp16=True`, 어댑터 학습"
    ),
    "flags.bf16-master": Text(
        "DeepSpeed `bf16.enabled`, Megatron `--bf16`", "DeepSpeed `bf16.enabled`, Megatron `--bf16`"
    ),
    "flags.fp16-master": Text(
        "DeepSpeed `fp16.enabled`, Megatron `--fp16`", "DeepSpeed `fp16.enabled`, Megatron `--fp16`"
    ),
    "option.gradient_checkpointing.none": Text("Off", "끔"),
    "option.gradient_checkpointing.full": Text("Every block", "모든 블록"),
    "option.gradient_checkpointing.selective": Text("Attention only", "어텐션만"),
    "option.gradient_checkpointing.offload": Text("To host", "호스트로"),
    "option.attention.eager": Text("eager", "eager"),
    "option.attention.sdpa": Text("sdpa", "sdpa"),
    "option.attention.flash_attention_2": Text("FlashAttention 2", "FlashAttention 2"),
    "option.attention.flash_attention_3": Text("FlashAttention 3", "FlashAttention 3"),
    "option.loss.eager": Text("Whole logits in fp32", "fp32 로짓 전체"),
    "option.loss.triton": Text("In place (Triton)", "제자리 (Triton)"),
    "option.loss.chunked": Text("In pieces", "나누어 계산"),
    "option.loss.liger": Text("Fused with the head (Liger)", "헤드와 융합 (Liger)"),
    "option.loss.cce": Text("Inside kernels (cut cross-entropy)", "커널 안에서 (cut cross-entropy)"),
    "option.kernels.eager": Text("As written", "그대로"),
    "option.kernels.liger": Text("Liger", "Liger"),
    "option.kernels.foak": Text("Fused ops and kernels", "Fused ops and kernels"),
    "option.kernels.unsloth": Text("Unsloth", "Unsloth"),
    "option.target_modules.all-linear": Text("All linear", "모든 선형 층"),
    "option.target_modules.attention": Text("Attention", "어텐션"),
    "option.target_modules.named": Text("By name", "이름으로"),
    "option.adapter_dtype.fp32": Text("fp32", "fp32"),
    "option.adapter_dtype.bf16": Text("bf16", "bf16"),
    "option.adapter_dtype.fp16": Text("fp16", "fp16"),
    "option.format.nf4": Text("nf4", "nf4"),
    "option.format.fp4": Text("fp4", "fp4"),
    "option.format.int8": Text("int8", "int8"),
    "option.offload.none": Text("Nothing", "없음"),
    "option.offload.optimizer": Text("Optimizer", "옵티마이저"),
    "option.offload.all": Text("Weights too", "가중치까지"),
    "option.strategy.none": Text("None", "없음"),
    "option.strategy.ddp": Text("DDP: all replicated", "DDP: 모두 복제"),
    "option.strategy.zero1": Text("ZeRO 1: states", "ZeRO 1: 상태"),
    "option.strategy.zero2": Text("ZeRO 2: + gradients", "ZeRO 2: + 그래디언트"),
    "option.strategy.zero3": Text("ZeRO 3: + weights", "ZeRO 3: + 가중치"),
    "option.strategy.fsdp": Text("FSDP", "FSDP"),
    "option.strategy.fsdp2": Text("FSDP 2", "FSDP 2"),
    "option.strategy.megatron": Text("Megatron", "Megatron"),
}
