"""What calc says of a plan: what cannot run, what is not modelled, what its owner should know."""

SENTENCES = {
    # calc/memory/problems.py
    "{} has no bf16 arithmetic: choose fp16-mixed, or fp16-autocast with adapters.":
        "{}에는 bf16 연산이 없습니다. fp16-mixed를 고르거나, 어댑터라면 fp16-autocast를 고르세요.",
    "FlashAttention-2 needs an Ampere card or newer; on {} choose sdpa.":
        "FlashAttention-2는 Ampere 이후의 카드가 필요합니다. {}에서는 sdpa를 고르세요.",
    "Only PyTorch's own formula takes grouped key heads here, and it holds every attention score: {} by {} for each head. "
    "A card from Ampere on with 16-bit numbers spares them.":
        "여기서 묶인 키 헤드를 받는 것은 PyTorch의 기본 수식뿐이고, 헤드마다 {} × {}의 어텐션 점수를 모두 메모리에 둡니다. "
        "Ampere 이후의 카드에서 16비트로 학습하면 필요 없습니다.",
    "{} cannot run here: {}.": "{} 옵티마이저는 여기서 실행되지 않습니다: {}.",
    "{} cannot run here: {}. The nearest that can: {}.": "{} 옵티마이저는 여기서 실행되지 않습니다: {}. 가장 가까운 대안: {}.",
    "{} uses gradients inside the backward pass, so gradient accumulation has nothing to add up; set it to 1.":
        "{} 옵티마이저는 역전파 안에서 그래디언트를 쓰므로 누적할 것이 없습니다. 그래디언트 누적을 1로 두세요.",
    "{} needs optim_args {}.": "{} 옵티마이저에는 optim_args의 {} 값이 필요합니다.",
    "The model's positions end at {} tokens; {} need position scaling.":
        "모델의 위치는 {} 토큰에서 끝납니다. {} 토큰에는 위치 스케일링이 필요합니다.",
    "PEFT adapts the experts' parameters here, and each layer keeps an adapted copy of all its experts for the backward pass; "
    "target the attention's layers to leave the experts alone.":
        "여기서 PEFT는 전문가의 파라미터를 바꾸며, 층마다 모든 전문가의 사본을 역전파까지 보관합니다. 전문가를 그대로 두려면 어텐션 층만 대상으로 삼으세요.",
    "FlashAttention works on 16-bit numbers; choose bf16, or sdpa.": "FlashAttention은 16비트 수에서 동작합니다. bf16이나 sdpa를 고르세요.",
    "fp16 weights cannot be trained under a GradScaler; choose fp16-mixed, or train adapters.":
        "fp16 가중치는 GradScaler로 학습할 수 없습니다. fp16-mixed를 고르거나 어댑터를 학습하세요.",
    "a master copy is not kept for adapters; choose bf16 or bf16-autocast.":
        "어댑터에는 마스터 사본을 두지 않습니다. bf16이나 bf16-autocast를 고르세요.",
    "PEFT puts no adapter on {} of {}, since kernels would pass it by: name the other layers, such as in_proj.":
        "{1}의 {0}에는 PEFT가 어댑터를 붙이지 않습니다. 커널이 어댑터를 지나치기 때문입니다. in_proj 같은 다른 층을 적으세요.",
    "{} has no known capacity.": "{}의 용량을 알 수 없습니다.",
    "transformers refuses {} for {}; it takes {}.": "transformers는 {1}에서 {0} 구현을 받지 않습니다. 가능한 것: {2}.",
    "transformers cannot checkpoint the layers of {}; choose none.": "transformers는 {}의 층을 체크포인팅할 수 없습니다. 없음을 고르세요.",
    "FlashAttention takes heads of up to {}, not {}; choose sdpa.": "FlashAttention의 헤드 크기는 {}까지입니다({}는 불가). sdpa를 고르세요.",
    "{} are one parameter here, so PEFT adapts both or neither: name the other beside {}, or leave it out.":
        "여기서 {}는 하나의 파라미터라서 PEFT는 둘 다 바꾸거나 둘 다 두어야 합니다. {}와 함께 나머지도 적거나, 빼세요.",
    "PEFT adapts the experts themselves here, for which it has no {}: do without it, or adapt the attention's layers only.":
        "여기서 PEFT는 전문가 자체를 바꾸며, 그 경우 {}를 쓸 수 없습니다. 쓰지 않거나 어텐션 층만 대상으로 삼으세요.",
    "The class of {} in transformers 5.24.0 ends with an AttributeError, since its text model's output has no {}; this is its step where "
    "that is mended.":
        "transformers 5.24.0의 {} 클래스는 텍스트 모델의 출력에 {}이(가) 없어 AttributeError로 끝납니다. 이 값은 그것을 고친 클래스의 스텝입니다.",
    "all-linear adapts the convolution of {}'s patches too, which is not modelled yet; freeze the vision tower, or name layers: q_proj, "
    "k_proj, v_proj, o_proj, qkv.":
        "all-linear는 {}의 패치 합성곱에도 어댑터를 붙이며, 이는 아직 모델링되지 않았습니다. 비전 타워를 고정하거나 층을 적으세요: q_proj, k_proj, v_proj, "
        "o_proj, qkv.",
    "the router of {} hands back two results, which PEFT's adapters cannot add to; name other layers: q_proj, k_proj, v_proj, o_proj, "
    "gate_proj, up_proj, down_proj.":
        "{}의 라우터는 결과를 둘 돌려주므로 PEFT의 어댑터를 더할 수 없습니다. 다른 층을 적으세요: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
        "down_proj.",
    "the image processor of {} makes {} pixels, which meet {} weights in its tower, and PyTorch refuses that product without autocast; "
    "choose bf16 or bf16-mixed.":
        "{}의 이미지 프로세서는 {} 픽셀을 만들고, 비전 타워에서 {} 가중치와 만납니다. PyTorch는 autocast 없이 그런 곱을 거부합니다. bf16이나 bf16-mixed를 고르세요.",
    "no layer of {} is meant by these target modules; its layers are {}.": "이 대상 모듈에 해당하는 층이 {}에 없습니다. 있는 층: {}.",
    "{} replaces the whole forward pass, which is not modelled yet; the nearest kernels are liger's.":
        "{}는 순전파 전체를 바꾸며 아직 모델링되지 않았습니다. 가장 가까운 커널은 liger입니다.",
    "{} kernels are modelled for {}, not for {}; choose kernels eager.": "{} 커널은 {}에 대해 모델링되어 있고 {}에는 없습니다. 커널을 eager로 두세요.",
    "the fused head is modelled for {}, not for {}; choose loss triton.": "헤드를 합친 손실은 {}에 대해 모델링되어 있고 {}에는 없습니다. 손실을 triton으로 두세요.",
    "{} kernels fuse adapters of the feed-forward layers too, which is not modelled yet; adapt the attention's only.":
        "{} 커널은 피드포워드 층의 어댑터도 합치는데, 이는 아직 모델링되지 않았습니다. 어텐션 층만 대상으로 삼으세요.",
    "before version 5 each expert was a module of its own, which is modelled for mixtral only, not for {}.":
        "버전 5 전에는 전문가가 각각 모듈이었고, 이는 mixtral에 대해서만 모델링되어 있습니다({}는 없음).",
    "the trainers on {} have no chunked loss; choose loss liger.": "{}의 트레이너에는 나누어 계산하는 손실이 없습니다. 손실을 liger로 두세요.",
    "adapters can be trained on {} weights, but the activations of such layers are not modelled yet":
        "{} 가중치 위에 어댑터를 학습할 수 있지만, 그런 층의 활성값은 아직 모델링되지 않았습니다",
    "{} is not modelled yet beyond one GPU and its plain forms; set it back to its default.":
        "{}는 단일 GPU의 기본 형태 밖에서는 아직 모델링되지 않았습니다. 기본값으로 되돌리세요.",
    "This is {} on torch's own operations, as transformers runs it without {}; kernels of an installed package keep other tensors, mostly fewer.":
        "이 값은 transformers가 {1} 없이 torch의 기본 연산으로 실행하는 {0}의 것입니다. 패키지를 설치하면 그 커널은 다른 텐서를, 대체로 더 적게 보관합니다.",
    "transformers' class of {} runs in fp32 only: in 16 bits a product meets two dtypes, and under autocast masked scores are a number that "
    "16 bits cannot hold; choose fp32.":
        "transformers의 {} 클래스는 fp32로만 실행됩니다. 16비트에서는 곱셈의 두 dtype이 다르고, autocast에서는 가린 점수가 16비트로 담을 수 없는 수입니다. fp32를 고르세요.",
    "under autocast over 16-bit weights {} adds up numbers of two dtypes, which PyTorch refuses; choose bf16 or bf16-mixed.":
        "16비트 가중치에 autocast를 쓰면 {}는 서로 다른 dtype의 수를 더하게 되고 PyTorch가 이를 거부합니다. bf16이나 bf16-mixed를 고르세요.",
    "{} is not modelled on weights in host memory yet; choose {}.":
        "{} 옵티마이저는 호스트 메모리에 둔 가중치에 대해 아직 모델링되지 않았습니다. {} 옵티마이저를 고르세요.",
    "{} moves weights, gradients and states to host memory together (cpu_offload), not the states alone; choose all, or none.":
        "{}는 가중치, 그래디언트, 상태를 함께 호스트 메모리로 옮깁니다(cpu_offload). 상태만 옮길 수는 없으니 all이나 none을 고르세요.",
    "{} GPUs cannot hold {} copies that two GPUs or more share each: replicas must divide data_parallel and leave two.":
        "GPU {}개로는 사본 {}개를 각각 둘 이상의 GPU에 나누어 둘 수 없습니다. replicas는 data_parallel을 나누어떨어뜨리고 몫이 2 이상이어야 합니다.",
    "copies of the sharded weights need fsdp or fsdp2; under {} set replicas to 1.":
        "샤딩된 가중치의 사본에는 fsdp나 fsdp2가 필요합니다. {}에서는 replicas를 1로 두세요.",
    "offload to host memory is modelled under fsdp and fsdp2 (all of weights, gradients and states), not under {}; set it to none, or take a paged optimizer.":
        "호스트 메모리 오프로드는 fsdp와 fsdp2에서(가중치, 그래디언트, 상태 모두) 모델링되어 있고 {}에는 없습니다. none으로 두거나 paged 옵티마이저를 쓰세요.",
    "weights stay gathered after the forward pass under fsdp and fsdp2 only; under {} leave it on.":
        "순전파 뒤에 가중치를 모아 두는 것은 fsdp와 fsdp2에서만 됩니다. {}에서는 켜진 채로 두세요.",
    "{} with {} is not modelled yet: {}.": "{1} 조건의 {0} 모델은 아직 모델링되지 않았습니다: {2}.",
    "fp16 weights": "fp16 가중치",
    "a quantised base": "양자화된 기반 모델",
    "releases before 5": "버전 5 이전의 릴리스",
    "other losses": "다른 손실",
    "choose bf16, or fp16-mixed": "bf16이나 fp16-mixed를 고르세요",
    "choose lora": "lora를 고르세요",
    "choose transformers-5.24": "transformers-5.24를 고르세요",
    "choose loss eager": "손실을 eager로 두세요",
    # calc/memory/sharded.py
    "Mixed precision is that of FSDP itself here. The Trainer puts autocast around it as well, under which layer norms give fp32: "
    "models with LayerNorm then keep more for the backward pass.":
        "여기의 혼합 정밀도는 FSDP 자체의 것입니다. Trainer는 그 둘레에 autocast도 두는데, 그러면 LayerNorm의 출력이 fp32가 되어 "
        "LayerNorm을 쓰는 모델은 역전파를 위해 더 많이 보관합니다.",
    "{} is not modelled yet; the strategies that are: {}.": "{} 전략은 아직 모델링되지 않았습니다. 가능한 전략: {}.",
    "{} runs on two GPUs or more, each with data of its own: data_parallel ({}) must equal num_gpus ({}).":
        "{}는 각자 다른 데이터를 보는 GPU 두 개 이상에서 돕니다. data_parallel({})은 num_gpus({})와 같아야 합니다.",
    "{} is not modelled under {}; choose {}.": "{1}에서 {0}는 모델링되지 않았습니다. 고를 수 있는 것: {2}.",
    "{} steps inside the backward pass, before gradients have been summed over the GPUs; choose adamw_torch.":
        "{} 옵티마이저는 GPU 사이에 그래디언트를 더하기 전, 역전파 안에서 갱신합니다. adamw_torch를 고르세요.",
    "{} is not modelled under {} yet; choose ddp, or lora under fsdp2.":
        "{1}에서 {0}는 아직 모델링되지 않았습니다. ddp를 고르거나, fsdp2에서 lora를 고르세요.",
    "DoRA and layers trained whole beside adapters are not modelled under {} yet; do without, or choose ddp.":
        "{}에서 DoRA와 어댑터 곁에서 통째로 학습하는 층은 아직 모델링되지 않았습니다. 쓰지 않거나 ddp를 고르세요.",
    "when gradients are reduced matters under fsdp2 only; under {} leave it off.":
        "그래디언트를 언제 모으는지는 fsdp2에서만 의미가 있습니다. {}에서는 꺼 두세요.",
    "{} is not modelled under {} yet; choose {}.": "{1}에서 {0}는 아직 모델링되지 않았습니다. 고를 수 있는 것: {2}.",
    "gradient accumulation is not modelled under {} with copies or host memory, nor under fsdp; set it to 1, or take fsdp2 alone.":
        "{}에서 사본이나 호스트 메모리를 쓰는 경우와 fsdp에서는 그래디언트 누적이 모델링되지 않았습니다. 1로 두거나 fsdp2만 쓰세요.",
    "{} is modelled for transformers 5.24 only, not for {}.": "{}는 transformers 5.24에 대해서만 모델링되어 있습니다({}는 없음).",
    "{} is modelled only where the activations of the model are; choose ddp, or one GPU.":
        "{}는 활성값이 모델링된 모델에서만 가능합니다. ddp나 단일 GPU를 고르세요.",
    "{} is modelled for language models with one stack of layers, not for {}; choose ddp.":
        "{}는 층이 한 줄로 쌓인 언어 모델에 대해 모델링되어 있습니다({}는 없음). ddp를 고르세요.",
    "{} keeps some weights in another dtype than the rest, which FSDP does not take together; choose ddp.":
        "{}는 일부 가중치를 다른 자료형으로 두는데, FSDP는 함께 받지 않습니다. ddp를 고르세요.",
    "fsdp pads tensors of {} to {} bytes within its flat parameters, which is not modelled; choose fsdp2.":
        "fsdp는 평탄 파라미터 안에서 {}의 텐서를 {}바이트에 맞춰 채우며, 이는 모델링되지 않았습니다. fsdp2를 고르세요.",
    "{} GPUs need a way to share the work: choose {}, or one GPU.": "GPU {}개에는 일을 나눌 방법이 필요합니다. {} 가운데 고르거나 GPU 하나를 쓰세요.",
    "cut cross-entropy is modelled for {}, not for {}; choose loss triton.":
        "cut cross-entropy는 {}에 대해 모델링되어 있고 {}에는 없습니다. 손실을 triton으로 두세요.",
    "cut cross-entropy's backward kernel takes hidden states in 16 bits only, and under {} they are fp32; choose bf16 or bf16-autocast, or loss liger.":
        "cut cross-entropy의 역전파 커널은 16비트 은닉 상태만 받는데 {}에서는 fp32입니다. bf16이나 bf16-autocast, 또는 손실 liger를 고르세요.",
    "cut cross-entropy is modelled for transformers 5 only, not for {}.":
        "cut cross-entropy는 transformers 5에서만 모델링되어 있고, {}에는 없습니다.",
    # calc/memory/in_backward.py
    "{} steps inside the backward pass by itself; leave it off.": "{} 옵티마이저는 스스로 역전파 안에서 갱신합니다. 꺼 두세요.",
    "under {} gradients are unscaled or cast all together before the step, so it cannot be taken weight by weight inside the backward pass; "
    "choose bf16.":
        "{}에서는 스텝 전에 모든 그래디언트를 함께 되돌리거나 변환하므로, 역전파 안에서 가중치마다 갱신할 수 없습니다. bf16을 고르세요.",
    # calc/memory/offloaded.py
    "activations in host memory are modelled for transformers 5 only, not for {}.":
        "활성화를 호스트 메모리에 두는 것은 transformers 5에서만 모델링되어 있고, {}에는 없습니다.",
    "activations in host memory are not modelled under {} yet; choose ddp, or keep them on the GPU.":
        "{}에서 활성화를 호스트 메모리에 두는 것은 아직 모델링되지 않았습니다. ddp를 고르거나 GPU에 두세요.",
    "{} with activations in host memory is not modelled yet; choose gradient checkpointing full.":
        "활성화를 호스트 메모리에 두는 {}는 아직 모델링되지 않았습니다. 그래디언트 체크포인팅을 모든 블록(full)으로 두세요.",
    "{} hands its mask to each layer, which is not modelled with activations in host memory; choose sdpa without padding.":
        "{}는 층마다 마스크를 넘기는데, 활성화를 호스트 메모리에 두는 경우는 모델링되지 않았습니다. 패딩 없이 sdpa를 고르세요.",
    "{} with each saved tensor in host memory is not modelled yet; choose gradient checkpointing offload.":
        "저장한 텐서를 하나씩 호스트 메모리에 두는 {}는 아직 모델링되지 않았습니다. 그래디언트 체크포인팅을 offload로 두세요.",
    "replaced kernels are not modelled with each saved tensor in host memory yet; choose gradient checkpointing offload.":
        "바꿔 끼운 커널은 저장한 텐서를 하나씩 호스트 메모리에 두는 경우로는 아직 모델링되지 않았습니다. 그래디언트 체크포인팅을 offload로 두세요.",
    # calc/memory/images.py
    "The images take {} tokens of a sequence and only {} fit, which the class refuses; lengthen it, or take fewer or smaller ones.":
        "이미지가 시퀀스에서 {} 토큰을 차지하는데 {} 토큰만 들어가며, 모델 클래스가 이를 거부합니다. 시퀀스를 늘리거나 이미지를 줄이세요.",
    "every part that runs is frozen; train at least one.": "실행되는 부분이 모두 고정되어 있습니다. 적어도 하나는 학습하세요.",
    "selective checkpointing is not modelled with images; choose full or none.":
        "이미지가 있으면 선택적 체크포인팅은 모델링되지 않았습니다. 전체나 없음을 고르세요.",
    "{} cannot see this image: {}.": "{}는 이 이미지를 볼 수 없습니다: {}.",
    "{} sees no images; set images per sequence to 0, or choose a model that sees them.":
        "{}는 이미지를 보지 않습니다. 시퀀스당 이미지를 0으로 두거나, 이미지를 보는 모델을 고르세요.",
    "{} has no parts to freeze; train all of it.": "{}에는 고정할 부분이 없습니다. 전체를 학습하세요.",
    "{} {} is not modelled for models that see images; choose {}.": "이미지를 보는 모델에서 {} {}는 모델링되지 않았습니다. 고를 수 있는 것: {}.",
    # calc/memory/stored_weights.py
    "the weights are stored by bitsandbytes already: choose qlora with {}, which is what loading them gives.":
        "가중치가 이미 bitsandbytes로 저장되어 있습니다. 불러온 그대로인 {} qlora를 고르세요.",
    "{} weights cannot be loaded as 16-bit ones: {}.": "{} 가중치는 16비트로 불러올 수 없습니다: {}.",
    "the weights are stored in {} already, and transformers does not quantise them again: choose lora, or start from the unquantised weights.":
        "가중치가 이미 {}로 저장되어 있고 transformers는 다시 양자화하지 않습니다. lora를 고르거나 양자화되지 않은 가중치에서 시작하세요.",
    "transformers trains nothing on {} weights, adapters included: {}.": "transformers는 {} 가중치 위에서 어댑터를 포함해 아무것도 학습하지 않습니다: {}.",
    "the sizes of {} weights are not modelled yet.": "{} 가중치의 크기는 아직 모델링되지 않았습니다.",
    # calc/memory/estimate.py and the command line
    "a path is read by the command line only; pass the config itself": "경로는 명령줄에서만 읽습니다. config 내용을 전달하세요",
}  # fmt: skip
