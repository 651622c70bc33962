"""What the types say of a value that they do not take (pydantic's words), with calc.link's "must be" for "Input should be"."""

_SHOULD = {
    "greater than {}": "{}보다 커야 합니다",
    "greater than or equal to {}": "{} 이상이어야 합니다",
    "less than {}": "{}보다 작아야 합니다",
    "less than or equal to {}": "{} 이하여야 합니다",
    "a finite number": "유한한 수여야 합니다",
    "a valid number": "수여야 합니다",
    "a valid number, unable to parse string as a number": "수여야 합니다",
    "a valid integer": "정수여야 합니다",
    "a valid integer, unable to parse string as an integer": "정수여야 합니다",
    "a valid integer, got a number with a fractional part": "정수여야 합니다",
    "a valid boolean": "true나 false여야 합니다",
    "a valid boolean, unable to interpret input": "true나 false여야 합니다",
    "a valid string": "글이어야 합니다",
    "{} or {}": "{} 또는 {}여야 합니다",
    "{}": "{}여야 합니다",
}
SENTENCES = {
    **{f"{start} {ask}": f"값은 {said}" for start in ("Input should be", "must be") for ask, said in _SHOULD.items()},
    "String should have at most {} characters": "글은 {}자까지입니다",
    "Dictionary should have at most {} items after validation, not {}": "항목은 {}개까지입니다({}개는 불가)",
    "Tuple should have at most {} items after validation, not {}": "항목은 {}개까지입니다({}개는 불가)",
    # calc/scenario.py, calc/link.py
    "name at least one layer to adapt, or use 'all-linear'": "바꿀 층을 하나 이상 적거나 'all-linear'를 쓰세요",
    "not JSON": "JSON이 아닙니다",
    "it is damaged": "손상되었습니다",
    "it is cut off, or too large": "잘렸거나 너무 큽니다",
    "it is no JSON object": "JSON 객체가 아닙니다",
    # calc/catalog/dtypes.py
    "Read by tensor cores only: fp32's range, fp16's precision.": "텐서 코어만 읽습니다. 범위는 fp32, 정밀도는 fp16과 같습니다.",
    "fp32's range, so no loss scaling; few digits.": "fp32와 같은 범위라 손실 스케일링이 필요 없지만 자릿수가 적습니다.",
    "Eight times finer than bf16, but overflows: needs loss scaling.": "bf16보다 8배 촘촘하지만 넘치기 쉬워 손실 스케일링이 필요합니다.",
    "Weights and activations; no infinity.": "가중치와 활성값에 씁니다. 무한대가 없습니다.",
    "Gradients.": "그래디언트에 씁니다.",
    "AMD MI300's own; half the range.": "AMD MI300의 형식이며 범위가 절반입니다.",
    # calc/planner/cost.py
    "tokens · FLOPs per token / (peak · utilisation · GPUs)": "토큰 · 토큰당 FLOP / (최대 성능 · 활용률 · GPU 수)",
}  # fmt: skip
