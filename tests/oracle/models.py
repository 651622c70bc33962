"""The models that are measured: a row is a name, the family's config class in transformers, and what it is told.

Two kinds: small ones whose dimensions are all different, so that every saved tensor names itself (`tiny`), and layers of
published models at their real width (`real`). A name ends in @L, the number of layers.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """One row: config class and arguments."""

    name: str
    config: str
    given: dict[str, Any]
    attention: tuple[str, ...] = ("sdpa", "eager")
    """Attention implementations that the class supports."""
    kind: str = "tiny"
    symbols: dict[str, int] = dataclasses.field(default_factory=dict)
    """What the dimensions are called in formulas (tiny models)."""
    auto: str = "AutoModelForCausalLM"
    """transformers' class that picks the model's class, so which head it has."""

    @property
    def family(self) -> str:
        return self.config.removesuffix("Config")


BOTH, EAGER = ("sdpa", "eager"), ("eager",)
V, L = 1096, 2
FREE = {"h": 360, "i": 616, "H": 6, "K": 2, "D": 40, "V": V}
"""q = H·D is not h: for families whose head width is its own field."""
SQUARE = FREE | {"h": 240}
"""q = h: for families that derive the head width."""
ALIKE = SQUARE | {"K": 6}
"""As many key heads as query heads."""
TOKENS = {"vocab_size": V, "num_hidden_layers": L, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def llama_like(
    name: str, config: str, dims: dict[str, int] = FREE, attention: tuple[str, ...] = BOTH, **more: Any
) -> Model:
    """A tiny model of a family that takes Llama's field names."""
    head = {"head_dim": dims["D"]} if dims["H"] * dims["D"] != dims["h"] else {}
    given = (
        TOKENS
        | {
            "hidden_size": dims["h"],
            "intermediate_size": dims["i"],
            "num_attention_heads": dims["H"],
            "num_key_value_heads": dims["K"],
        }
        | head
    )
    symbols = dims | {
        symbol: more[field]
        for symbol, field in (
            ("E", "num_local_experts"),
            ("E", "num_experts"),
            ("E", "n_routed_experts"),
            ("k", "num_experts_per_tok"),
            ("m", "moe_intermediate_size"),
            ("s", "shared_expert_intermediate_size"),
        )
        if field in more
    }
    return Model(f"{name}@{more.get('num_hidden_layers', L)}", config, given | more, attention, "tiny", symbols)


def other(name: str, config: str, dims: dict[str, int], attention: tuple[str, ...] = BOTH, **given: Any) -> Model:
    """A tiny model of a family with field names of its own."""
    return Model(f"{name}@{L}", config, given, attention, "tiny", dims)


NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
LATENT_HEADS = {"kv_lora_rank": 72, "qk_rope_head_dim": 16, "qk_nope_head_dim": 24, "v_head_dim": 32}
LATENT = LATENT_HEADS | {
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 424,
    "first_k_dense_replace": 1,
}

TINY = (
    llama_like("llama", "LlamaConfig"),
    llama_like("llama-tied", "LlamaConfig", tie_word_embeddings=True),
    llama_like("llama-bias", "LlamaConfig", attention_bias=True, mlp_bias=True),
    llama_like("mistral", "MistralConfig", sliding_window=None),
    llama_like("mistral-window", "MistralConfig", sliding_window=16),
    llama_like("qwen2", "Qwen2Config", SQUARE),
    llama_like("qwen3", "Qwen3Config"),
    llama_like("gemma", "GemmaConfig"),
    llama_like("gemma2", "Gemma2Config", attention=EAGER, query_pre_attn_scalar=40),
    llama_like("gemma3", "Gemma3TextConfig"),
    llama_like("phi3", "Phi3Config", SQUARE),
    llama_like("smollm3", "SmolLM3Config", SQUARE, num_hidden_layers=4),
    llama_like("granite", "GraniteConfig", SQUARE),
    llama_like("olmo", "OlmoConfig", SQUARE),
    llama_like("olmo2", "Olmo2Config", SQUARE),
    llama_like("olmo3", "Olmo3Config", SQUARE),
    llama_like("stablelm", "StableLmConfig", SQUARE),
    llama_like("cohere", "CohereConfig", SQUARE),
    llama_like("cohere2", "Cohere2Config", SQUARE),
    llama_like(
        "starcoder2", "Starcoder2Config", SQUARE, residual_dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0
    ),
    llama_like("glm", "GlmConfig", head_dim=40),
    llama_like("glm4", "Glm4Config"),
    llama_like("phi", "PhiConfig", SQUARE, resid_pdrop=0.0),
    llama_like("nemotron", "NemotronConfig", head_dim=40),
    llama_like("exaone4", "Exaone4Config", SQUARE, sliding_window=16, sliding_window_pattern=2),
    llama_like("ernie4_5", "Ernie4_5Config"),
    llama_like("helium", "HeliumConfig", SQUARE, head_dim=40),
    llama_like("apertus", "ApertusConfig", SQUARE),
    llama_like("seed_oss", "SeedOssConfig"),
    llama_like("arcee", "ArceeConfig"),
    llama_like("hunyuan", "HunYuanDenseV1Config", head_dim=40),
    llama_like("ministral", "MinistralConfig", head_dim=40),
    llama_like("bitnet", "BitNetConfig", SQUARE),
    llama_like("persimmon", "PersimmonConfig", ALIKE),
    other("gpt_neox", "GPTNeoXConfig", ALIKE, **TOKENS, hidden_size=240, intermediate_size=616, num_attention_heads=6),
    other("gpt2-plain", "GPT2Config", ALIKE, vocab_size=V, n_embd=240, n_inner=616, n_layer=L, n_head=6, **NO_DROPOUT),
    other("gpt2-dropout", "GPT2Config", ALIKE, vocab_size=V, n_embd=240, n_inner=616, n_layer=L, n_head=6),
    other("gptj", "GPTJConfig", ALIKE, vocab_size=V, n_embd=240, n_inner=616, n_layer=L, n_head=6, rotary_dim=16),
    other(
        "codegen",
        "CodeGenConfig",
        ALIKE | {"h": 256, "H": 8, "K": 8, "D": 32},
        vocab_size=V,
        n_embd=256,
        n_inner=616,
        n_layer=L,
        n_head=8,
        rotary_dim=16,
    ),
    other(
        "gpt_bigcode",
        "GPTBigCodeConfig",
        ALIKE,
        vocab_size=V,
        n_embd=240,
        n_inner=616,
        n_layer=L,
        n_head=6,
        **NO_DROPOUT,
    ),
    other(
        "gpt_neo",
        "GPTNeoConfig",
        ALIKE,
        EAGER,
        vocab_size=V,
        hidden_size=240,
        intermediate_size=616,
        num_layers=L,
        num_heads=6,
        attention_types=[[["global", "local"], 1]],
    ),
    other(
        "opt-dropout",
        "OPTConfig",
        ALIKE,
        **TOKENS,
        hidden_size=240,
        ffn_dim=616,
        num_attention_heads=6,
        word_embed_proj_dim=240,
    ),
    other(
        "opt-projected",
        "OPTConfig",
        ALIKE,
        **TOKENS,
        hidden_size=240,
        ffn_dim=616,
        num_attention_heads=6,
        word_embed_proj_dim=120,
        do_layer_norm_before=False,
        dropout=0.0,
    ),
    other("bloom", "BloomConfig", ALIKE | {"i": 960}, EAGER, vocab_size=V, hidden_size=240, n_layer=L, n_head=6),
    other("mpt", "MptConfig", ALIKE | {"i": 960}, EAGER, vocab_size=V, d_model=240, n_layers=L, n_heads=6),
    other(
        "falcon",
        "FalconConfig",
        ALIKE | {"i": 960, "K": 1},
        **TOKENS,
        hidden_size=240,
        num_attention_heads=6,
        alibi=False,
    ),
    other(
        "falcon-new",
        "FalconConfig",
        ALIKE | {"i": 960, "K": 2},
        **TOKENS,
        hidden_size=240,
        num_attention_heads=6,
        alibi=False,
        new_decoder_architecture=True,
        num_kv_heads=2,
    ),
    llama_like("mixtral", "MixtralConfig", num_local_experts=8, num_experts_per_tok=3),
    llama_like(
        "qwen2_moe",
        "Qwen2MoeConfig",
        SQUARE,
        num_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=424,
        shared_expert_intermediate_size=776,
    ),
    llama_like("qwen3_moe", "Qwen3MoeConfig", num_experts=8, num_experts_per_tok=3, moe_intermediate_size=424),
    llama_like("olmoe", "OlmoeConfig", SQUARE, num_experts=8, num_experts_per_tok=3),
    llama_like("phimoe", "PhimoeConfig", SQUARE, num_local_experts=8, num_experts_per_tok=2),
    llama_like("granitemoe", "GraniteMoeConfig", SQUARE, num_local_experts=8, num_experts_per_tok=3),
    llama_like("gpt_oss", "GptOssConfig", attention=EAGER, num_local_experts=8, num_experts_per_tok=3),
    llama_like(
        "glm4_moe",
        "Glm4MoeConfig",
        head_dim=40,
        n_routed_experts=8,
        n_shared_experts=1,
        num_experts_per_tok=3,
        moe_intermediate_size=424,
        first_k_dense_replace=1,
    ),
    llama_like("ernie4_5_moe", "Ernie4_5_MoeConfig", SQUARE, moe_num_experts=8, moe_k=3, moe_intermediate_size=424),
    llama_like("deepseek_v2", "DeepseekV2Config", ALIKE, **LATENT, q_lora_rank=None),
    llama_like("deepseek_v3", "DeepseekV3Config", ALIKE, **LATENT, q_lora_rank=104, n_group=2, topk_group=1),
    llama_like(
        "llama4",
        "Llama4TextConfig",
        head_dim=40,
        intermediate_size_mlp=424,
        num_local_experts=8,
        num_experts_per_tok=1,
        interleave_moe_layer_step=2,
    ),
)


def real(
    name: str, config: str, layers: int = 2, attention: tuple[str, ...] = BOTH, **given: Any
) -> tuple[Model, Model]:
    """A published model: some of its layers, and all of them."""
    count = next((field for field in ("n_layer", "num_layers", "n_layers") if field in given), "num_hidden_layers")
    whole = given[count]
    return (
        Model(f"{name}@{layers}", config, given | {count: layers}, attention, "real"),
        Model(f"{name}@{whole}", config, given, attention, "whole"),
    )


def shape(vocab: int, h: int, i: int, layers: int, heads: int, kv: int, **more: Any) -> dict[str, Any]:
    """Llama's fields, in the order in which people quote them."""
    return {
        "vocab_size": vocab,
        "hidden_size": h,
        "intermediate_size": i,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
    } | more


UNTIED, TIED = {"tie_word_embeddings": False}, {"tie_word_embeddings": True}

REAL = tuple(
    model
    for pair in (
        real("llama-2-7b", "LlamaConfig", **shape(32000, 4096, 11008, 32, 32, 32, **UNTIED)),
        real("llama-3-8b", "LlamaConfig", **shape(128256, 4096, 14336, 32, 32, 8, **UNTIED)),
        real("llama-3.2-1b", "LlamaConfig", **shape(128256, 2048, 8192, 16, 32, 8, head_dim=64, **TIED)),
        real("tinyllama-1.1b", "LlamaConfig", **shape(32000, 2048, 5632, 22, 32, 4, **UNTIED)),
        real("mistral-7b", "MistralConfig", **shape(32000, 4096, 14336, 32, 32, 8, sliding_window=4096, **UNTIED)),
        real("qwen2.5-0.5b", "Qwen2Config", **shape(151936, 896, 4864, 24, 14, 2, **TIED)),
        real("qwen2.5-3b", "Qwen2Config", **shape(151936, 2048, 11008, 36, 16, 2, **TIED)),
        real("qwen2.5-7b", "Qwen2Config", **shape(152064, 3584, 18944, 28, 28, 4, **UNTIED)),
        real("qwen3-0.6b", "Qwen3Config", **shape(151936, 1024, 3072, 28, 16, 8, head_dim=128, **TIED)),
        real("qwen3-8b", "Qwen3Config", **shape(151936, 4096, 12288, 36, 32, 8, head_dim=128, **UNTIED)),
        real("gemma-2b", "GemmaConfig", **shape(256000, 2048, 16384, 18, 8, 1, head_dim=256)),
        real("gemma-2-2b", "Gemma2Config", attention=EAGER, **shape(256000, 2304, 9216, 26, 8, 4, head_dim=256)),
        real("gemma-3-1b", "Gemma3TextConfig", layers=7, **shape(262144, 1152, 6912, 26, 4, 1, head_dim=256)),
        real("phi-2", "PhiConfig", **shape(51200, 2560, 10240, 32, 32, 32, **UNTIED)),
        real("phi-3-mini", "Phi3Config", **shape(32064, 3072, 8192, 32, 32, 32, pad_token_id=0, **UNTIED)),
        real("smollm3-3b", "SmolLM3Config", layers=5, **shape(128256, 2048, 11008, 36, 16, 4, pad_token_id=0, **TIED)),
        real("granite-3-8b", "GraniteConfig", **shape(49155, 4096, 12800, 40, 32, 8, **TIED)),
        real("olmo-2-7b", "Olmo2Config", **shape(100352, 4096, 11008, 32, 32, 32, **UNTIED)),
        real("stablelm-2-1.6b", "StableLmConfig", **shape(100352, 2048, 5632, 24, 32, 32, use_qkv_bias=True, **UNTIED)),
        real("command-r-35b", "CohereConfig", **shape(256000, 8192, 22528, 40, 64, 64)),
        real("starcoder2-3b", "Starcoder2Config", **shape(49152, 3072, 12288, 30, 24, 2, sliding_window=None)),
        real("gpt2", "GPT2Config", n_layer=12),
        real("gpt-j-6b", "GPTJConfig", n_layer=28),
        real(
            "pythia-1.4b",
            "GPTNeoXConfig",
            vocab_size=50304,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=24,
            num_attention_heads=16,
        ),
        real(
            "opt-1.3b",
            "OPTConfig",
            hidden_size=2048,
            ffn_dim=8192,
            num_hidden_layers=24,
            num_attention_heads=32,
            word_embed_proj_dim=2048,
        ),
        real("bloom-560m", "BloomConfig", attention=EAGER, vocab_size=250880, hidden_size=1024, n_layer=24, n_head=16),
        real(
            "falcon-7b",
            "FalconConfig",
            vocab_size=65024,
            hidden_size=4544,
            num_hidden_layers=32,
            num_attention_heads=71,
            multi_query=True,
            parallel_attn=True,
            bias=False,
            new_decoder_architecture=False,
            alibi=False,
        ),
        real(
            "mixtral-8x7b",
            "MixtralConfig",
            **shape(32000, 4096, 14336, 32, 32, 8, num_local_experts=8, num_experts_per_tok=2, **UNTIED),
        ),
        real(
            "qwen1.5-moe-a2.7b",
            "Qwen2MoeConfig",
            **shape(
                151936,
                2048,
                5632,
                24,
                16,
                16,
                moe_intermediate_size=1408,
                shared_expert_intermediate_size=5632,
                num_experts=60,
                num_experts_per_tok=4,
                **UNTIED,
            ),
        ),
        real(
            "qwen3-30b-a3b",
            "Qwen3MoeConfig",
            **shape(
                151936,
                2048,
                6144,
                48,
                32,
                4,
                head_dim=128,
                moe_intermediate_size=768,
                num_experts=128,
                num_experts_per_tok=8,
                **UNTIED,
            ),
        ),
        real(
            "gpt-oss-20b",
            "GptOssConfig",
            attention=EAGER,
            **shape(201088, 2880, 2880, 24, 64, 8, head_dim=64, num_local_experts=32, num_experts_per_tok=4, **UNTIED),
        ),
        real(
            "deepseek-v2-lite",
            "DeepseekV2Config",
            layers=3,
            **shape(
                102400,
                2048,
                10944,
                27,
                16,
                16,
                moe_intermediate_size=1408,
                n_shared_experts=2,
                n_routed_experts=64,
                kv_lora_rank=512,
                q_lora_rank=None,
                qk_rope_head_dim=64,
                v_head_dim=128,
                qk_nope_head_dim=128,
                num_experts_per_tok=6,
                first_k_dense_replace=1,
                **UNTIED,
            ),
        ),
        real(
            "deepseek-v3",
            "DeepseekV3Config",
            layers=4,
            **shape(
                129280,
                7168,
                18432,
                61,
                128,
                128,
                moe_intermediate_size=2048,
                n_shared_experts=1,
                n_routed_experts=256,
                kv_lora_rank=512,
                q_lora_rank=1536,
                qk_rope_head_dim=64,
                v_head_dim=128,
                qk_nope_head_dim=128,
                num_experts_per_tok=8,
                first_k_dense_replace=3,
                **UNTIED,
            ),
        ),
    )
    for model in pair
)

T5 = {"vocab_size": V, "d_model": 240, "d_kv": 32, "d_ff": 616, "num_heads": 6, "decoder_start_token_id": 0}


BART = {
    "vocab_size": V,
    "d_model": 240,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 616,
    "decoder_ffn_dim": 520,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 10,
    "max_position_embeddings": 104,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}


def seq2seq(name: str, config: str, attention: tuple[str, ...] = BOTH, **given: Any) -> Model:
    """A tiny encoder with a decoder."""
    return Model(name, config, given, attention, "seq2seq", auto="AutoModelForSeq2SeqLM")


def decoder(name: str, config: str, dims: dict[str, int], **more: Any) -> Model:
    """A tiny decoder that takes Llama's field names."""
    return dataclasses.replace(llama_like(name, config, dims, **more), kind="decoder")


def recurrent(name: str, config: str, dims: dict[str, int] = SQUARE, **more: Any) -> Model:
    """A tiny decoder with layers that go along the sequence: convolutions, state spaces."""
    return dataclasses.replace(llama_like(name, config, dims, **more), kind="recurrent")


def attention_free(name: str, config: str, **given: Any) -> Model:
    """A tiny model of nothing but layers that go along the sequence."""
    return Model(f"{name}@{L}", config, TOKENS | {"hidden_size": 240} | given, EAGER, "recurrent")


MASKED, SEQUENCE, TOKENS_OF = (
    f"AutoModelFor{task}" for task in ("MaskedLM", "SequenceClassification", "TokenClassification")
)
SMALL_ENCODER = TOKENS | {"hidden_size": 240, "intermediate_size": 616, "num_attention_heads": 6}
ALBERT = {"embedding_size": 104} | dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.1)
DEBERTA = SMALL_ENCODER | {
    "relative_attention": True,
    "position_buckets": 24,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
DEBERTA_V1 = SMALL_ENCODER | {
    "relative_attention": True,
    "pos_att_type": "c2p|p2c",
    "position_biased_input": False,
    "max_position_embeddings": 72,
}
MODERN = SMALL_ENCODER | {"num_hidden_layers": 5, "local_attention": 48, "cls_token_id": 1, "sep_token_id": 2}


def encoder(name: str, config: str, auto: str, attention: tuple[str, ...] = BOTH, **given: Any) -> Model:
    """A tiny encoder with the head that transformers' automatic class puts on it."""
    return Model(name, config, given, attention, "encoder", auto=auto)


EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3}
SHORT = {"num_hidden_layers": 5, "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]}
"""Short convolutions, and attention among them."""
MAMBA = {"mamba_n_heads": 12, "mamba_n_groups": 2, "mamba_d_state": 24, "mamba_chunk_size": 16}
"""56 tokens end within a chunk, 64 with one."""
LIGHTNING = {
    "num_hidden_layers": 5,
    "layer_types": [f"{kind}_attention" for kind in ("linear", "full", "linear", "linear", "full")],
}
"""Lightning attention, and plain attention among it."""


def gemma4(name: str, **more: Any) -> Model:
    """A tiny Gemma 4: two windows to each layer that sees everything, whose heads are wider."""
    layers = ["sliding_attention", "sliding_attention", "full_attention"] * 3
    given = {
        "num_hidden_layers": 9,
        "layer_types": layers,
        "global_head_dim": 72,
        "sliding_window": 1024,
        "final_logit_softcapping": 30.0,
        "hidden_size_per_layer_input": 0,
        "tie_word_embeddings": True,
    }
    return decoder(name, "Gemma4TextConfig", FREE, **given | more)


MORE = (
    decoder("flex_olmo", "FlexOlmoConfig", SQUARE, **EXPERTS),
    Model(
        f"dbrx@{L}",
        "DbrxConfig",
        {
            "vocab_size": V,
            "d_model": 240,
            "n_heads": 6,
            "n_layers": L,
            "attn_config": {"clip_qkv": 8, "kv_n_heads": 2, "rope_theta": 5e5},
            "ffn_config": {"ffn_hidden_size": 424, "moe_num_experts": 8, "moe_top_k": 3, "moe_jitter_eps": 0.01},
        },
        kind="decoder",
        symbols=SQUARE,
    ),
    decoder(
        "jetmoe",
        "JetMoeConfig",
        FREE,
        num_local_experts=8,
        num_experts_per_tok=3,
        kv_channels=40,
        tie_word_embeddings=False,
    ),
    decoder(
        "exaone_moe",
        "ExaoneMoeConfig",
        SQUARE,
        **EXPERTS,
        num_hidden_layers=4,
        moe_intermediate_size=424,
        num_shared_experts=2,
        n_group=2,
        topk_group=1,
        sliding_window=16,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    decoder(
        "mellum",
        "MellumConfig",
        FREE,
        **EXPERTS,
        num_hidden_layers=4,
        moe_intermediate_size=424,
        sliding_window=16,
        layer_types=["full_attention", "sliding_attention"] * 2,
        mlp_layer_types=["dense", *["sparse"] * 3],
    ),
    encoder("bert@4", "BertConfig", MASKED, **SMALL_ENCODER | {"num_hidden_layers": 4}),
    encoder(
        "eurobert@4", "EuroBertConfig", MASKED, **SMALL_ENCODER | {"num_hidden_layers": 4, "num_key_value_heads": 2}
    ),
    encoder("eurobert-token@2", "EuroBertConfig", TOKENS_OF, **SMALL_ENCODER, mlp_bias=True, attention_bias=True),
    encoder("data2vec@2", "Data2VecTextConfig", MASKED, **SMALL_ENCODER),
    encoder("data2vec-sequence@2", "Data2VecTextConfig", SEQUENCE, **SMALL_ENCODER),
    encoder("data2vec-token@2", "Data2VecTextConfig", TOKENS_OF, **SMALL_ENCODER),
    encoder("modernbert@5", "ModernBertConfig", MASKED, **MODERN),
    encoder(
        "modernbert-full@2",
        "ModernBertConfig",
        MASKED,
        **MODERN
        | {"num_hidden_layers": 2, "local_attention": 512, "tie_word_embeddings": False}
        | dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), True)
        | dict.fromkeys(("attention_dropout", "mlp_dropout", "embedding_dropout"), 0.1),
    ),
    encoder("modernbert-sequence@2", "ModernBertConfig", SEQUENCE, **MODERN | {"num_hidden_layers": 2}),
    encoder("deberta-v3@7", "DebertaV2Config", MASKED, EAGER, **DEBERTA | {"num_hidden_layers": 7}),
    encoder(
        "deberta-v2@2",
        "DebertaV2Config",
        MASKED,
        EAGER,
        **DEBERTA
        | {"position_biased_input": True, "type_vocab_size": 3, "share_att_key": False}
        | {"position_buckets": -1, "norm_rel_ebd": "none", "max_position_embeddings": 72},
    ),
    encoder(
        "deberta-sequence@2", "DebertaV2Config", SEQUENCE, EAGER, **DEBERTA, problem_type="single_label_classification"
    ),
    encoder("deberta-token@2", "DebertaV2Config", TOKENS_OF, EAGER, **DEBERTA),
    *(
        dataclasses.replace(model, kind="fp32 encoder")
        for model in (
            encoder("deberta-v1@5", "DebertaConfig", MASKED, EAGER, **DEBERTA_V1 | {"num_hidden_layers": 5}),
            encoder(
                "deberta-v1-plain@2",
                "DebertaConfig",
                MASKED,
                EAGER,
                **DEBERTA_V1
                | {"relative_attention": False, "position_biased_input": True, "type_vocab_size": 3}
                | {"pos_att_type": None, "legacy": False},
            ),
            encoder(
                "deberta-v1-sequence@2",
                "DebertaConfig",
                SEQUENCE,
                EAGER,
                **DEBERTA_V1 | {"pos_att_type": "p2c", "cls_dropout": 0.2},
                problem_type="single_label_classification",
            ),
            encoder("deberta-v1-token@2", "DebertaConfig", TOKENS_OF, EAGER, **DEBERTA_V1 | {"pos_att_type": "c2p"}),
        )
    ),
    encoder("albert@5", "AlbertConfig", MASKED, **SMALL_ENCODER | {"num_hidden_layers": 5}, **ALBERT),
    encoder(
        "albert-groups@4",
        "AlbertConfig",
        MASKED,
        **SMALL_ENCODER | {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
        **ALBERT,
    ),
    encoder("albert-sequence@2", "AlbertConfig", SEQUENCE, **SMALL_ENCODER, **ALBERT),
    encoder("albert-token@2", "AlbertConfig", TOKENS_OF, **SMALL_ENCODER, **ALBERT),
    encoder("modernbert-token@2", "ModernBertConfig", TOKENS_OF, **MODERN | {"num_hidden_layers": 2}),
    decoder("youtu", "YoutuConfig", ALIKE, **LATENT_HEADS, q_lora_rank=104),
    gemma4("gemma4_dense", attention_k_eq_v=True, num_global_key_value_heads=1),
    gemma4(
        "gemma4_moe",
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
        enable_moe_block=True,
        num_experts=8,
        top_k_experts=3,
        moe_intermediate_size=424,
    ),
    gemma4(
        "gemma4_small",
        hidden_size_per_layer_input=48,
        vocab_size_per_layer_input=1096,
        num_kv_shared_layers=4,
        use_double_wide_mlp=True,
    ),
    gemma4("gemma4_wide", global_head_dim=264),
    recurrent("lfm2", "Lfm2Config", **SHORT, block_multiple_of=8),
    recurrent(
        "lfm2_moe",
        "Lfm2MoeConfig",
        **SHORT,
        **EXPERTS,
        moe_intermediate_size=424,
        num_dense_layers=2,
        conv_bias=True,
    ),
    recurrent(
        "granite4",
        "GraniteMoeHybridConfig",
        **MAMBA,
        num_local_experts=0,
        shared_intermediate_size=616,
        position_embedding_type="rope",
        layer_types=["full_attention"] * 2,
    ),
    recurrent(
        "granite4-hybrid",
        "GraniteMoeHybridConfig",
        **MAMBA,
        num_hidden_layers=5,
        num_local_experts=8,
        num_experts_per_tok=3,
        shared_intermediate_size=424,
        layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention", "full_attention"],
    ),
    recurrent("bamba", "BambaConfig", **MAMBA, num_hidden_layers=5, attn_layer_indices=[1, 4]),
    recurrent(
        "jamba",
        "JambaConfig",
        **EXPERTS,
        num_hidden_layers=7,
        attn_layer_period=3,
        attn_layer_offset=1,
        mamba_d_state=24,
        mamba_dt_rank=40,
    ),
    recurrent("falcon_h1", "FalconH1Config", **MAMBA, mamba_d_ssm=480),
    recurrent(
        "falcon_h1-normed",
        "FalconH1Config",
        **MAMBA,
        mamba_d_ssm=360,
        mamba_rms_norm=True,
        mamba_norm_before_gate=False,
        projectors_bias=True,
        attention_bias=True,
    ),
    *(
        recurrent(
            f"nemotron_h{name}",
            "NemotronHConfig",
            SQUARE,
            head_dim=48,
            num_hidden_layers=7,
            layers_block_type=[
                "linear_attention",
                "moe",
                "full_attention",
                "mlp",
                "linear_attention",
                "moe",
                "linear_attention",
            ],
            mamba_num_heads=12,
            mamba_head_dim=32,
            n_groups=2,
            ssm_state_size=24,
            chunk_size=16,
            n_routed_experts=8,
            num_experts_per_tok=3,
            moe_intermediate_size=424,
            moe_shared_expert_intermediate_size=328,
            **more,
        )
        for name, more in (
            ("", {}),
            ("-latent", {"moe_latent_size": 136, "n_group": 4, "topk_group": 2, "mlp_bias": True}),
        )
    ),
    attention_free("mamba", "MambaConfig", state_size=24),
    attention_free(
        "mamba-bias",
        "MambaConfig",
        state_size=16,
        time_step_rank=40,
        conv_kernel=3,
        use_bias=True,
        use_conv_bias=False,
        residual_in_fp32=False,
        tie_word_embeddings=False,
    ),
    attention_free("falcon_mamba", "FalconMambaConfig", state_size=24),
    attention_free("mamba2", "Mamba2Config", num_heads=12, head_dim=40, n_groups=2, state_size=24, chunk_size=16),
    attention_free(
        "mamba2-bias",
        "Mamba2Config",
        num_heads=8,
        head_dim=60,
        n_groups=8,
        state_size=24,
        chunk_size=16,
        conv_kernel=3,
        use_bias=True,
        use_conv_bias=False,
        residual_in_fp32=False,
        tie_word_embeddings=True,
        hidden_act="gelu",
    ),
    recurrent("minimax", "MiniMaxConfig", num_local_experts=8, num_experts_per_tok=3, **LIGHTNING, block_size=24),
    recurrent("minimax-short", "MiniMaxConfig", num_local_experts=8, num_experts_per_tok=3, **LIGHTNING, head_dim=40),
    seq2seq("t5@3+4", "T5Config", **T5, num_layers=3, num_decoder_layers=4),
    seq2seq("t5-v1.1@2", "T5Config", **T5, num_layers=2, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    seq2seq("mt5@2", "MT5Config", **T5, num_layers=2, dropout_rate=0.0),
    seq2seq("umt5@3", "UMT5Config", **T5, num_layers=3),
    seq2seq("bart@3+2", "BartConfig", **BART | {"encoder_layers": 3}, attention_dropout=0.1, activation_dropout=0.1),
    seq2seq("mbart@2", "MBartConfig", **BART),
    seq2seq("pegasus@2", "PegasusConfig", **BART),
    seq2seq("marian@2", "MarianConfig", **BART),
    seq2seq("plbart@2", "PLBartConfig", **BART),
    seq2seq("blenderbot@2+4", "BlenderbotConfig", **BART | {"decoder_layers": 4}),
    seq2seq("blenderbot-small@2", "BlenderbotSmallConfig", **BART),
    seq2seq("m2m_100@2", "M2M100Config", **BART),
    *(
        dataclasses.replace(model, kind="published")
        for model in (
            seq2seq(
                "flan-t5-base",
                "T5Config",
                d_model=768,
                d_ff=2048,
                num_heads=12,
                num_layers=12,
                feed_forward_proj="gated-gelu",
                tie_word_embeddings=False,
                decoder_start_token_id=0,
            ),
            seq2seq("bart-large", "BartConfig"),
            seq2seq("nllb-600m", "M2M100Config", vocab_size=256206, encoder_layerdrop=0.0, decoder_layerdrop=0.0),
            encoder(
                "deberta-v3-base",
                "DebertaV2Config",
                MASKED,
                EAGER,
                **DEBERTA
                | {"vocab_size": 128100, "hidden_size": 768, "intermediate_size": 3072, "position_buckets": 256}
                | {"num_hidden_layers": 12, "num_attention_heads": 12},
            ),
            encoder("modernbert-base", "ModernBertConfig", MASKED),
            encoder(
                "albert-base", "AlbertConfig", MASKED, hidden_size=768, intermediate_size=3072, num_attention_heads=12
            ),
        )
    ),
)
"""Families whose steps are recorded apart."""

SMALL = Model("llama-small@2", "LlamaConfig", shape(1000, 192, 520, 2, 4, 2, **UNTIED), kind="small")
"""For optimizers: matrices above and below 4,096 elements, and sizes that 256 does and does not divide."""

MODELS = {model.name: model for model in (*TINY, *REAL, *MORE, SMALL)}
