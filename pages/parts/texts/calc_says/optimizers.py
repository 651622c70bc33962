"""What calc says of optimizers, sentence by sentence."""

_HOOK = "A hook updates each parameter and frees its gradient during the backward pass."

SENTENCES = {
    "The reference for quality.": "품질의 기준입니다.",
    "On a GPU its foreach kernels copy every parameter once during the step.": "GPU에서는 foreach 커널이 스텝 동안 모든 파라미터를 한 번 복사합니다.",
    "Same result as adamw_torch, faster, and no copy during the step.": "adamw_torch와 같은 결과, 더 빠르고 스텝 중 복사가 없습니다.",
    "The Trainer's default.": "Trainer의 기본값입니다.",
    "AdamW without a wait for the host, for TPUs.": "호스트를 기다리지 않는 AdamW, TPU용입니다.",
    "AdamW in one kernel, for Huawei's NPUs.": "커널 하나로 된 AdamW, 화웨이 NPU용입니다.",
    "fp32 moments beside bf16 weights, with Kahan summation against lost updates if asked.":
        "bf16 가중치 옆에 fp32 모멘트를 두고, 원하면 Kahan 합으로 사라지는 갱신을 막습니다.",
    "A plain loop, slower than PyTorch's; removed in transformers 5.": "단순한 루프라 PyTorch 것보다 느리고, transformers 5에서 없어졌습니다.",
    "Almost no state.": "상태가 거의 없습니다.",
    "Slower per step than AdamW, and usually wants its learning rate tuned anew.": "스텝이 AdamW보다 느리고, 보통 학습률을 다시 맞춰야 합니다.",
    "No state at all.": "상태가 없습니다.",
    "Rarely reaches AdamW's quality on transformers.": "트랜스포머에서 AdamW의 품질에 이르는 일은 드뭅니다.",
    "One buffer.": "버퍼 하나입니다.",
    "Its learning rate only ever falls; seldom used for language models.": "학습률이 줄기만 합니다. 언어 모델에는 드물게 씁니다.",
    "AdamW without its first moment.": "1차 모멘트가 없는 AdamW입니다.",
    "Adam with Nesterov's look-ahead.": "네스테로프 예측을 더한 Adam입니다.",
    "Adam with the largest gradient in place of the mean square.": "제곱 평균 대신 가장 큰 그래디언트를 쓰는 Adam입니다.",
    "As transformers' Adafactor, with states in the parameters' dtype and fewer copies.":
        "transformers의 Adafactor와 같고, 상태가 파라미터의 자료형이며 복사가 적습니다.",
    "One moment for hidden matrices; reported to need fewer steps than AdamW, at the price of extra products.":
        "은닉 행렬에 모멘트 하나. AdamW보다 스텝이 적게 든다고 보고되었고, 대신 행렬곱이 더 듭니다.",
    "A quarter of the fp32 state; its authors report the same quality.": "fp32 상태의 4분의 1. 저자들은 같은 품질을 보고합니다.",
    "One kernel, no copies.": "커널 하나, 복사 없음.",
    "fp32 states whatever the weights are: 16-bit weights do not halve them.": "가중치와 상관없이 fp32 상태. 16비트 가중치라도 절반이 되지 않습니다.",
    "A quarter of the fp32 state, embeddings included.": "임베딩까지 포함해 fp32 상태의 4분의 1입니다.",
    "The first step waits for the compiler.": "첫 스텝은 컴파일을 기다립니다.",
    "An eighth of the fp32 state; its authors report accuracy near 32-bit Adam's.": "fp32 상태의 8분의 1. 저자들은 32비트 Adam에 가까운 정확도를 보고합니다.",
    "The first step is compiled.": "첫 스텝에서 컴파일합니다.",
    "A quarter of the fp32 state, without code tables; fp8 arithmetic needs an Ada, Hopper or newer GPU.":
        "코드 표 없이 fp32 상태의 4분의 1. fp8 연산에는 Ada, Hopper 또는 그 이후의 GPU가 필요합니다.",
    "Much less state at a quality near AdamW's, its authors report; each renewal runs an SVD per target.":
        "저자들의 보고로는 AdamW에 가까운 품질에 훨씬 적은 상태. 갱신 때마다 대상별로 SVD를 계산합니다.",
    "Hardly smaller than Adafactor alone, whose states are small already.": "이미 상태가 작은 Adafactor보다 거의 작아지지 않습니다.",
    _HOOK: "훅이 역전파 중에 파라미터를 하나씩 갱신하고 그 그래디언트를 놓아줍니다.",
    "SGD-like memory at AdamW-level quality, its authors report; random projections, so no SVD.":
        "저자들의 보고로는 SGD 수준의 메모리에 AdamW 수준의 품질. 무작위 투영이라 SVD가 없습니다.",
    "No state and no gradients: plain SGD fused into the backward pass, with SGD's quality.":
        "상태도 그래디언트도 없습니다. 역전파에 합쳐진 단순 SGD이며 품질도 SGD입니다.",
    "LOMO with Adafactor's second moment; its authors report results near AdamW's.":
        "Adafactor의 2차 모멘트를 더한 LOMO. 저자들은 AdamW에 가까운 결과를 보고합니다.",
    "Needs no learning-rate schedule; its authors report results on par with tuned schedules.":
        "학습률 스케줄이 필요 없습니다. 저자들은 조정된 스케줄과 대등한 결과를 보고합니다.",
    "Needs no warmup either.": "워밍업도 필요 없습니다.",
    "AdamW with Adafactor's clipping; in pure bf16 Kahan summation keeps small updates for 2 more bytes each.":
        "Adafactor의 클리핑을 더한 AdamW. 순수 bf16에서는 Kahan 합이 파라미터당 2바이트를 더 써서 작은 갱신을 지킵니다.",
    "Aims at late generalisation.": "늦은 일반화를 노립니다.",
    "Every step brings each state from the host and back, which is slow.": "스텝마다 상태를 호스트에서 가져왔다가 돌려보내서 느립니다.",
    "Half of AdamW's state in fp32; its authors report AdamW-like convergence.": "fp32 AdamW 상태의 절반. 저자들은 AdamW와 비슷한 수렴을 보고합니다.",
    "A loop with several fp32 copies.": "fp32 사본을 여럿 만드는 루프입니다.",
    "One moment.": "모멘트 하나입니다.",
    "Wants a learning rate 3 to 10 times smaller than AdamW's and a larger weight decay.": "AdamW보다 3~10배 작은 학습률과 더 큰 가중치 감쇠가 필요합니다.",
    "A third moment with a long memory; its authors report that a model trained on fewer tokens matches AdamW.":
        "기억이 긴 세 번째 모멘트. 저자들은 더 적은 토큰으로 학습한 모델이 AdamW와 대등하다고 보고합니다.",
    "Finds the learning rate by itself, at twice AdamW's state.": "학습률을 스스로 찾습니다. 상태는 AdamW의 두 배입니다.",
    "Fewer steps than AdamW, its authors report, at the price of squares of every axis: mostly for smaller models.":
        "저자들의 보고로는 AdamW보다 적은 스텝. 대신 축마다 제곱 크기의 행렬을 두어, 주로 작은 모델에 맞습니다.",
    "States follow the parameters' dtype: pure bf16 training keeps 4 bytes per parameter, fp32 8.":
        "상태는 파라미터의 자료형을 따릅니다. 순수 bf16 학습은 파라미터당 4바이트, fp32는 8바이트입니다.",
    "Still found in older recipes; in transformers 5 use adamw_torch.": "옛 레시피에 남아 있습니다. transformers 5에서는 adamw_torch를 쓰세요.",
    "The Trainer turns scale_parameter and relative_step off, so the learning rate is used as given.":
        "Trainer가 scale_parameter와 relative_step을 끄므로 학습률은 준 대로 쓰입니다.",
    "The sums exist as soon as the optimizer is made, before the first step.": "합은 첫 스텝 전, 옵티마이저를 만들 때부터 있습니다.",
    "torch.optim.Muon takes matrices only; embeddings, head, norms and biases go to a fused AdamW beside it.":
        "torch.optim.Muon은 행렬만 받습니다. 임베딩, 헤드, 정규화, 편향은 옆의 fused AdamW가 맡습니다.",
    "The Trainer keeps every embedding's state 32-bit, so a large vocabulary stays costly.":
        "Trainer는 임베딩의 상태를 32비트로 두므로 큰 어휘는 여전히 비쌉니다.",
    "States of 100,000 elements and more lie in CUDA managed memory, which the driver can move to the host.":
        "원소 10만 개 이상의 상태는 드라이버가 호스트로 옮길 수 있는 CUDA 관리 메모리에 있습니다.",
    "The step is compiled on a GPU; without compilation it copies the largest parameter several times in fp32.":
        "GPU에서는 스텝이 컴파일됩니다. 컴파일하지 않으면 가장 큰 파라미터를 fp32로 여러 번 복사합니다.",
    "In fp32 the projection is a slice of a whole singular factor, which stays in memory with it: min(r, c)² elements instead of k·min(r, c).":
        "fp32에서 투영은 특이 인자 전체의 일부라서 전체가 함께 메모리에 남습니다. k·min(r, c) 대신 min(r, c)² 원소입니다.",
    "The Trainer does not keep embeddings 32-bit here.": "여기서는 Trainer가 임베딩을 32비트로 두지 않습니다.",
    "Gradients are turned to fp32 first, so this holds for 16-bit weights too.": "그래디언트를 먼저 fp32로 바꾸므로 16비트 가중치에도 해당합니다.",
    "The hook of one parameter updates the one before it, so two neighbouring gradients exist at once.":
        "한 파라미터의 훅이 그 앞의 것을 갱신하므로 이웃한 그래디언트 둘이 함께 있습니다.",
    "Clipping by norm would need a second backward pass.": "노름 클리핑에는 역전파가 한 번 더 필요합니다.",
    "Its states are attributes of the optimizer and do not appear in state_dict().": "상태가 옵티마이저의 속성이라 state_dict()에 나타나지 않습니다.",
    "The weights themselves hold an interpolation; call the optimizer's eval() before evaluation and saving.":
        "가중치 자체가 보간값입니다. 평가와 저장 전에 옵티마이저의 eval()을 부르세요.",
    "The copy during the step appears once the variance is rectified, at step 5.": "스텝 중의 복사는 분산이 보정되는 5번째 스텝부터 나타납니다.",
    "Any text for kahan_sum in optim_args, even False, turns it on in the Trainer.":
        "optim_args의 kahan_sum은 False를 포함해 어떤 글자든 Trainer에서 켜집니다.",
    "States lie in host memory, in param_groups, not in the optimizer's state.": "상태는 옵티마이저의 state가 아니라 호스트 메모리의 param_groups에 있습니다.",
    "The first moment is fp32 even for 16-bit weights.": "1차 모멘트는 16비트 가중치에서도 fp32입니다.",
    "Every few steps a new basis is found with QR in fp32; its workspace inside the solver is not counted.":
        "몇 스텝마다 fp32 QR로 새 기저를 구합니다. 그 계산 안의 작업 공간은 세지 않았습니다.",
    "adamw_torch_xla needs torch_xla and an XLA device such as a TPU": "adamw_torch_xla에는 torch_xla와 TPU 같은 XLA 장치가 필요합니다",
    "adamw_torch_npu_fused needs torch_npu and an Ascend NPU": "adamw_torch_npu_fused에는 torch_npu와 Ascend NPU가 필요합니다",
    "adamw_anyprecision needs torchdistX, which is not on PyPI and no longer maintained":
        "adamw_anyprecision에는 torchdistX가 필요한데, PyPI에 없고 더는 관리되지 않습니다",
    "galore_adafactor_layerwise stops at once: the Trainer passes a learning rate, and Adafactor refuses one while relative_step is on, which the Trainer turns off only for galore_adafactor":
        "galore_adafactor_layerwise는 곧바로 멈춥니다. Trainer는 학습률을 넘기는데 Adafactor는 relative_step이 켜져 있으면 이를 거부하고, "
        "Trainer는 galore_adafactor에서만 그것을 끕니다",
}  # fmt: skip
