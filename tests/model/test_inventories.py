"""Parameter totals by table: against the classes under drawn sizes, against published models, and which types are not known."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from recordings import GOLDEN, configurations

from calc.model import ConfigError, NotModelled, UnknownArchitecture, architecture, families, typed
from calc.model.config import Config
from calc.model.counting import counted
from calc.model.inventory import Sizes, inventories, inventory
from calc.model.unsupported import UNSUPPORTED

DEFAULTS: dict[str, dict[str, int]] = json.loads((GOLDEN / "default_models.json").read_text())
"""For each type of transformers with a text head, its classes and their totals as the default config makes them."""
WITHOUT_DEFAULTS = {"dots1", "lfm2_moe"}
"""Types whose class needs a field of config.json to be built at all."""
NEEDED = {"deepseek_v2": {"num_experts_per_tok": 6}}
"""Fields without which a class can be built but not run; no parameter depends on them."""


def drawn() -> list[dict[str, Any]]:
    """Configs of drawn sizes and the totals of the real classes."""
    with gzip.open(GOLDEN / "inventories.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_tables_hold_under_drawn_sizes() -> None:
    """Sizes two to four times the class's, other depths, switches turned: each total is the class's.

    A family refuses sizes that its class can be built with and cannot run, and words that it does not know.
    """
    off, refused = {}, set()
    for row in drawn():
        try:
            if (found := counted(row["config"]).total) != row["total"]:
                off[json.dumps(row["config"])] = (found, row["total"])
        except ConfigError as error:
            refused.add(error.field)
    assert {} == off
    assert refused <= {
        "num_key_value_heads",
        "n_group",
        "n_groups",
        "mamba_n_groups",
        "text_config.topk_group",
        "pos_att_type",
    }


def test_every_verified_model_is_counted() -> None:
    """Families and tables alike: all 678 totals to the last element."""
    verified = [row for row in configurations() if row["check"].startswith("verified")]
    assert len(verified) == 678
    off = [r["id"] for r in verified if counted(typed(r["config"], r["id"])).total != r["total"]]
    assert [] == off


def test_the_class_that_a_type_makes_by_default_is_counted() -> None:
    """A config of nothing but its type is one of the recorded classes of that type."""
    known = {*families(), *inventories()} - WITHOUT_DEFAULTS
    off = {t: counted({"model_type": t, **NEEDED.get(t, {})}).total for t in DEFAULTS if t in known and DEFAULTS[t]}
    assert {} == {t: total for t, total in off.items() if total not in DEFAULTS[t].values()}


def test_fewer_than_15_percent_of_types_are_unsupported() -> None:
    """Of the 312 that a config of nothing but their type makes a model of; each is listed with what is missing."""
    supported = {*families(), *inventories()}
    assert set(DEFAULTS) - supported == set(UNSUPPORTED)
    made = {t for t in DEFAULTS if DEFAULTS[t]}
    assert len(made) == 312
    assert len(made - supported) == 29 < 0.15 * len(made)


def test_the_refusal_of_an_unsupported_type_says_what_is_missing() -> None:
    """Before anyone is told of types whose names are alike."""
    with pytest.raises(UnknownArchitecture, match="'emu3' is not modelled yet; missing is a table of its parameters"):
        counted({"model_type": "emu3"})


def test_a_config_without_a_type_is_read_by_its_name() -> None:
    """The longest type that the repository's name holds, and only where config.json says nothing of its class."""
    assert typed({"hidden_size": 768}, "FacebookAI/roberta-base")["model_type"] == "roberta"
    assert typed({"model_type": "bert"}, "FacebookAI/roberta-base")["model_type"] == "bert"
    assert "model_type" not in typed({"architectures": ["Other"]}, "FacebookAI/roberta-base")
    assert "model_type" not in typed({}, "someone/a-model")


def test_no_table_stands_in_for_a_family() -> None:
    """A forward pass counts too, so a type has one or the other."""
    assert set() == set(families()) & inventories()


@pytest.mark.parametrize("model_type", sorted(inventories()))
def test_every_table_can_be_read(model_type: str) -> None:
    """Fields of formulas have a default, a formula or a list; names and shapes are whole."""
    table = inventory(model_type)
    assert table.class_name
    assert table.name[0].isalnum()
    sizes = Sizes(table, Config({"model_type": model_type}))
    for field in (*table.defaults, *table.derived):
        if table.defaults.get(field) is None or isinstance(table.defaults[field], int):
            assert sizes[field] >= 0
    assert all(row.name and row.count and " " not in row.name for row in table.rows)


def test_what_only_a_table_knows_is_not_modelled() -> None:
    """The refusal says the name, and that its parameters are known."""
    with pytest.raises(NotModelled, match="RWKV"):
        architecture({"model_type": "rwkv"})


def test_a_value_that_the_table_does_not_hold_is_refused() -> None:
    """With the field, what it may be and what it is."""
    with pytest.raises(ConfigError, match=r"merger_times is only known as 1, not 2"):
        counted({"model_type": "minicpmv4_6", "merger_times": 2})
    with pytest.raises(ConfigError, match=r"layer_types names a kind of layer that is not known: antimatter"):
        counted({"model_type": "qwen3_next", "num_hidden_layers": 1, "layer_types": ["antimatter"]})


@pytest.mark.parametrize(
    ("id", "beside"), [("microsoft/Phi-3.5-vision-instruct", 0), ("MiniMaxAI/MiniMax-M3", 57 * 128)]
)
def test_models_of_their_repositories_own_code_hold_what_the_hub_stores(id: str, beside: int) -> None:
    """To the element; MiniMax M3 stores its routers' correction biases beside its parameters."""
    (row,) = (row for row in configurations() if row["id"] == id)
    assert row["hub_total"] == counted(row["config"]).total + beside


def test_layers_are_told_by_rule_by_list_and_by_letters() -> None:
    """Nemotron-H spells its layers; older files call the kinds by other names."""
    spelt = counted({"model_type": "nemotron_h", "hybrid_override_pattern": "M*-E"}).total
    listed = counted({"model_type": "nemotron_h", "layers_block_type": ["mamba", "attention", "mlp", "moe"]}).total
    assert spelt == listed == counted({"model_type": "nemotron_h"}).total
    with pytest.raises(ConfigError, match="should spell the layers in M"):
        counted({"model_type": "nemotron_h", "hybrid_override_pattern": "MQ"})


def test_parts_of_a_vision_language_model() -> None:
    """Text, vision tower and projector apart, together the total; the text model is counted by its own type."""
    (row,) = (row for row in configurations() if row["id"] == "llava-hf/llava-1.5-7b-hf")
    found = counted(row["config"])
    text = counted({**row["config"]["text_config"], "tie_word_embeddings": False}).total
    assert found.parts() == {"text": text, "vision": 303_507_456, "projector": 20_979_712}
    assert sum(found.parts().values()) == found.total
    assert found.embedding + found.head == 2 * 32064 * 4096


PARTS = {
    "qwen2_5_vl": {"text": 72_706_203_648, "vision": 2_826_102_528, "projector": 256_922_624},
    "qwen2_audio": {"text": 12_049_846_272, "audio": 636_968_960, "projector": 5_246_976},
    "phi4_multimodal": {"text": 4_400_286_720, "vision": 428_567_744, "audio": 466_432_256, "projector": 12_982_272},
    "gemma3n_text": {"text": None},
    "distilbert": {"text": None},
    "blt": {"text": None},
}
"""What each type's classes hold by default, where a model is all text its total: not every projection is a projector."""


@pytest.mark.parametrize("model_type", PARTS)
def test_parts_are_told_by_the_names_of_modules(model_type: str) -> None:
    """The first module in a name that is a tower, or stands between one and the text model."""
    found = counted({"model_type": model_type})
    assert {part: size or found.total for part, size in PARTS[model_type].items()} == found.parts()


ACTIVE = {
    "deepseek-ai/DeepSeek-V3": 37_552_282_624,
    "mistralai/Mixtral-8x7B-v0.1": 12_879_925_248,
    "Qwen/Qwen3-30B-A3B": 3_353_032_704,
}
"""Parameters that a token passes: all that are no expert's, and each layer's share of experts."""


@pytest.mark.parametrize("id", ACTIVE)
def test_active_parameters(id: str) -> None:
    """Mixtures of experts; a dense model's are all."""
    (row,) = (row for row in configurations() if row["id"] == id)
    assert ACTIVE[id] == counted(row["config"]).active


def test_dense_models_are_wholly_active() -> None:
    """Embeddings and head included."""
    found = counted({"model_type": "llama"})
    assert found.active == found.total


def test_the_worked_example_of_a_family_is_the_file_as_it_is() -> None:
    """CONTRIBUTING shows a whole family; its text is the code's."""
    root = GOLDEN.parents[1]
    blocks = (root / "CONTRIBUTING.md").read_text().split("```python\n")
    assert (root / "calc" / "model" / "youtu.py").read_text().rstrip() in [
        block.partition("\n```")[0] for block in blocks
    ]
