"""What calc says of the Hub and its repositories."""

from __future__ import annotations

from collections.abc import Mapping

from calc.hub import SENTENCES as FAILURES
from calc.hub import FailureCode

_CATALOGUE = "내장 카탈로그의 모델을 고르세요"

_FAILED: Mapping[FailureCode, str] = {
    "empty": "허브에 적힌 모델 id(예: Qwen/Qwen3-8B)를 입력하거나 링크를 붙여 넣으세요.",
    "not_an_id": "모델 id가 아닙니다. 허브에 적힌 대로(예: Qwen/Qwen3-8B) 입력하거나 모델 페이지의 링크를 붙여 넣으세요.",
    "access_token": "액세스 토큰이 들어 있습니다. 토큰 칸에만 넣고, 다른 사람이 보았을 수 있으면 https://huggingface.co/settings/tokens 에서 바꾸세요.",
    "config_text": "모델 id가 아니라 config.json의 내용입니다. 사용자 모델 양식에 붙여 넣으세요.",
    "local_path": "여기서는 읽을 수 없는 사용자 컴퓨터의 경로입니다. config.json의 내용을 붙여 넣으세요.",
    "other_site": "다른 사이트로 가는 링크입니다. https://huggingface.co/models 에서 모델을 찾아 그 링크를 붙여 넣으세요.",
    "not_a_model": "모델이 아니라 허브의 다른 페이지로 가는 링크입니다. 모델 페이지의 링크를 붙여 넣으세요.",
    "ollama_tag": "Ollama나 제공자의 태그이며, 그 양자화된 사본은 파인튜닝할 수 없습니다. 허브의 원본 모델 id(예: Qwen/Qwen3-8B)를 입력하세요.",
    "bad_revision": "리비전은 글자, 숫자, 점, 대시, 빗금으로 된 브랜치, 태그, 커밋입니다. 저장소의 파일 페이지에서 다시 복사하거나 비워 두세요.",
    "bad_token": "액세스 토큰은 hf_ 뒤에 글자와 숫자가 옵니다. https://huggingface.co/settings/tokens 에서 다시 복사하세요.",
    "invalid_token": "허브가 이 액세스 토큰을 받지 않습니다. https://huggingface.co/settings/tokens 에서 새로 만들거나, 공개 모델이면 칸을 비워 두세요.",
    "forbidden": "이 액세스 토큰으로는 {repository} 저장소를 읽을 수 없습니다. https://huggingface.co/settings/tokens 에서 권한을 주세요.",
    "gated": "{repository} 저장소는 접근이 제한되어 있습니다. https://huggingface.co/{repository} 에서 라이선스에 동의하고 그 계정의 액세스 토큰을 입력하세요.",
    "not_granted": "{repository} 저장소는 접근이 제한되어 있고 이 토큰의 계정은 목록에 없습니다. https://huggingface.co/{repository} 에서 요청하고 허가된 뒤 다시 해 보세요.",
    "not_found": "{repository} 저장소가 허브에 없거나 비공개입니다. 철자를 확인하거나, 읽을 수 있는 액세스 토큰을 입력하세요.",
    "not_found_with_token": "{repository} 저장소가 허브에 없거나, 비공개이고 이 토큰으로는 읽을 수 없습니다. 철자와 토큰의 권한을 확인하세요.",
    "disabled": "{repository} 저장소는 허브가 막아 읽을 수 없습니다. 다른 모델을 고르세요.",
    "no_revision": "{repository} 저장소에 {revision} 리비전이 없습니다. https://huggingface.co/{repository}/commits/main 의 브랜치, 태그, 커밋을 고르거나 리비전을 비워 두세요.",
    "no_config": "{repository} 저장소에 config.json이 없어 모양을 알 수 없습니다. 원본 모델을 입력하거나 사용자 모델 양식에 config.json을 붙여 넣으세요.",
    "no_model": "{repository} 저장소에 모델 파일이 없습니다. 가중치와 config.json이 있는 저장소를 입력하세요.",
    "gguf_only": "{repository} 저장소에는 학습이 아니라 실행을 위한 GGUF 파일만 있습니다. 원본 모델을 입력하세요.",
    "gguf_of": "{repository} 저장소에는 학습이 아니라 실행을 위한 GGUF 파일만 있습니다. 원본 모델 {base_model}을 입력하세요.",
    "adapter_without_base": "{repository} 저장소에는 어댑터만 있고 허브의 기반 모델이 적혀 있지 않습니다. 기반 모델의 id를 입력하세요.",
    "diffusers": "{repository}는 여기서 모델링하지 않는 이미지, 비디오 모델(diffusers)입니다. 언어 모델을 입력하세요.",
    "native_format": "{repository} 저장소에는 제작자 고유 형식의 가중치만 있고 config.json이 없습니다. 흔히 이름이 -hf로 끝나는 Transformers 형식을 입력하세요.",
    "not_json": "{repository} 저장소의 {file} 파일은 올바른 JSON이 아닙니다. 주인에게 알리거나, 고친 사본을 사용자 모델 양식에 붙여 넣으세요.",
    "bad_config": "{repository} 저장소의 {file} 파일은 모델을 나타내지 않습니다. 주인에게 알리거나, 원본 모델을 입력하세요.",
    "too_large": "{repository} 저장소의 {file} 파일이 어떤 모델에도 필요 없는 크기인 {limit}보다 큽니다. 다른 저장소를 입력하세요.",
    "no_safetensors": "{repository} 저장소에 safetensors 가중치가 없어 텐서를 나열할 수 없습니다. 있는 저장소를 입력하세요.",
    "too_many_shards": "{repository} 저장소의 가중치 파일이 {limit}개보다 많아 하나씩 물을 수 없습니다. 리비전을 비워 main 브랜치를 한 번에 읽으세요.",
    "bad_safetensors": "{repository} 저장소의 {file} 파일은 올바른 safetensors가 아닙니다. 주인에게 알리거나 다른 저장소를 입력하세요.",
    "search_too_short": "모델 이름을 두 글자 이상 입력하세요.",
    "rate_limited": f"이 서버에서 허브에 요청이 너무 많았습니다. 잠시 뒤({{wait}}) 다시 하거나, {_CATALOGUE}.",
    "timeout": f"허브가 제때 답하지 않았습니다. 다시 하거나, {_CATALOGUE}.",
    "interrupted": f"허브와의 연결이 끊겼습니다. 다시 하거나, {_CATALOGUE}.",
    "no_network": f"이 서버에서 허브에 닿을 수 없습니다. 네트워크를 확인하거나, {_CATALOGUE}.",
    "bad_certificate": f"이 서버에서 허브의 인증서를 확인할 수 없습니다. 운영자가 시계와 프록시를 확인해야 합니다. 그때까지 {_CATALOGUE}.",
    "server_error": f"허브가 답하지 못했습니다(HTTP {{status}}). 1분 뒤 다시 하거나, {_CATALOGUE}.",
    "not_a_hub": f"허브 자리에서 답하는 것이 허브가 아닙니다. 프록시의 로그인 페이지일 수 있습니다. 운영자가 HF_ENDPOINT와 네트워크를 확인해야 합니다. 그때까지 {_CATALOGUE}.",
    "strange_redirect": f"허브가 자기 것이 아닌 주소로 보내어 따라가지 않았습니다. 나중에 다시 하거나, {_CATALOGUE}.",
    "offline": f"이 서버는 오프라인으로 동작합니다(HF_HUB_OFFLINE). config.json을 붙여 넣거나, {_CATALOGUE}.",
    "busy": "지금 너무 많은 저장소를 읽고 있습니다. 몇 초 뒤 다시 해 보세요.",
    "unexpected": "허브의 답을 이해할 수 없습니다. 다시 하거나, 모델의 config.json을 사용자 모델 양식에 붙여 넣으세요.",
}  # fmt: skip

SENTENCES = {
    **{FAILURES[code]: korean for code, korean in _FAILED.items()},
    "{} is an adapter for {}, and {}": "{0}는 {1}의 어댑터인데, {2}",
    "{} holds only an adapter; this is its base, {}.": "{}에는 어댑터만 있습니다. 이것은 그 기반 모델인 {}입니다.",
    "{} is called {} now.": "{}의 지금 이름은 {}입니다.",
    "The link points into a folder of the repository; the config.json of its root was read.": "링크가 저장소 안의 폴더를 가리켜, 최상위의 config.json을 읽었습니다.",
    "The stored weights are quantised ({}); training all of them needs the unquantised model.":
        "저장된 가중치가 양자화되어 있습니다({}). 전체를 학습하려면 양자화되지 않은 모델이 필요합니다.",
    "The repository carries its own modelling code; it is never run here, only config.json is read.":
        "저장소에 자체 모델링 코드가 있습니다. 여기서는 절대 실행하지 않고 config.json만 읽습니다.",
    "The repository also holds an adapter; the weights it stores may be the adapter's alone.":
        "저장소에 어댑터도 있습니다. 저장된 가중치가 어댑터만의 것일 수 있습니다.",
    "{} holds a number that is not finite or beyond 64 bits; it is kept as text.": "{}에 유한하지 않거나 64비트를 넘는 수가 있어 글로 둡니다.",
    "{} states {} twice; the last value counts, as it does in Transformers.": "{}에 {}가 두 번 적혀 있어, Transformers처럼 마지막 값을 씁니다.",
}  # fmt: skip
