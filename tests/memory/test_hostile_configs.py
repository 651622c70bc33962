"""Configs are hostile: 10,000 mutated ones give an answer or one clear sentence, never a traceback."""

from __future__ import annotations

import copy
import gzip
import json
import random
from pathlib import Path
from typing import Any

from calc import Refused, Scenario, estimate
from calc.memory.floor import floor
from calc.model import ConfigError, UnknownArchitecture, typed
from calc.model.about import about
from calc.model.counting import counted

GOLDEN = Path(__file__).parents[1] / "golden" / "configs.jsonl.gz"
JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 10**6, 10**12, 10**30, -(10**30), 0.5, 1.5, 1e300, float("inf"), float("nan"), "", "8", "huge", "\x00",
    "x" * 5000, [], [1, 2], [None] * 3, ["full_attention"] * 3, {}, {"a": 1}, {"rope_type": []}, [[[]]], "1e9", "llama", "mamba", "__proto__",
]  # fmt: skip


def mutated(config: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A config with a few of its values dropped, swapped or replaced by junk, in nested parts too."""
    config = copy.deepcopy(config)
    for _ in range(chance.randint(1, 4)):
        place = config
        inner = [v for v in config.values() if isinstance(v, dict) and v]
        if inner and chance.random() < 0.3:
            place = chance.choice(inner)
        key = chance.choice(list(place))
        deed = chance.random()
        if deed < 0.2:
            del place[key]
        elif deed < 0.8:
            place[key] = chance.choice(JUNK)
        else:
            place[key] = place[chance.choice(list(place))]
        if not place:
            place["hidden_size"] = chance.choice(JUNK)
        if not config:
            break
    return config


def test_ten_thousand_mutated_configs_never_crash() -> None:
    """Whatever a config says, the answer is a number or a refusal that names what is wrong."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        configs = [json.loads(line)["config"] for line in file]
    chance = random.Random(20261130)
    answers = refusals = 0
    for _ in range(10_000):
        config = mutated(chance.choice(configs), chance)
        scenario = Scenario.model_validate({
            "model": {"config": config},
            "plan": {"method": chance.choice(["full", "lora", "qlora"]), "micro_batch_size": 1, "seq_len": 16, "attention": chance.choice(["sdpa", "eager"])},
        })  # fmt: skip
        try:
            answer = estimate(scenario)
        except Refused as refusal:
            assert refusal.message
            assert len(refusal.message) < 400
            refusals += 1
        else:
            assert answer.peak.allocated >= 0
            assert answer.parameters.total > 0
            answers += 1

    assert answers > 1000
    assert refusals > 1000


def test_two_thousand_mutated_configs_never_crash_what_is_known_of_parameters() -> None:
    """Counts, stored totals, quantised checkpoints and the floor of a step: a number, or an error with its field."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    chance = random.Random(20261129)
    known = 0
    for _ in range(2000):
        row = chance.choice(rows)
        config = mutated(row["config"], chance)
        plan = {"method": chance.choice(["full", "lora", "qlora"])}
        try:
            found = about(counted(typed(config, row["id"])), config, row["hub_total"] or chance.randrange(10**12))
            least = floor(
                Scenario.model_validate({"model": {"config": config}, "plan": plan}), found.model, found.checkpoint
            )
        except (ConfigError, UnknownArchitecture, Refused) as error:
            assert 10 < len(str(error)) < 400
        else:
            assert least.peak.allocated > 0
            known += 1

    assert known > 300
