"""Words of the answer: components, instants, verdicts, certainty."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "component.weights": Text("Weights", "가중치"),
    "component.master weights": Text("Master weights", "마스터 가중치"),
    "component.adapters": Text("Adapters", "어댑터"),
    "component.gradients": Text("Gradients", "그래디언트"),
    "component.optimizer states": Text("Optimizer states", "옵티마이저 상태"),
    "component.activations": Text("Activations", "활성화"),
    "component.logits and loss": Text("Logits and loss", "로짓과 손실"),
    "component.temporaries": Text("Temporaries", "임시 버퍼"),
    "component.buffers": Text("Buffers", "버퍼"),
    "instant.load": Text("Load", "로드"),
    "instant.forward": Text("Forward", "순전파"),
    "instant.loss": Text("Loss", "손실"),
    "instant.backward": Text("Backward", "역전파"),
    "instant.end of backward": Text("End of backward", "역전파 끝"),
    "instant.optimizer step": Text("Optimizer step", "옵티마이저 스텝"),
    "instant.evaluation": Text("Evaluation", "평가"),
    "instant.save": Text("Save", "저장"),
    "instant.resume": Text("Resume", "재개"),
    "instant.the.load": Text("loading the model", "모델 로드"),
    "instant.the.forward": Text("the forward pass", "순전파"),
    "instant.the.loss": Text("the loss", "손실 계산"),
    "instant.the.backward": Text("the backward pass", "역전파"),
    "instant.the.end of backward": Text("the end of the backward pass", "역전파 끝"),
    "instant.the.optimizer step": Text("the optimizer step", "옵티마이저 스텝"),
    "instant.the.evaluation": Text("evaluation", "평가"),
    "instant.the.save": Text("saving", "저장"),
    "instant.the.resume": Text("resuming", "재개"),
    "verdict.fits": Text("Fits", "들어갑니다"),
    "verdict.tight": Text("Tight", "빠듯합니다"),
    "verdict.does_not_fit": Text("Does not fit", "들어가지 않습니다"),
    "verdict.impossible": Text("Cannot run", "실행할 수 없습니다"),
    "verdict.unknown": Text("No answer yet", "아직 답이 없습니다"),
    "verdict.sentence.fits": Text(
        "about {device} of the {capacity} on one {gpu}", "{gpu} 하나의 {capacity} 가운데 약 {device} 사용"
    ),
    "verdict.sentence.tight": Text(
        "at least {low} of the {capacity} on one {gpu}", "{gpu} 하나의 {capacity} 가운데 적어도 {low} 필요"
    ),
    "verdict.sentence.does_not_fit": Text(
        "about {device} for the {capacity} of one {gpu}", "{gpu} 하나의 {capacity}에 약 {device} 필요"
    ),
    "verdict.peak": Text("{instant} sets the peak.", "최대 메모리를 정하는 순간은 {instant}입니다."),
    "verdict.room": Text(
        "With a fragmented cache it can take up to {high}.", "캐시가 조각나면 {high}까지 쓸 수 있습니다."
    ),
    "verdict.fails": Text(
        "The run gets as far as {instant} and stops there with CUDA out of memory.",
        "실행은 {instant}까지 가서 CUDA 메모리 부족으로 멈춥니다.",
    ),
    "verdict.fails.first": Text(
        "It already stops at {instant} with CUDA out of memory.", "{instant}에서 이미 CUDA 메모리 부족으로 멈춥니다."
    ),
    "verdict.short": Text("{device} of {capacity}", "{capacity} 중 {device}"),
    "verdict.capacity.not looked up": Text(
        "Nobody has read this card's capacity from a driver; it follows from its name.",
        "이 카드의 용량은 드라이버에서 확인되지 않아 이름으로 추정했습니다.",
    ),
    "certainty.exact": Text("exact", "정확"),
    "certainty.modelled": Text("modelled", "모델링"),
    "certainty.allowance": Text("allowance", "여유분"),
}
