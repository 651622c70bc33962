"""Model types of transformers 5.24.0 whose parameters cannot be counted from config.json, and what is missing for each.

The Hub's list of stored tensors (`calc.hub.safetensors_shapes`) tells the parameters of a repository of any type, these included.
"""

from __future__ import annotations

from collections.abc import Mapping

_GROUPS: Mapping[str, str] = {
    "a table of its parameters: the sizes of some follow no formula of config.json": (
        "dory dots3_note dots3_note_text emu3 gemma4_unified gemma4_unified_assistant glm5_next inkling2 inkling2_loop "
        "inkling2_loop_text inkling2_text inkling_mm_model inkling_text mistral_large4 molmo2 nllb-moe omniasr pi0 unlimited_ocr "
        "apertus1p5"
    ),
    "a choice of parts: it is put together from two models of any type": (
        "apertus1p5_text encoder-decoder vision-encoder-decoder musicflamingo nemo_speechlm nemotron_h_omni vibevoice_asr exaone4_5"
    ),
    "the parameters of its vision tower, which timm builds": "fast_vlm gemma3n perception_lm",
    "a recording to check a table against: a config of nothing but its type makes no model": (
        "chameleon cohere_compass cohere_compass_text deepseek_ocr2 diffusion_gemma esm evolla gemma4_assistant granite4_vision "
        "hunyuan_vl musicgen musicgen_melody perceiver pp_formulanet qwen4_exp qwen4_exp_text reformer"
    ),
}

UNSUPPORTED: Mapping[str, str] = {
    model_type: missing for missing, types in _GROUPS.items() for model_type in types.split()
}
"""What is missing, by model_type."""
