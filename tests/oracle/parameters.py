"""Parameters and buffers of real model classes, built without memory."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402
from models import MODELS  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES  # noqa: E402, F401

NOISE = (
    "transformers_version",
    "_name_or_path",
    "id2label",
    "label2id",
    "architectures",
    "chunk_size_feed_forward",
    "dtype",
    "output_hidden_states",
    "output_attentions",
    "return_dict",
    "problem_type",
    "is_encoder_decoder",
    "_attn_implementation",
)


def without_noise(config: Any, usual: Any) -> Any:
    """A config as config.json holds it, every default written out, without what says nothing about the model.

    A null is left out, unless the class (`usual` is its own config) means something else by an absent key.
    """
    if not isinstance(config, dict):
        return config
    usual = usual if isinstance(usual, dict) else {}
    return {
        key: without_noise(value, usual.get(key))
        for key, value in config.items()
        if (value is not None or usual.get(key) is not None) and key not in NOISE
    }


def config_of(case: dict[str, Any]) -> transformers.PretrainedConfig:
    """The config of a measured model, or a family's default config."""
    if "model_type" in case:
        return CONFIG_MAPPING[case["model_type"]]()
    row = MODELS[case["model"]]
    return getattr(transformers, row.config)(**row.given)


def automatic(case: dict[str, Any]) -> str:
    """The class of transformers that picks the model's class."""
    return MODELS[case["model"]].auto if "model" in case else "AutoModelForCausalLM"


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """The config; totals; and each parameter's name and shape, blocks alike folded into one ("layers.0-31.")."""
    config = config_of(case)
    with torch.device("meta"):
        model = getattr(transformers, automatic(case)).from_config(config)
    model.tie_weights()
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    own = {id(p) for p in embedding.parameters()}
    return {
        "config": without_noise(config.to_dict(), type(config)().to_dict()),
        "class": type(model).__name__,
        "total": sum(p.numel() for p in model.parameters()),
        "tensors": sum(1 for _ in model.parameters()),
        "embedding": sum(p.numel() for p in embedding.parameters()),
        "head": sum(p.numel() for p in head.parameters()) if head is not None else 0,
        "tied": head is not None and any(id(p) in own for p in head.parameters()),
        "buffer_bytes": sum(b.numel() * b.element_size() for b in model.buffers()),
        "linear": sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not head),
        "shapes": fold([(name, list(p.shape)) for name, p in model.named_parameters()]),
    }


def fold(shapes: list[tuple[str, list[int]]]) -> list[list[Any]]:
    """Names and shapes in order of first appearance, with runs of block numbers folded: [name, shape, "0-31" or ""]."""
    order: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for name, size in shapes:
        match = re.match(r"(.*?\.)(\d+)(\..*)$", name)
        key, number = ((match[1] + "*" + match[3]), int(match[2])) if match else (name, -1)
        order.setdefault((key, tuple(size)), []).append(number)
    return [[name, list(size), "" if numbers == [-1] else runs(numbers)] for (name, size), numbers in order.items()]


def runs(numbers: list[int]) -> str:
    """0-2,5 for 0, 1, 2, 5."""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)
