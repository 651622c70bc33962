"""The models with eyes that are measured, and the plans: tiny ones whose dimensions all differ, four tower layers and two text layers."""

from __future__ import annotations

import itertools
from typing import Any

from models import Model

TEXT = {
    "vocab_size": 1096,
    "hidden_size": 240,
    "intermediate_size": 616,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}
GLM_TOWER = {
    "depth": 4,
    "hidden_size": 96,
    "intermediate_size": 424,
    "num_heads": 4,
    "out_hidden_size": 240,
    "patch_size": 14,
    "image_size": 112,
}
GLM_TOKENS = {
    "video_token_id": 4,
    "image_start_token_id": 5,
    "image_end_token_id": 6,
    "video_start_token_id": 7,
    "video_end_token_id": 8,
}
TOWER = {"hidden_size": 96, "intermediate_size": 200, "num_hidden_layers": 4, "num_attention_heads": 4}


def seeing(name: str, config: str, text: dict[str, Any], vision: dict[str, Any], **more: Any) -> Model:
    """A tiny model with a vision tower."""
    given = {"text_config": TEXT | text, "vision_config": vision, "image_token_id": 3} | more
    return Model(f"{name}@2", config, given, kind="vision")


MODELS = {
    model.name: model
    for model in (
        seeing(
            "llava",
            "LlavaConfig",
            {"model_type": "llama"},
            TOWER | {"model_type": "clip_vision_model", "image_size": 56, "patch_size": 14},
        ),
        seeing(
            "gemma3-vision",
            "Gemma3Config",
            {"head_dim": 40, "sliding_window": 1024},
            TOWER | {"image_size": 112, "patch_size": 14},
            mm_tokens_per_image=16,
        ),
        seeing(
            "mistral3",
            "Mistral3Config",
            {"model_type": "mistral", "head_dim": 40, "sliding_window": None},
            TOWER | {"model_type": "pixtral", "image_size": 224, "patch_size": 14, "head_dim": 24},
        ),
        seeing(
            "qwen2_5_vl",
            "Qwen2_5_VLConfig",
            {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 8, 8]}},
            {
                "depth": 4,
                "hidden_size": 96,
                "intermediate_size": 200,
                "num_heads": 4,
                "out_hidden_size": 240,
                "patch_size": 14,
                "window_size": 56,
                "fullatt_block_indexes": [1, 3],
            },
            video_token_id=4,
            vision_start_token_id=5,
            vision_end_token_id=6,
        ),
        seeing(
            "paligemma",
            "PaliGemmaConfig",
            {"model_type": "gemma", "head_dim": 40},
            TOWER | {"model_type": "siglip_vision_model", "image_size": 56, "patch_size": 14, "vision_use_head": False},
            projection_dim=240,
        ),
        seeing(
            "internvl",
            "InternVLConfig",
            {"model_type": "qwen2"},
            TOWER | {"model_type": "internvl_vision", "image_size": [56, 56], "patch_size": [14, 14]},
        ),
        seeing(
            "qwen3_vl",
            "Qwen3VLConfig",
            {
                "num_hidden_layers": 3,
                "head_dim": 40,
                "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 8, 8]},
            },
            {
                "depth": 4,
                "hidden_size": 96,
                "intermediate_size": 200,
                "num_heads": 4,
                "out_hidden_size": 240,
                "patch_size": 14,
                "num_position_embeddings": 64,
                "deepstack_visual_indexes": [0, 2],
            },
            video_token_id=4,
            vision_start_token_id=5,
            vision_end_token_id=6,
        ),
        seeing(
            "qwen2_vl",
            "Qwen2VLConfig",
            {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 8, 8]}},
            {"depth": 4, "embed_dim": 96, "hidden_size": 240, "mlp_ratio": 2, "num_heads": 4, "patch_size": 14},
            video_token_id=4,
            vision_start_token_id=5,
            vision_end_token_id=6,
        ),
        seeing(
            "glm4v",
            "Glm4vConfig",
            {
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 1e4,
                    "partial_rotary_factor": 0.5,
                    "mrope_section": [2, 4, 4],
                }
            },
            GLM_TOWER,
            **GLM_TOKENS,
        ),
        seeing(
            "glm46v",
            "Glm46VConfig",
            {
                "model_type": "glm4v_text",
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 1e4,
                    "partial_rotary_factor": 0.5,
                    "mrope_section": [2, 4, 4],
                },
            },
            GLM_TOWER | {"attention_bias": True},
            **GLM_TOKENS,
        ),
        seeing(
            "glm4v_moe",
            "Glm4vMoeConfig",
            {
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 1e4,
                    "partial_rotary_factor": 0.5,
                    "mrope_section": [2, 4, 4],
                },
                "n_routed_experts": 8,
                "num_experts_per_tok": 3,
                "moe_intermediate_size": 424,
                "first_k_dense_replace": 1,
            },
            GLM_TOWER,
            **GLM_TOKENS,
        ),
        seeing(
            "smolvlm",
            "SmolVLMConfig",
            {"model_type": "llama"},
            TOWER | {"image_size": 56, "patch_size": 14},
            scale_factor=2,
        ),
        seeing(
            "idefics3",
            "Idefics3Config",
            {"model_type": "llama"},
            TOWER | {"image_size": 56, "patch_size": 14},
            scale_factor=2,
            tie_word_embeddings=True,
        ),
        seeing(
            "llama4",
            "Llama4Config",
            {
                "head_dim": 40,
                "intermediate_size_mlp": 424,
                "num_local_experts": 8,
                "num_experts_per_tok": 1,
                "interleave_moe_layer_step": 2,
            },
            TOWER
            | {"image_size": 56, "patch_size": 14, "intermediate_size": 384}
            | dict.fromkeys(("projector_input_dim", "projector_output_dim", "vision_output_dim"), 136),
        ),
    )
}

SIZES = {
    "gemma3-vision": (112, 112),
    "internvl": (56, 112),
    "llama4": (56, 112),
    "smolvlm": (56, 224),
    "idefics3": (56, 224),
    "glm4v": (84, 112),
    "glm46v": (84, 112),
    "glm4v_moe": (84, 112),
}
"""Pixels of the images, height and width; the others see what they are given."""
ALL_LINEAR = {"method": "lora", "lora": {"rank": 24, "target_modules": "all-linear"}}
BUT_THE_ROUTER = [
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "fc1",
    "fc2",
    "linear",
    "linear_1",
]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj", "qkv"]
NAMED = {
    name: {"method": "lora", "lora": {"rank": 24, "target_modules": layers}}
    for name, layers in (("llama4@2", BUT_THE_ROUTER), ("glm4v_moe@2", ATTENTION))
}
"""Adapters of the models for which PEFT cannot adapt every linear layer, or adapts a convolution with them."""


def case(
    model: str, *, length: int = 56, batch: int = 2, count: int = 1, frozen: str = "", **plan: Any
) -> dict[str, Any]:
    """A plan with images: how many a sequence has, and the initials of the parts that are frozen (t, v, p)."""
    height, width = SIZES.get(model.removesuffix("@2"), (56, 56))
    images = {"per_sequence": count, "height": height, "width": width}
    images |= {f"train_{part}": False for part in ("text", "vision", "projector") if part[0] in frozen}
    return {
        "model": model,
        "plan": {
            "method": "full",
            "precision": "bf16",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": batch,
            "seq_len": length,
            "gradient_checkpointing": "none",
            "attention": "sdpa",
            "images": images,
        }
        | plan,
    }


def cases(model: str) -> list[dict[str, Any]]:
    """The config of a model, and what is measured of it."""
    return [
        {"model": model},
        case(model, count=0),
        case(model, batch=1),
        case(model, count=2, length=120),
        case(model, padded=True),
        case(model, precision="fp32"),
        *(
            case(model, frozen=frozen, precision=precision, gradient_checkpointing=checkpointing)
            for checkpointing in ("none", "full")
            for precision in ("bf16", "bf16-mixed")
            for frozen in ("", "v", "tv", "vp")
        ),
        *(
            case(model, frozen=frozen, attention="eager", precision=precision)
            for precision in ("bf16", "bf16-mixed")
            for frozen in ("", "v")
        ),
        *(
            case(
                model,
                frozen=frozen,
                precision=precision,
                gradient_checkpointing=checkpointing,
                **NAMED.get(model, ALL_LINEAR),
            )
            for checkpointing in ("none", "full")
            for precision in ("bf16", "bf16-autocast")
            for frozen in ("", "vp")
        ),
    ]


CASES = tuple(itertools.chain.from_iterable(cases(model) for model in MODELS))
