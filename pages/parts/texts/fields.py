"""Labels of the Scenario's fields."""

from __future__ import annotations

from pages.parts.texts.row import FieldText

FIELDS = {
    "model": FieldText("Model", "모델", "카탈로그나 허깅페이스 허브의 모델 이름, 또는 config.json."),
    "plan.method": FieldText(
        "Method",
        "학습 방법",
        "**전체**: 모든 가중치를 학습합니다. **LoRA**: 기본 모델은 고정하고 옆에 붙인 어댑터만 학습합니다. "
        "**QLoRA**: 고정한 기본 모델을 양자화해 두고 어댑터만 학습합니다.",
    ),
    "plan.lora.rank": FieldText(
        "LoRA rank", "LoRA 랭크", "어댑터의 안쪽 너비 r (PEFT: `r`). 어댑터의 메모리는 r에 비례합니다."
    ),
    "plan.lora.alpha": FieldText(
        "LoRA alpha", "LoRA 알파", "어댑터 출력의 배율 (PEFT: `lora_alpha`). 메모리에는 영향이 없습니다."
    ),
    "plan.lora.dropout": FieldText(
        "LoRA dropout",
        "LoRA 드롭아웃",
        "어댑터 앞의 드롭아웃 (PEFT: `lora_dropout`). 0보다 크면 층마다 입력의 사본과 마스크가 남습니다.",
    ),
    "plan.lora.target_modules": FieldText(
        "Adapted layers",
        "어댑터를 붙일 층",
        "어댑터를 붙일 선형 층 (PEFT: `target_modules`): 헤드를 뺀 전부, 어텐션만, 또는 이름 목록.",
    ),
    "plan.lora.modules_to_save": FieldText(
        "Layers trained whole",
        "통째로 학습할 층",
        "어댑터와 함께 통째로 학습하는 층 (PEFT: `modules_to_save`). 토큰을 추가한 뒤의 embed_tokens, lm_head 등.",
    ),
    "plan.lora.adapter_dtype": FieldText(
        "Adapter format",
        "어댑터 형식",
        "어댑터 가중치의 숫자 형식. PEFT는 bf16 모델 위에서도 fp32로 만듭니다 (`autocast_adapter_dtype=True`).",
    ),
    "plan.lora.use_dora": FieldText(
        "DoRA",
        "DoRA",
        "크기와 방향을 나눈 LoRA (PEFT: `use_dora`): 층마다 크기 벡터가 생기고 매번 가중치 전체를 다시 만듭니다.",
    ),
    "plan.quantization.format": FieldText(
        "Base stored as",
        "기본 모델 저장 형식",
        "nf4와 fp4는 가중치당 4비트와 64개마다 배율 하나, int8은 8비트와 행마다 배율 하나를 저장합니다.",
    ),
    "plan.quantization.double_quant": FieldText(
        "Double quantisation",
        "이중 양자화",
        "배율까지 양자화합니다 (`bnb_4bit_use_double_quant`): 가중치당 4.5비트가 4.127비트로 줄어듭니다.",
    ),
    "plan.quantization.upcast_for_training": FieldText(
        "Prepare for k-bit training",
        "k비트 학습 준비",
        "정규화 층, 임베딩, 헤드를 먼저 fp32로 바꿉니다 (`prepare_model_for_kbit_training`).",
    ),
    "plan.precision": FieldText(
        "Weights and arithmetic",
        "가중치와 연산",
        "가중치와 연산의 숫자 형식. LoRA와 QLoRA에서는 고정한 기본 모델의 형식입니다.",
    ),
    "plan.optimizer": FieldText("Optimizer", "옵티마이저", "허깅페이스의 `optim`."),
    "plan.optimizer_args": FieldText(
        "Optimizer arguments", "옵티마이저 인자", "허깅페이스의 `optim_args`: rank, momentum, amsgrad, foreach 등."
    ),
    "plan.optimizer_in_backward": FieldText(
        "Step inside the backward pass",
        "역전파 안에서 스텝",
        "가중치마다 그래디언트가 나오는 대로 역전파 안에서 갱신하고 그래디언트를 바로 놓습니다 (torchtune: `optimizer_in_bwd`).",
    ),
    "plan.micro_batch_size": FieldText(
        "Micro-batch",
        "마이크로 배치",
        "GPU 하나가 한 번의 순전파에서 보는 시퀀스 수 (`per_device_train_batch_size`).",
    ),
    "plan.seq_len": FieldText(
        "Sequence length",
        "시퀀스 길이",
        "시퀀스당 토큰 수, 패딩 포함 (TRL: `max_length`). 가장 긴 배치가 최대 메모리를 정합니다. 인코더-디코더에서는 입력과 목표가 각각 이 길이입니다.",
    ),
    "plan.gradient_accumulation_steps": FieldText(
        "Gradient accumulation",
        "그래디언트 누적",
        "옵티마이저 스텝 하나에 드는 순전파 수. 활성화를 늘리지는 않지만 그 사이 그래디언트가 남아 있습니다.",
    ),
    "plan.gradient_checkpointing": FieldText(
        "Gradient checkpointing",
        "그래디언트 체크포인팅",
        "블록의 입력만 남기고 역전파 때 블록을 다시 계산합니다 (`gradient_checkpointing`).",
    ),
    "plan.attention": FieldText("Attention", "어텐션", "허깅페이스의 `attn_implementation`."),
    "plan.loss": FieldText(
        "Head and loss",
        "헤드와 손실",
        "헤드와 교차 엔트로피를 계산하는 방법: fp32 로짓 전체(eager), 제자리(triton), 나누어(chunked), 융합(liger), 커널 안에서(cce).",
    ),
    "plan.kernels": FieldText(
        "Layer kernels",
        "층 커널",
        "바꿔 끼운 층 커널: 없음, Liger(`use_liger_kernel`), fused-ops-and-kernels 플러그인, Unsloth.",
    ),
    "plan.images.per_sequence": FieldText(
        "Images per sequence",
        "시퀀스당 이미지 수",
        "시퀀스마다 든 이미지의 수. 0이면 글만으로 학습합니다. 이미지 토큰은 시퀀스 길이에 포함됩니다.",
    ),
    "plan.images.height": FieldText(
        "Image height",
        "이미지 높이",
        "데이터의 이미지 높이 (픽셀). 모델의 이미지 프로세서가 이 크기를 자기 방식으로 바꿉니다.",
    ),
    "plan.images.width": FieldText("Image width", "이미지 너비", "데이터의 이미지 너비 (픽셀)."),
    "plan.images.train_text": FieldText(
        "Train the text model",
        "텍스트 모델 학습",
        "텍스트 모델을 학습합니다 (LoRA에서는 어댑터를 붙입니다). 끄면 고정합니다 (language_model에 `requires_grad_(False)`).",
    ),
    "plan.images.train_vision": FieldText(
        "Train the vision tower",
        "비전 타워 학습",
        "이미지를 보는 부분을 학습합니다 (LoRA에서는 어댑터를 붙입니다). 끄면 고정합니다 (LLaMA-Factory: `freeze_vision_tower`).",
    ),
    "plan.images.train_projector": FieldText(
        "Train the projector",
        "프로젝터 학습",
        "둘을 잇는 프로젝터를 학습합니다 (LoRA에서는 어댑터를 붙입니다). 끄면 고정합니다 "
        "(LLaMA-Factory: `freeze_multi_modal_projector`).",
    ),
    "plan.padded": FieldText(
        "Batches hold padding",
        "배치에 패딩 포함",
        "배치에 패딩이 있으면 어텐션이 마스크를 받아 가장 가벼운 커널을 쓰지 못합니다.",
    ),
    "plan.dequantize": FieldText(
        "Load as 16-bit weights",
        "16비트 가중치로 로드",
        "양자화되어 저장된 가중치를 16비트로 풀어 로드합니다 (양자화 설정의 `dequantize=True`). 그러면 모두 학습할 수 있습니다.",
    ),
    "plan.objective": FieldText(
        "Objective", "학습 목표", "무엇을 학습하는지. 선호도와 보상 학습은 모델링할 때까지 거절합니다."
    ),
    "plan.framework": FieldText("Framework", "프레임워크", "동작을 따르는 버전."),
    "plan.sharding.strategy": FieldText(
        "Sharding",
        "샤딩",
        "GPU마다 일부만 갖는 것: 없음(none, ddp), 옵티마이저 상태(zero1), 그래디언트까지(zero2), "
        "가중치까지(zero3, fsdp).",
    ),
    "plan.sharding.data_parallel": FieldText("Data parallel", "데이터 병렬", "서로 다른 데이터를 보는 GPU 묶음의 수."),
    "plan.sharding.replicas": FieldText(
        "Copies of the shards",
        "샤드 사본 수",
        "나눈 가중치의 사본 수. 서버마다 하나씩 두는 식입니다 (accelerate: `dp_replicate_size`, FSDP1: HYBRID_SHARD). "
        "사본 하나를 data_parallel / replicas개의 GPU가 나누어 갖습니다.",
    ),
    "plan.sharding.reshard_after_forward": FieldText(
        "Let gathered weights go after the forward",
        "순전파 뒤 모은 가중치 놓기",
        "블록의 순전파가 끝나면 모은 가중치를 놓고 역전파에서 다시 모읍니다 (`fsdp_reshard_after_forward`, "
        "FSDP1: FULL_SHARD, 끄면 SHARD_GRAD_OP).",
    ),
    "plan.sharding.sync_each_batch": FieldText(
        "Reduce gradients with each micro-batch",
        "마이크로 배치마다 그래디언트 모으기",
        "누적할 때 마지막까지 그래디언트 전체를 들고 있지 않고 마이크로 배치마다 모아 나눕니다 (accelerate: `sync_each_batch`).",
    ),
    "plan.sharding.tensor_parallel": FieldText("Tensor parallel", "텐서 병렬", "한 층의 행렬을 나누는 GPU 수."),
    "plan.sharding.pipeline_parallel": FieldText("Pipeline parallel", "파이프라인 병렬", "층을 나누는 GPU 수."),
    "plan.sharding.context_parallel": FieldText("Context parallel", "컨텍스트 병렬", "한 시퀀스를 나누는 GPU 수."),
    "plan.sharding.expert_parallel": FieldText("Expert parallel", "전문가 병렬", "전문가들을 나누는 GPU 수."),
    "plan.sharding.offload": FieldText(
        "Offload",
        "오프로드",
        "호스트 메모리에 두는 것: 없음, 옵티마이저, 가중치와 그래디언트까지 (FSDP: `fsdp_offload_params`).",
    ),
    "plan.sharding.activation_offload": FieldText(
        "Offload activations",
        "활성화 오프로드",
        "저장한 활성화를 호스트 메모리에 둡니다 (TRL: `activation_offloading`).",
    ),
    "hardware.gpu": FieldText("GPU", "GPU", "GPU 표의 이름으로 고른 카드."),
    "hardware.num_gpus": FieldText("Count", "개수", "카드 수."),
}
