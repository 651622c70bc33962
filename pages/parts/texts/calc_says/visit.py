"""What calc says of a link and of pasted lengths."""

SENTENCES = {
    # calc/link.py
    "this link says version '{}'; it is read as version {}": "이 링크의 버전은 '{}'입니다. 버전 {}로 읽습니다",
    "'{}' is no part of a scenario and was left out": "'{}'는 시나리오의 항목이 아니라서 뺐습니다",
    "the config.json in this link cannot be read ({})": "이 링크의 config.json을 읽을 수 없습니다({})",
    "this link names no model; {} is shown": "이 링크에 모델이 없어 {}를 보입니다",
    "{}={} was left out: {}": "{}={} 값은 뺐습니다: {}",
    "this link has {} characters; only the first {} were read": "이 링크는 {}자입니다. 처음 {}자만 읽었습니다",
    "this link has more than {} parts; none was read": "이 링크의 항목이 {}개보다 많아 아무것도 읽지 않았습니다",
    "'{}' is given more than once; the last is used": "'{}'가 여러 번 적혀 있어 마지막 것을 씁니다",
    "not used by method {}": "{} 방법에는 쓰이지 않습니다",
    # calc/planner/lengths.py
    "no length in it: paste whole numbers, one for each sample": "길이가 없습니다. 샘플마다 정수 하나씩 붙여 넣으세요",
    "{} lengths; at most {} are read": "길이가 {}개입니다. 최대 {}개까지 읽습니다",
    "'{}' is no whole number": "'{}'는 정수가 아닙니다",
    "{} is no length: from 1 to {} tokens": "{}는 길이가 아닙니다. 1에서 {} 토큰까지입니다",
    "line {} is not JSON": "{}번째 줄은 JSON이 아닙니다",
    "line {} has neither 'length' nor 'input_ids'": "{}번째 줄에 'length'도 'input_ids'도 없습니다",
}  # fmt: skip
