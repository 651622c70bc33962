"""Words of the frame: navigation, link, downloads, model picker."""

from __future__ import annotations

from pages.parts.texts.row import Text

TEXTS = {
    "title": Text("Plimsoll: will this fine-tune fit?", "Plimsoll: 이 파인튜닝이 들어갈까요?"),
    "tagline": Text("The load line for LLM fine-tuning", "LLM 파인튜닝의 만재흘수선"),
    "nav.fit": Text("Fit", "적재"),
    "nav.optimizers": Text("Optimizers", "옵티마이저"),
    "nav.batch": Text("Batch and sequence", "배치와 시퀀스"),
    "nav.compare": Text("Compare", "비교"),
    "language.other": Text("한국어", "English"),
    "scenario": Text("Scenario", "시나리오"),
    "examples": Text("Examples", "예시"),
    "example.full-9b-one-card": Text("Gemma 2 9B, full, one A100 80 GB", "Gemma 2 9B 전체 학습, A100 80 GB 하나"),
    "example.qlora-8b-24gb": Text("Llama 3.1 8B, QLoRA, one RTX 4090", "Llama 3.1 8B QLoRA, RTX 4090 하나"),
    "example.lora-7b-40gb": Text("Mistral 7B, LoRA, one A100 40 GB", "Mistral 7B LoRA, A100 40 GB 하나"),
    "example.full-gemma-2b-fp32": Text("Gemma 2B, full in fp32, one A100", "Gemma 2B fp32 전체 학습, A100 하나"),
    "theme": Text("Light or dark", "밝게 또는 어둡게"),
    "link.copy": Text("Copy link", "링크 복사"),
    "link.copied": Text("Copied", "복사됨"),
    "link.manual": Text("Copy this by hand:", "직접 복사하세요:"),
    "link.notes": Text("Some of this link could not be used", "링크의 일부를 사용할 수 없었습니다"),
    "link.without-model": Text("The link cannot carry the model:", "링크에 모델을 담을 수 없습니다:"),
    "download": Text("Download", "내려받기"),
    "download.csv": Text("CSV", "CSV"),
    "download.json": Text("JSON", "JSON"),
    "download.markdown": Text("Markdown", "Markdown"),
    "more": Text("Kernels, framework, accumulation", "커널, 프레임워크, 누적"),
    "adapter": Text("Adapter details", "어댑터 세부 설정"),
    "quantization": Text("How the base is stored", "기본 모델 저장 방식"),
    "exact": Text("{label}, exact", "{label}, 직접 입력"),
    "model.placeholder": Text("Type a name or paste a Hub address", "이름을 입력하거나 허브 주소를 붙여넣기"),
    "model.other": Text("Hub, config.json, token", "허브, config.json, 토큰"),
    "model.search": Text("Search the Hub", "허브 검색"),
    "model.search.none": Text("The Hub knows no model by that name.", "허브에 그런 이름의 모델이 없습니다."),
    "model.paste": Text("Paste a config.json", "config.json 붙여넣기"),
    "model.upload": Text("or upload it", "또는 파일 올리기"),
    "model.use": Text("Use this config.json", "이 config.json 사용"),
    "model.pasted": Text("config.json", "config.json"),
    "model.token": Text("Your Hub token, for gated models", "접근 제한 모델을 위한 허브 토큰"),
    "model.token.note": Text(
        "It stays in this visit's memory: never in the link, a cache or a log, and gone when you leave.",
        "이 방문 동안 메모리에만 있습니다. 링크, 캐시, 로그에 남지 않고 떠나면 사라집니다.",
    ),
    "model.retry": Text("Try again", "다시 시도"),
    "model.near": Text("Did you mean", "혹시 이 모델인가요"),
    "model.asking": Text("Asking the Hub…", "허브에 묻는 중…"),
    "model.from-hub": Text("From the Hub, commit {commit}.", "허브에서 읽음, 커밋 {commit}."),
    "config.too-large": Text(
        "This file has {size}; a config.json of a model has at most {limit}. Is it the right file?",
        "이 파일은 {size}입니다. 모델의 config.json은 {limit}를 넘지 않습니다. 맞는 파일인가요?",
    ),
    "config.not-json": Text(
        "This is not JSON (line {line}): paste the whole config.json, from {{ to }}.",
        "JSON이 아닙니다 ({line}번째 줄): config.json 전체를 {{ 부터 }} 까지 붙여넣으세요.",
    ),
    "config.not-object": Text(
        "This is JSON but not a config.json, which is an object from {{ to }}.",
        "JSON이지만 config.json이 아닙니다. config.json은 {{ 부터 }} 까지의 객체입니다.",
    ),
}
