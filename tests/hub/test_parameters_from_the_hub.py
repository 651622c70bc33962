"""Parameters of any repository: its config.json where the type is known, else the tensors that it stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fake_hub import LLAMA, FakeHub, Fault, Weights, llama_tensors, sharded
from shown import figures
from streamlit.testing.v1 import AppTest

from calc import hub
from calc.catalog.models import MODELS
from calc.hub import StoredTensor, StoredTensors
from calc.model import ConfigError, typed
from calc.model.about import about
from calc.model.counting import Counted, counted, uncountable
from calc.model.quantized_checkpoint import quantized_checkpoint
from calc.model.stored_tensors import of_tensors, role_of
from calc.units import Bytes
from pages.parts import texts

UNKNOWN = {"model_type": "wholly_new", "tie_word_embeddings": True}
STRANGE = "nvidia/Llama-3_3-Nemotron-Super-49B-v1"
"""A model of the catalogue whose architecture is not known."""


def params(server: FakeHub, id: str) -> dict[str, Any]:
    """What the command line says of a repository on that Hub."""
    done = subprocess.run(
        [sys.executable, "-m", "calc", "params", "--all", id],
        capture_output=True, text=True, check=False, timeout=60, cwd=Path(__file__).parents[2],
        env={**os.environ, "HF_ENDPOINT": server.endpoint, "HF_HUB_DISABLE_TELEMETRY": "1"},
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def read(server: FakeHub, id: str, config: dict[str, Any]) -> Counted:
    found = hub.safetensors_shapes(id, endpoint=server.endpoint)
    assert isinstance(found, StoredTensors), found
    return of_tensors(found.tensors, config)


def test_a_repository_of_an_unknown_type_is_counted_by_its_tensors(server: FakeHub) -> None:
    """To the element, from one file or from shards; embeddings, layers and norms told apart by their names."""
    tensors = llama_tensors()
    elements = sum(_size(shape) for _, shape in tensors.values())
    server.add("acme/new", {"config.json": UNKNOWN, "model.safetensors": Weights(tensors)})
    server.add("acme/large", {"config.json": UNKNOWN, **sharded(tensors, 3)})
    for id in ("acme/new", "acme/large"):
        found = read(server, id, {"model_type": "wholly_new"})
        assert found.total == elements
        assert found.numel("embedding") == found.numel("head") > 0
        assert found.numel("linear", "norm", "embedding", "head") == elements


def test_the_command_line_falls_back_on_the_tensors(server: FakeHub) -> None:
    """The type is not known, so the notes say where the number comes from."""
    server.add("acme/new", {"config.json": UNKNOWN, "model.safetensors": Weights(llama_tensors())})
    answer = params(server, "acme/new")
    assert "error" not in answer, answer
    assert not answer["activations_modelled"]
    assert answer["notes"][0].startswith("counted from the repository's stored tensors")


def test_a_known_type_is_counted_by_its_config(server: FakeHub) -> None:
    """No request for tensors."""
    config = dict(MODELS["TinyLlama/TinyLlama-1.1B-Chat-v1.0"].config)
    server.add("acme/tiny-copy", {"config.json": config})
    assert params(server, "acme/tiny-copy")["total"] == 1_100_048_384
    assert not [seen for seen in server.seen if "safetensors" in seen.path]


def test_a_repository_that_is_not_there_is_an_error_object(server: FakeHub) -> None:
    """With the sentence of the Hub's client."""
    error = params(server, "acme/nothing")["error"]
    assert ("unknown_name", "model") == (error["code"], error["field"])
    assert "does not exist on the Hub or is private" in error["message"]


def test_a_scenario_may_name_a_model_that_only_the_hub_has(server: FakeHub) -> None:
    """The command line asks the Hub; the answer is that of the same config.json."""
    server.add("acme/tiny-llama", {"config.json": LLAMA})
    plan = {"seq_len": 64}
    lines = "".join(
        json.dumps({"model": model, "plan": plan}) + "\n" for model in ("acme/tiny-llama", {"config": LLAMA})
    )
    done = subprocess.run(
        [sys.executable, "-m", "calc", "estimate", "-"], input=lines,
        capture_output=True, text=True, check=False, timeout=60, cwd=Path(__file__).parents[2],
        env={**os.environ, "HF_ENDPOINT": server.endpoint, "HF_HUB_DISABLE_TELEMETRY": "1"},
    )  # fmt: skip
    first, second = map(json.loads, done.stdout.splitlines())
    assert "error" not in first
    assert first == second


def test_a_thousand_shards_of_tensors_are_read_in_one_question(server: FakeHub) -> None:
    """The main branch of a sharded repository takes two requests, however many files there are."""
    tensors = {f"model.layers.{i}.mlp.up_proj.weight": ("BF16", [64, 64]) for i in range(4000)}
    server.add("acme/huge", {"config.json": UNKNOWN, **sharded(tensors, 200)})
    start = time.monotonic()
    assert read(server, "acme/huge", {}).total == 4000 * 64 * 64
    assert len(server.seen) == 2
    assert time.monotonic() - start < hub.TIME_LIMIT


def _size(shape: list[int]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


def tensor(name: str, *shape: int, dtype: str = "BF16") -> StoredTensor:
    return StoredTensor(name, shape, dtype, Bytes(0))


def test_a_tied_head_and_buffers_are_left_out() -> None:
    """Each with a note."""
    tensors = [
        tensor("model.embed_tokens.weight", 100, 8),
        tensor("lm_head.weight", 100, 8),
        tensor("model.rotary_emb.inv_freq", 4, dtype="F32"),
        tensor("model.position_ids", 1, 64, dtype="I64"),
    ]
    tied, untied = of_tensors(tensors, UNKNOWN), of_tensors(tensors, {})
    assert (800, 1600) == (tied.total, untied.total)
    assert "the head is tied to the embeddings, so its stored copy is left out" in tied.notes
    assert "2 stored buffers are left out" in untied.notes


def test_scales_beside_fp8_weights_are_left_out() -> None:
    """The weights count as they are."""
    tensors = [tensor("model.layers.0.q_proj.weight", 8, 8, dtype="F8_E4M3"), tensor("model.layers.0.q_proj.weight_scale_inv", 1, 1, dtype="F32")]  # fmt: skip
    found = of_tensors(tensors, {"quantization_config": {"quant_method": "fp8"}})
    assert found.total == 64
    assert "scales beside quantised weights are left out" in found.notes


def test_packed_weights_cannot_be_counted() -> None:
    """Several in one element: that is said instead of a wrong number."""
    with pytest.raises(ConfigError, match="hold I32, which packs weights"):
        of_tensors([tensor("model.layers.0.q_proj.qweight", 8, 8, dtype="I32")], {})


def test_experts_count_by_the_share_that_a_token_passes() -> None:
    """Stacked or one by one; without the two numbers in config.json all are active, and a note says so."""
    tensors = [tensor(f"model.layers.0.mlp.experts.{i}.up_proj.weight", 8, 8) for i in range(4)]
    found = of_tensors(tensors, {"num_experts": 4, "num_experts_per_tok": 1})
    assert (256, 64) == (found.total, found.active)
    untold = of_tensors(tensors, {})
    assert untold.active == untold.total
    assert any("how many experts" in note for note in untold.notes)


def test_stored_tensors_say_what_tables_and_families_say() -> None:
    """For every model of the catalogue: the tensors, named as its class names them, give its total and its roles."""
    seen, strange = 0, set()
    for model in MODELS.values():
        try:
            known = counted(typed(model.config, model.id))
        except ValueError:
            continue
        if model.model_type.startswith("fuyu") or max(p.count for p in known.parameters) > 400:
            continue
        tensors = [
            tensor(_numbered(p.name, i), *p.shape) for p in known.parameters for i in range(p.count)
        ]  # fmt: skip
        found = of_tensors(tensors, {})
        buffers = sum(1 for note in found.notes if "buffers" in note)
        seen += 1
        assert buffers or found.total == known.total, model.id
        strange |= {
            (p.role, role_of(p.name, p.shape), p.name)
            for p in known.parameters
            if p.role in ("embedding", "head", "expert") and role_of(p.name, p.shape) != p.role
        }
    assert seen > 500
    assert set() == strange


def _numbered(name: str, i: int) -> str:
    return name.replace("*", str(i)) if "*" in name else (f"{name}.{i}" if i else name)


def test_tensors_come_with_the_config_only_where_it_does_not_tell(server: FakeHub) -> None:
    """One call, one time limit: a known type asks for no tensors, and a repository without any says so in a note."""
    server.add("acme/new", {"config.json": UNKNOWN, "model.safetensors": Weights(llama_tensors())})
    server.add("acme/known", {"config.json": {"model_type": "llama"}, "model.safetensors": Weights(llama_tensors())})
    server.add("acme/pickled", {"config.json": UNKNOWN, "pytorch_model.bin": b"x"})
    found = {
        id: hub.repository(f"acme/{id}", endpoint=server.endpoint, needs_tensors=uncountable)
        for id in ("new", "known", "pickled")
    }
    new, known, pickled = (found[id] for id in found)
    assert isinstance(new, hub.Repository)
    assert new.tensors is not None
    assert isinstance(known, hub.Repository)
    assert known.tensors is None
    assert isinstance(pickled, hub.Repository)
    assert pickled.tensors is None
    assert pickled.notes[-1].startswith("acme/pickled has no weights in safetensors format")


def test_slow_tensors_do_not_outlast_the_limit(server: FakeHub, short: float) -> None:
    """The whole call is bounded, not each of its requests."""
    server.add("acme/new", {"config.json": UNKNOWN, "model.safetensors": Weights(llama_tensors())})
    server.fault("model.safetensors", Fault(delay=20 * short))
    start = time.monotonic()
    answer = hub.repository("acme/new", endpoint=server.endpoint, needs_tensors=uncountable)
    assert isinstance(answer, hub.HubFailure)
    assert answer.code == "timeout"
    assert time.monotonic() - start < 4 * short


def test_a_quantisation_that_only_modelopt_declares_is_read(server: FakeHub) -> None:
    """hf_quant_config.json beside a config.json that says nothing of it."""
    declared = {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}}
    server.add("acme/nv", {"config.json": {"model_type": "llama"}, "hf_quant_config.json": declared})
    found = hub.repository("acme/nv", endpoint=server.endpoint)
    assert isinstance(found, hub.Repository)
    checkpoint = quantized_checkpoint(found.config)
    assert checkpoint is not None
    assert ("modelopt", ("lm_head",)) == (checkpoint.method.id, checkpoint.spared)
    known = about(counted(found.config), found.config)
    assert known.load is not None
    assert known.load < known.model.total


# ------------------------------------------------------------------------------------------------ on the page


def opened(server: FakeHub, monkeypatch: pytest.MonkeyPatch, query: dict[str, str]) -> AppTest:
    """The Fit page of a server whose HF_ENDPOINT is this Hub, which huggingface_hub reads at import into two constants."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.endpoint)
    template = f"{server.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    app = AppTest.from_file(str(Path(__file__).parents[2] / "app.py"), default_timeout=240)
    app.query_params.update({"v": "1", **query})
    app.context["locale"] = "en-US"
    app.run()
    assert not app.exception
    return app


def test_the_page_shows_what_is_known_of_a_repository_of_an_unknown_type(
    server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, gradients and optimizer states of its stored tensors, to the byte, and that the activations are not modelled."""
    tensors = llama_tensors()
    elements = sum(_size(shape) for _, shape in tensors.values())
    server.add("acme/new", {"config.json": {"model_type": "wholly_new"}, "model.safetensors": Weights(tensors)})

    app = opened(server, monkeypatch, {"model": "acme/new", "method": "full", "gpu": "rtx-4090"})

    assert texts.text("verdict.unknown", "en") in app.title[0].value
    assert "the activations are not modelled" in app.title[0].value
    assert f"{elements:,}" in "\n".join(frame.value.to_string() for frame in app.table)
    least = 8 * elements + 4 * len(tensors) + 8 * 8 * 2048
    assert str(Bytes(least)) in figures(app)


def test_the_page_explains_the_stored_total_of_a_model_from_the_hub(
    server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tied head that the repository stores a second time."""
    config = {**LLAMA, "tie_word_embeddings": True}
    server.add("acme/twice", {"config.json": config, "model.safetensors": Weights(llama_tensors())})

    app = opened(server, monkeypatch, {"model": "acme/twice"})

    words = " ".join(str(element.value) for element in app.markdown).replace("\\", "")
    assert "is stored a second time" in words


def test_a_model_of_the_catalogue_whose_config_does_not_tell_is_read_from_the_hub(
    server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An architecture that is not known: its stored tensors where the Hub answers, one sentence where it does not."""
    config, tensors = dict(MODELS[STRANGE].config), llama_tensors()
    server.add(STRANGE, {"config.json": config, "model.safetensors": Weights(tensors)})
    elements = sum(_size(shape) for _, shape in tensors.values())

    app = opened(server, monkeypatch, {"model": STRANGE})

    assert f"{elements:,}" in "\n".join(frame.value.to_string() for frame in app.table)
    hub.forget()
    server.fault("/api/models", Fault(status=500))
    app = opened(server, monkeypatch, {"model": STRANGE})
    assert "is not modelled yet" in app.title[0].value
    assert any("The Hub failed to answer" in str(caption.value).replace("\\", "") for caption in app.caption)
