"""Builds the classes that calc/model/inventories describes, under drawn sizes, and records their parameter totals.

    .oracle-venv/bin/python tests/oracle/record_inventories.py [MODEL_TYPE ...]

Prints where a table disagrees, tensor by tensor (what is drawn can contradict itself). Without types it writes tests/golden/inventories.jsonl.gz: for each type the
config, and the total of the class that transformers makes of it without memory. A type that accepts no drawn sizes is recorded as its
class makes it.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

from calc.model.config import ConfigError  # noqa: E402
from calc.model.counting import counted  # noqa: E402
from calc.model.inventory import Inventory, inventories, inventory  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "inventories.jsonl.gz"
DEPTH = re.compile(r"(layers|n_layer|depth|num_blocks|num_layers_per_stack)$")
SAME = re.compile(
    r"(_token|_id|_index|seed|per_tok|top_?k|num_labels|pretraining_tp|window|max_length|legacy|layerdrop|_iter)s?$"
    r"|(^|\.)(output_|is_|use_cache|return_|add_cross|chunk_size)"
)
"""Fields that say nothing about sizes, or that only a few values suit."""
DRAWS, WANTED = 25, 2

Config = transformers.PretrainedConfig
Tensors = Counter[tuple[str, tuple[int, ...]]]


def fields(config: Config, path: str = "") -> dict[str, Any]:
    """Every number and every yes or no of a config, nested parts with their path."""
    found: dict[str, Any] = {}
    for name in type(config).__dataclass_fields__:
        try:
            value = getattr(config, name, None)
        except RuntimeError:  # differs from layer to layer
            continue
        if isinstance(value, Config):
            found |= fields(type(value)(), f"{path}{name}.")
        elif isinstance(value, bool | int):
            found[path + name] = value
    return found


def drawn(table: Inventory, known: dict[str, Any], draw: random.Random, share: float) -> dict[str, Any]:
    """Sizes two to four times the class's for a share of the fields, few layers, and some switches turned."""
    parts = tuple(f"{part}." for part, _, _ in table.includes)
    chosen: dict[str, Any] = {}
    for field, value in {**known, **table.defaults}.items():
        if field in table.only or SAME.search(field) or (field.startswith(parts) and field not in table.defaults):
            continue
        if isinstance(value, bool):
            if draw.random() < 0.4:
                chosen[field] = draw.random() < 0.5
        elif isinstance(value, int) and value:
            if DEPTH.search(field):
                chosen[field] = draw.choice((5, 6, 7, 8, 9, 12)) if value > 2 else value
            elif draw.random() < share:
                chosen[field] = value * draw.choice((2, 3, 4)) if draw.random() < 0.8 else max(1, value // 2)
    return {field: value for field, value in chosen.items() if value != known.get(field)}


def nested(chosen: dict[str, Any]) -> dict[str, Any]:
    """Paths to parts within parts."""
    config: dict[str, Any] = {}
    for path, value in chosen.items():
        *parts, name = path.split(".")
        within = config
        for part in parts:
            within = within.setdefault(part, {})
        within[name] = value
    return config


def made(config_class: type[Config], values: dict[str, Any]) -> Config:
    """The class's config; a part that is given is of the part's own class."""
    default = config_class()
    given = {
        name: made(type(getattr(default, name)), value) if isinstance(getattr(default, name, None), Config) else value
        for name, value in values.items()
    }
    return config_class(**given)


def real(table: Inventory, values: dict[str, Any]) -> Tensors:
    """Parameters of the class by name pattern and shape, tied ones once."""
    config = made(CONFIG_MAPPING[table.model_type], values)
    with torch.device("meta"):
        model = getattr(transformers, table.class_name)._from_config(config)
    model.tie_weights()
    return Counter((re.sub(r"\.\d+(?=\.|$)", ".*", name), tuple(p.shape)) for name, p in model.named_parameters())


def ours(table: Inventory, values: dict[str, Any]) -> Tensors:
    """The same by the table."""
    found: Tensors = Counter()
    for parameter in counted({"model_type": table.model_type, **values}).parameters:
        found[parameter.name, parameter.shape] += parameter.count
    return found


def total(tensors: Tensors) -> int:
    """Elements."""
    return sum(math.prod(shape) * count for (_, shape), count in tensors.items())


def rows(model_type: str) -> list[dict[str, Any]]:
    """Configs of a type and the totals of its class; none where the class is not one of transformers."""
    if model_type not in CONFIG_MAPPING:
        return []
    table, draw = inventory(model_type), random.Random(model_type)
    known = fields(CONFIG_MAPPING[model_type]())
    found: list[dict[str, Any]] = []
    for attempt in range(DRAWS + 1):
        values = nested(drawn(table, known, draw, 0.9 - 0.15 * (attempt // 5))) if attempt < DRAWS else {}
        try:
            tensors = real(table, values)
        except Exception:  # sizes that the class refuses; the next draw may suit it
            continue
        off = tensors.copy()
        try:
            off.subtract(ours(table, values))
        except ConfigError as error:
            print(model_type, error, values)
            continue
        if total(off):
            print(model_type, {key: count for key, count in off.items() if count})
            continue
        found.append({"config": {"model_type": model_type, **values}, "total": total(tensors)})
        if len(found) == WANTED:
            break
    return found


if __name__ == "__main__":
    recorded = [row for model_type in sys.argv[1:] or sorted(inventories()) for row in rows(model_type)]
    if not sys.argv[1:]:
        lines = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in recorded)
        GOLDEN.write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(len(recorded), "configs")
