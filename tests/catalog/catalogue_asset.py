"""Build assets/catalogue.json from the recorded configurations: `python tests/catalog/catalogue_asset.py`.

The catalogue is the recording less what says nothing about memory, in the order in which a search shows equals.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "golden" / "configs.jsonl.gz"
ASSET = ROOT / "assets" / "catalogue.json"

# Shown first, in this order, before anyone has typed a letter and among equal matches afterwards: the bases and chat
# models that most fine-tunes on the Hub start from, small to large.
FIRST = (
    "mistralai/Mistral-7B-v0.1",
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen2.5-7B",
    "google/gemma-2-9b",
    "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.2-3B",
    "meta-llama/Llama-3.2-3B-Instruct",
    "meta-llama/Meta-Llama-3-8B",
    "meta-llama/Meta-Llama-3-8B-Instruct",
    "meta-llama/Llama-2-7b-hf",
    "meta-llama/Llama-2-13b-hf",
    "meta-llama/Llama-3.3-70B-Instruct",
    "meta-llama/Llama-3.1-70B",
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Llama-2-70b-hf",
    "meta-llama/Meta-Llama-3.1-405B",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "mistralai/Mistral-7B-v0.3",
    "mistralai/Mistral-7B-Instruct-v0.2",
    "mistralai/Mistral-Nemo-Instruct-2407",
    "mistralai/Mistral-Small-24B-Instruct-2501",
    "mistralai/Mixtral-8x7B-v0.1",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-4B",
    "Qwen/Qwen3-14B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen2.5-0.5B-Instruct",
    "Qwen/Qwen2.5-1.5B",
    "Qwen/Qwen2.5-1.5B-Instruct",
    "Qwen/Qwen2.5-3B",
    "Qwen/Qwen2.5-14B",
    "Qwen/Qwen2.5-14B-Instruct",
    "Qwen/Qwen2.5-32B",
    "Qwen/Qwen2.5-32B-Instruct",
    "Qwen/Qwen2.5-72B",
    "Qwen/Qwen2.5-72B-Instruct",
    "Qwen/Qwen2.5-Coder-7B-Instruct",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "google/gemma-2b",
    "google/gemma-7b",
    "google/gemma-2-2b",
    "google/gemma-2-2b-it",
    "google/gemma-2-9b-it",
    "google/gemma-2-27b",
    "google/gemma-3-1b-it",
    "google/gemma-3-4b-it",
    "google/gemma-3-12b-it",
    "google/gemma-3-27b-it",
    "microsoft/phi-2",
    "microsoft/Phi-3-mini-4k-instruct",
    "microsoft/Phi-3.5-mini-instruct",
    "microsoft/phi-4",
    "microsoft/Phi-4-mini-instruct",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "HuggingFaceTB/SmolLM2-135M",
    "HuggingFaceTB/SmolLM2-360M",
    "HuggingFaceTB/SmolLM2-1.7B",
    "HuggingFaceTB/SmolLM3-3B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-R1",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "openai-community/gpt2",
    "google-bert/bert-base-uncased",
    "FacebookAI/roberta-base",
    "answerdotai/ModernBERT-base",
    "google-t5/t5-base",
    "google/flan-t5-base",
    "google/flan-t5-xl",
    "tiiuae/falcon-7b",
    "tiiuae/falcon-40b",
    "EleutherAI/pythia-1.4b",
    "EleutherAI/pythia-6.9b",
    "EleutherAI/gpt-neox-20b",
    "EleutherAI/gpt-j-6b",
    "facebook/opt-1.3b",
    "facebook/opt-6.7b",
    "bigscience/bloom-560m",
    "bigscience/bloom-7b1",
    "bigscience/bloom",
    "codellama/CodeLlama-7b-hf",
    "bigcode/starcoder2-7b",
    "allenai/OLMo-2-1124-7B",
    "ibm-granite/granite-3.3-8b-instruct",
    "zai-org/GLM-4-9B-0414",
    "01-ai/Yi-1.5-9B",
    "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct",
)

# They name tokens, training runs and library versions; no byte depends on them.
NOISE = frozenset({
    "_name_or_path", "transformers_version", "use_cache", "initializer_range", "pretraining_tp", "use_return_dict",
    "return_dict", "output_attentions", "output_hidden_states", "gradient_checkpointing", "task_specific_params",
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "unk_token_id", "mask_token_id",
    "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "sliding_window_token_id",
    "image_token_id", "video_token_id", "audio_token_id", "vision_start_token_id", "vision_end_token_id",
    "vision_token_id", "image_token_index", "boi_token_index", "eoi_token_index", "boi_token_id", "eoi_token_id",
    "boa_token_id", "eoa_token_id", "eoa_token_index", "media_placeholder_token_id", "router_aux_loss_coef",
    "router_z_loss_coef", "aux_loss_alpha", "seq_aux", "ep_size", "quantized_layers",
})  # fmt: skip

LOST = {"tiiuae/Falcon-H1-0.5B-Base": {"mamba_d_ssm": 1536}}
"""Fields that a copy of a config.json has lost: 24 heads of 64, with which the parameters come to the Hub's total."""


def kept(value: Any) -> Any:
    """A configuration without its noise, at every depth."""
    if isinstance(value, dict):
        return {key: kept(inner) for key, inner in value.items() if key not in NOISE}
    return value


def status(row: dict[str, Any]) -> str:
    """How far the recorded total can be trusted, in one word."""
    if row["total"] is None:
        return "not counted"
    if row["check"].startswith("verified"):
        return "verified"
    return "differs" if row["hub_total"] is not None else "counted"


def recorded() -> list[dict[str, Any]]:
    """The recorded configurations."""
    return [json.loads(line) for line in gzip.decompress(RECORDING.read_bytes()).decode().splitlines()]


def catalogue() -> str:
    """The text of assets/catalogue.json: an array with one model a line."""
    rank = {name: place for place, name in enumerate(FIRST)}
    rows = sorted(recorded(), key=lambda row: (rank.get(row["id"], len(rank)), row["id"].casefold()))
    lines = []
    for row in rows:
        entry = {
            "id": row["id"],
            "total": row["total"],
            "hub_total": row["hub_total"],
            "check": status(row),
            "check_note": row["check"],
            "kind": row["kind"],
            "source": row["source"],
            "config": kept(row["config"] | LOST.get(row["id"], {})),
        }
        lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    ASSET.write_text(catalogue(), encoding="utf-8")
