"""Words about the model's parameters, and about a model of which only those are known."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "parameters": Text("The model's parameters", "모델의 파라미터"),
    "parameters.help": Text(
        "Counted from config.json as the model's class makes them; tied tensors count once.",
        "모델 클래스가 만드는 대로 config.json에서 셉니다. 묶인(tied) 텐서는 한 번만 셉니다.",
    ),
    "parameters.what": Text("Parameters", "파라미터"),
    "parameters.number": Text("Number", "개수"),
    "parameters.exactly": Text("Exactly", "정확한 값"),
    "parameters.remark": Text("Remark", "참고"),
    "parameters.total": Text("All", "전체"),
    "parameters.active": Text("Used for one token", "토큰 하나에 쓰이는 것"),
    "parameters.active.of": Text("{chosen} of {held} experts a layer", "층마다 전문가 {held}개 중 {chosen}개"),
    "parameters.part.text": Text("Text model", "텍스트 모델"),
    "parameters.part.vision": Text("Vision tower", "비전 타워"),
    "parameters.part.audio": Text("Audio tower", "오디오 타워"),
    "parameters.part.projector": Text("Projector", "프로젝터"),
    "parameters.embedding": Text("Embeddings", "임베딩"),
    "parameters.head": Text("Head", "헤드"),
    "parameters.tied": Text("tied to the embeddings", "임베딩과 묶임"),
    "parameters.stored": Text("Stored on the Hub", "허브에 저장된 원소"),
    "parameters.same": Text("the same", "같음"),
    "parameters.explained": Text("{difference}, explained below", "{difference}, 아래에 설명"),
    "parameters.unexplained": Text(
        "{difference}, for a reason that is not known here", "{difference}, 이유는 알려지지 않았습니다"
    ),
    "parameters.source": Text("Counted after: {source}", "기준: {source}"),
    "parameters.notes": Text("Notes on the config.json ({number})", "config.json 참고 사항 ({number})"),
    "parameters.unsized": Text("an unknown size", "알 수 없는 크기"),
    "parameters.quantized": Text(
        "The repository stores its weights in {method}: {size}. {adapters} Full fine-tuning is not possible: {advice}.",
        "저장소의 가중치는 {method} 형식입니다: {size}. {adapters} 전체 파인튜닝은 할 수 없습니다: {advice}.",
    ),
    "parameters.adapters": Text(
        "Adapters can be trained on them as they are.", "그대로 두고 어댑터를 학습할 수 있습니다."
    ),
    "parameters.no-adapters": Text(
        "Not even adapters can be trained on them.", "어댑터도 그대로는 학습할 수 없습니다."
    ),
    "custom": Text("Or give its sizes", "또는 크기를 직접 입력"),
    "custom.help": Text(
        "For a model that exists nowhere yet, built like Llama: RMS norms, rotary positions, a gated feed-forward, no biases.",
        "아직 없는 모델을 위한 것입니다. Llama와 같은 구조: RMS 정규화, 회전 위치, 게이트 피드포워드, 바이어스 없음.",
    ),
    "custom.num_hidden_layers": Text("Layers", "층"),
    "custom.hidden_size": Text("Hidden width", "은닉 너비"),
    "custom.intermediate_size": Text("Feed-forward width", "피드포워드 너비"),
    "custom.num_attention_heads": Text("Heads", "헤드"),
    "custom.num_key_value_heads": Text("Key and value heads", "키·값 헤드"),
    "custom.head_dim": Text("Head width", "헤드 너비"),
    "custom.vocab_size": Text("Vocabulary", "어휘 크기"),
    "custom.derived": Text("width / heads", "너비 / 헤드"),
    "custom.tied": Text("Head tied to the embeddings", "헤드를 임베딩과 묶기"),
    "custom.use": Text("Use this model", "이 모델 사용"),
    "floor.known": Text("Known so far", "알려진 부분"),
    "floor.known.help": Text(
        "Weights, adapters, gradients, optimizer states and the batch, which are exact. What the run takes beyond them is not known.",
        "정확히 아는 가중치, 어댑터, 그래디언트, 옵티마이저 상태, 배치. 실행이 그 밖에 쓰는 양은 알 수 없습니다.",
    ),
    "floor.left": Text("{size} left for the rest", "나머지에 {size} 남음"),
    "floor.sentence.unknown": Text(
        "at least {known} of the {capacity} on one {gpu}; the activations are not modelled for this type",
        "{gpu} 하나의 {capacity} 가운데 적어도 {known}. 이 유형의 활성화는 모델링되지 않았습니다",
    ),
    "floor.sentence.does_not_fit": Text(
        "at least {known} for the {capacity} of one {gpu}, activations not counted",
        "{gpu} 하나의 {capacity}에 적어도 {known} 필요 (활성화 제외)",
    ),
    "floor.missing": Text(
        "**Not known for this type:** activations, logits and the loss, scratch in the forward and backward pass, the model's own buffers, "
        "and what the allocator and CUDA hold beside them. Everything below is exact.",
        "**이 유형에서 알 수 없는 것:** 활성화, 로짓과 손실, 순전파와 역전파의 임시 버퍼, 모델 자체의 버퍼, "
        "그리고 할당자와 CUDA가 따로 갖는 양. 아래의 값은 모두 정확합니다.",
    ),
    "floor.likely": Text(
        "**Probably about {expected}** at the peak ({low} – {high}): an estimate from {count} known architectures built with this model's sizes, "
        "of which {nearest} is nearest. It is no count, and the real run may lie outside.",
        "정점에서 **아마 약 {expected}** ({low} – {high}): 이 모델의 크기로 만든 알려진 구조 {count}개로 어림한 값이며 가장 가까운 것은 {nearest}입니다. "
        "세어 낸 값이 아니므로 실제 실행은 이 범위를 벗어날 수 있습니다.",
    ),
    "floor.likely.help": Text(
        "Exact weights, gradients and states, with the activations, logits and scratch of {compared}. Tried on every modelled family as if it "
        "were unknown, half of the estimates are within 2 % and nine of ten within a third; three of four real peaks lie in the range.",
        "정확한 가중치, 그래디언트, 상태에 {compared}의 활성화, 로짓, 임시 버퍼를 더했습니다. 모델링된 모든 계열을 모르는 것처럼 어림해 보면 "
        "절반은 2 % 안, 열에 아홉은 3분의 1 안이고, 실제 정점의 4분의 3이 이 범위에 듭니다.",
    ),
    "floor.lines": Text("Every line that is known", "알려진 모든 항목"),
}
