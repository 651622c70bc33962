"""The real client reads a repository's config and facts; each thing that can be wrong has its own sentence."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fake_hub import ALICE, BOB, LLAMA, FakeHub, Fault
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calc import hub
from calc.hub import Adapter, HubFailure, Repository, Stored


def read(server: FakeHub, text: str, **how: Any) -> Repository:
    answer = hub.repository(text, endpoint=server.endpoint, **how)
    assert isinstance(answer, Repository), answer
    return answer


def refused(server: FakeHub, text: str, **how: Any) -> HubFailure:
    answer = hub.repository(text, endpoint=server.endpoint, **how)
    assert isinstance(answer, HubFailure), answer
    return answer


def test_a_model_is_its_config_at_one_commit_with_its_facts(cast: FakeHub) -> None:
    """config.json is read at the very commit that the facts are of, in two questions to the Hub."""
    answer = read(cast, "https://huggingface.co/acme/tiny")
    commit = cast.repos["acme/tiny"].commit("main")
    assert ("acme/tiny", "main", commit) == (answer.id, answer.revision, answer.commit)
    assert answer.config == LLAMA
    assert answer.notes == ()
    assert answer.adapter is None
    assert (Stored("BF16", 123_712),) == answer.facts.stored
    assert 123_712 == answer.facts.stored_total
    assert ("LlamaForCausalLM",) == answer.facts.architectures
    assert ("no", False, "transformers", "llama") == (
        answer.facts.gated,
        answer.facts.private,
        answer.facts.library,
        answer.facts.model_type,
    )
    assert "2026-01-02T03:04:05.000Z" == answer.facts.last_modified
    assert "model.safetensors" in answer.facts.files
    assert [
        "/api/models/acme/tiny",
        f"/acme/tiny/resolve/{commit}/config.json",
        f"/api/resolve-cache/models/acme/tiny/{commit}/config.json",
    ] == [request.path for request in cast.seen]


@pytest.mark.parametrize(("revision", "layers"), [("v1", 1), ("refs/pr/7", 7), ("main", 2)])
def test_a_revision_is_followed(cast: FakeHub, revision: str, layers: int) -> None:
    """By argument, by link and by commit."""
    by_argument = read(cast, "acme/tiny", revision=revision)
    assert layers == by_argument.config["num_hidden_layers"]
    assert revision == by_argument.revision
    by_link = read(cast, f"https://huggingface.co/acme/tiny/tree/{revision.replace('/', '%2F')}")
    assert by_argument == by_link
    assert layers == read(cast, "acme/tiny", revision=by_argument.commit).config["num_hidden_layers"]
    assert layers == read(cast, "acme/tiny@other", revision=revision).config["num_hidden_layers"]


@pytest.mark.parametrize(
    "revision", ["../../../pwn", "a/../../b", "a//b", "-x", "a b", "%2e%2e", "x" * 129, "a\nb", "é"]
)
def test_a_revision_that_could_leave_its_place_is_never_sent(cast: FakeHub, revision: str) -> None:
    assert "bad_revision" == refused(cast, "acme/tiny", revision=revision).code
    assert not cast.seen


def test_a_link_into_a_folder_says_that_the_root_was_read(cast: FakeHub) -> None:
    answer = read(cast, "https://huggingface.co/acme/tiny/tree/main/checkpoint-500")
    assert ("The link points into a folder of the repository; the config.json of its root was read.",) == answer.notes


def test_a_renamed_repository_is_followed_and_told(cast: FakeHub) -> None:
    answer = read(cast, "acme/old-name")
    assert "acme/renamed" == answer.id
    assert ("acme/old-name is called acme/renamed now.",) == answer.notes


@pytest.mark.parametrize(
    ("id", "token", "code"),
    [
        ("acme/nothing-here", None, "not_found"),
        ("acme/nothing-here", BOB, "not_found_with_token"),
        ("acme/private", None, "not_found"),
        ("acme/private", BOB, "not_found_with_token"),
        ("acme/gated", None, "gated"),
        ("acme/gated", BOB, "not_granted"),
        ("acme/disabled", None, "disabled"),
        ("acme/no-config", None, "no_config"),
        ("acme/empty", None, "no_model"),
        ("acme/gguf", None, "gguf_of"),
        ("acme/gguf-orphan", None, "gguf_only"),
        ("acme/adapter-local", None, "adapter_without_base"),
        ("acme/adapter-loop", None, "adapter_without_base"),
        ("acme/adapter-of-gated", None, "gated"),
        ("acme/diffusers", None, "diffusers"),
        ("acme/unet", None, "diffusers"),
        ("acme/native", None, "native_format"),
        ("acme/not-json", None, "not_json"),
        ("acme/html", None, "not_json"),
        ("acme/list", None, "bad_config"),
        ("acme/huge", None, "too_large"),
        ("acme/broken", None, "server_error"),
        ("acme/dropped", None, "interrupted"),
        ("acme/limited", BOB, "rate_limited"),
        ("acme/tiny", "hf_NobodyHasThisToken00000000000", "invalid_token"),
        ("acme/tiny", "hf_bad token", "bad_token"),
    ],
)
def test_each_thing_that_can_be_wrong_has_its_sentence(cast: FakeHub, id: str, token: str | None, code: str) -> None:
    answer = refused(cast, id, token=token)
    assert code == answer.code
    assert "{" not in answer.message
    if "{repository}" in hub.SENTENCES[answer.code]:
        assert id in answer.message
    assert token is None or token not in repr(answer)


def test_a_missing_revision_is_not_a_missing_repository(cast: FakeHub) -> None:
    answer = refused(cast, "acme/tiny", revision="v9")
    assert "no_revision" == answer.code
    assert "acme/tiny has no revision v9" in answer.message


def test_a_commit_that_vanishes_between_two_questions_is_told(server: FakeHub) -> None:
    """As after a force push: the facts name a commit that the files no longer know."""
    server.add("acme/tiny", {"config.json": LLAMA}, sha="f" * 40)
    answer = refused(server, "acme/tiny")
    assert "no_revision" == answer.code
    assert "acme/tiny has no revision main" in answer.message


def test_a_gated_model_says_where_to_ask_and_what_is_public(cast: FakeHub) -> None:
    """The licence page by address, and the facts that the Hub shows to everyone."""
    answer = refused(cast, "acme/gated")
    assert "https://huggingface.co/acme/gated" in answer.message
    assert answer.facts is not None
    assert ("manual", 123_712) == (answer.facts.gated, answer.facts.stored_total)
    assert LLAMA == read(cast, "acme/gated", token=ALICE).config
    assert LLAMA == read(cast, "acme/private", token=f"  {ALICE}\n").config


def test_a_gguf_repository_names_the_model_it_was_made_from(cast: FakeHub) -> None:
    answer = refused(cast, "acme/gguf")
    assert "acme/tiny" == answer.base_model
    assert answer.message.endswith("enter the model they were made from, acme/tiny.")


def test_an_adapter_leads_to_its_base(cast: FakeHub) -> None:
    """The base's config and facts, with the adapter's own settings beside them."""
    answer = read(cast, "acme/adapter")
    assert ("acme/tiny", LLAMA, 123_712) == (answer.id, answer.config, answer.facts.stored_total)
    assert Adapter("acme/adapter", "LORA", 16, 32.0, ("q_proj", "v_proj")) == answer.adapter
    assert ("acme/adapter holds only an adapter; this is its base, acme/tiny.",) == answer.notes


def test_an_adapter_of_itself_is_read_once(cast: FakeHub) -> None:
    assert "adapter_without_base" == refused(cast, "acme/adapter-loop").code
    assert 3 == len(cast.seen)


def test_an_adapter_of_a_local_folder_is_followed_by_its_card(cast: FakeHub) -> None:
    assert "acme/tiny" == read(cast, "acme/adapter-carded").id


def test_what_is_wrong_with_a_base_is_told_of_the_base(cast: FakeHub) -> None:
    answer = refused(cast, "acme/adapter-of-gated")
    assert ("acme/gated", "acme/adapter-of-gated") == (answer.repository, answer.adapter)
    assert answer.message.startswith("acme/adapter-of-gated is an adapter for acme/gated, and acme/gated is gated:")
    assert "acme/gated" == read(cast, "acme/adapter-of-gated", token=ALICE).id


def test_adapters_on_adapters_end(server: FakeHub) -> None:
    """A chain is followed a few steps only, and a circle is one."""
    for step in range(6):
        server.add(f"acme/{step}", {"adapter_config.json": {"base_model_name_or_path": f"acme/{step + 1}"}})
    server.add("acme/6", {"config.json": LLAMA})
    answer = refused(server, "acme/0")
    assert "adapter_without_base" == answer.code
    assert "acme/0" == answer.adapter
    assert 4 * 3 == len(server.seen)
    assert ("acme/6", "acme/4") == ((found := read(server, "acme/4")).id, found.adapter.id if found.adapter else "")


@pytest.mark.parametrize(
    ("id", "quantization"), [("acme/quantised", "gptq 4-bit"), ("acme/modelopt", "NVFP4"), ("acme/tiny", "")]
)
def test_quantised_weights_are_told(cast: FakeHub, id: str, quantization: str) -> None:
    answer = read(cast, id)
    assert quantization == answer.facts.quantization
    assert bool(quantization) == ("quantised" in "".join(answer.notes))


def test_code_in_a_repository_is_neither_fetched_nor_run(cast: FakeHub) -> None:
    answer = read(cast, "acme/remote-code")
    assert answer.facts.remote_code
    assert "never run" in answer.notes[0]
    assert {"config.json", "remote-code"} == {request.path.rpartition("/")[2] for request in cast.seen}


def test_a_large_config_file_in_the_hubs_storage_is_followed(server: FakeHub) -> None:
    """Some repositories keep even their config.json in large-file storage, which is another server."""
    server.add("acme/lfs", {"config.json": LLAMA})
    server.fault(
        "/acme/lfs/resolve/", Fault(status=302, headers={"Location": f"{server.cdn}/acme/lfs/{'0' * 40}/config.json"})
    )
    assert LLAMA == read(server, "acme/lfs", token=_known(server)).config
    assert [None] == [request.token for request in server.seen_by_cdn]


def _known(server: FakeHub) -> str:
    server.account(BOB)
    return BOB


# ------------------------------------------------------------------------------------------------ odd JSON


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"a": 1} x', "not_json"),
        (b"../../blobs/c360", "not_json"),
        (b"version https://git-lfs.github.com/spec/v1", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, None),
        (b'{"a":' * 80 + b"1" + b"}" * 80, "bad_config"),
        (b'{"a":' * 80 + b"[]" + b"}" * 80, "bad_config"),
        (b'{"a": "\\ud800"}', "not_json"),
        (b'{"\\udfff": 1}', "not_json"),
        ('{"a": 1}'.encode("utf-16"), "not_json"),
        (b'{"a": "\xff"}', "not_json"),
        (b'\xef\xbb\xbf{"a": "\xc3\xa9"}', None),
        (b"null", "bad_config"),
        (b'"text"', "bad_config"),
        (b"<!DOCTYPE html><html><title>Sign in</title></html>", "not_a_hub"),
    ],
)
def test_only_sane_json_is_a_config(server: FakeHub, raw: bytes, code: str | None) -> None:
    server.add("acme/odd", {"config.json": raw})
    answer = hub.repository("acme/odd", endpoint=server.endpoint)
    assert code == (answer.code if isinstance(answer, HubFailure) else None)


def test_numbers_that_no_model_has_are_kept_as_text_and_told(server: FakeHub) -> None:
    """Infinity is in real configs (Mamba's time_step_limit); it must neither fail the file nor reach arithmetic."""
    digits = "9" * 5000
    raw = (
        '{"a": NaN, "b": [0.0, Infinity], "c": -Infinity, "d": 1e999, "e": 9223372036854775807,'
        f' "f": 9223372036854775808, "g": {digits}, "h": -1.5, "i": 1e6}}'
    )
    server.add("acme/odd", {"config.json": raw})
    answer = read(server, "acme/odd")
    assert {
        "a": "NaN",
        "b": [0.0, "Infinity"],
        "c": "-Infinity",
        "d": "1e999",
        "e": 2**63 - 1,
        "f": str(2**63),
        "g": digits,
        "h": -1.5,
        "i": 1e6,
    } == answer.config
    assert ("config.json holds a number that is not finite or beyond 64 bits; it is kept as text.",) == answer.notes


def test_a_key_stated_twice_is_told_and_the_last_counts(server: FakeHub) -> None:
    server.add("acme/odd", {"config.json": '{"hidden_size": 1, "x": {"<b>": 1, "<b>": 2}, "hidden_size": 2}'})
    answer = read(server, "acme/odd")
    assert 2 == answer.config["hidden_size"]
    assert (
        "config.json states a key twice; the last value counts, as it does in Transformers.",
        "config.json states hidden_size twice; the last value counts, as it does in Transformers.",
    ) == answer.notes


# ------------------------------------------------------------------------------------------------ a Hub that is none


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(body=b"<html>Sign in</html>"), "not_a_hub"),
        (Fault(body=b"[]"), "not_a_hub"),
        (Fault(body=b"{}"), "not_a_hub"),
        (Fault(body=b'{"id": 7}'), "not_a_hub"),
        (Fault(body=b'{"id": "../../etc"}'), "not_a_hub"),
        (Fault(body=b'{"id": "<img src=x>"}'), "not_a_hub"),
        (Fault(headers={"Content-Encoding": "gzip"}), "not_a_hub"),
        (Fault(status=404), "not_a_hub"),
        (Fault(status=204), "server_error"),
        (Fault(status=304), "server_error"),
        (Fault(status=400), "server_error"),
        (Fault(status=403), "server_error"),
        (Fault(status=500, body=b"x" * 2_000_000), "server_error"),
        (Fault(cut=20), "interrupted"),
        (Fault(status=302, headers={"Location": "http://localhost:1/api/models/acme/tiny"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "http://169.254.169.254/latest"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "http://huggingface.co/api/models/acme/tiny"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "https://huggingface.co.evil.example/"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "https://nothuggingface.co/"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "file:///etc/passwd"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "//evil.example/"}), "strange_redirect"),
        (Fault(status=307, headers={"Location": "/api/models/acme/tiny"}), "strange_redirect"),
        (Fault(status=302, headers={"Location": "http://[broken/"}), "strange_redirect"),
        (Fault(status=302), "server_error"),
    ],
)
def test_answers_that_no_hub_gives_are_failures(server: FakeHub, fault: Fault, code: str) -> None:
    """A sign-in page, a redirect into the operator's network, packed bodies, a loop."""
    server.add("acme/tiny", {"config.json": LLAMA})
    server.fault("/api/models/acme/tiny", fault)
    answer = refused(server, "acme/tiny")
    assert code == answer.code
    assert "evil" not in repr(answer)
    assert 7 > len(server.seen)


@pytest.mark.parametrize("endpoint", ["ftp://127.0.0.1", "127.0.0.1:80", "http://", "file:///etc", "https://[broken"])
def test_an_endpoint_that_is_no_web_address_is_told(endpoint: str) -> None:
    hub.forget()
    answer = hub.repository("acme/tiny", endpoint=endpoint)
    assert isinstance(answer, HubFailure)
    assert "not_a_hub" == answer.code


def test_a_dead_hub_is_told(server: FakeHub) -> None:
    server.close()
    assert "no_network" == refused(server, "acme/tiny").code


def test_an_offline_server_asks_nothing(server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "offline" == refused(server, "acme/tiny").code
    assert not server.seen


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["acme/tiny", "main"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
FIELDS = st.from_regex(
    "id|sha|gated|private|tags|cardData|base_model|safetensors|parameters|total|siblings|rfilename|config|auto_map|"
    "architectures|library_name|likes|quantization_config|bits|target_modules|base_model_name_or_path",
    fullmatch=True,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    facts=st.dictionaries(
        FIELDS, JSON | st.dictionaries(FIELDS, JSON) | st.lists(st.dictionaries(FIELDS, JSON)), max_size=8
    ),
    config=st.dictionaries(FIELDS | st.just("_class_name"), JSON | st.dictionaries(FIELDS, JSON), max_size=6),
)
def test_no_answer_of_a_hub_is_a_surprise(cast: FakeHub, facts: dict[str, Any], config: dict[str, Any]) -> None:
    """Whatever types the facts and the config have, the answer is a repository or a failure with a known reason."""
    hub.forget()
    cast.add("acme/fuzz", {"config.json": config, "adapter_config.json": config}).facts.update(facts)
    answer = hub.repository("acme/fuzz", endpoint=cast.endpoint)
    if isinstance(answer, HubFailure):
        assert "unexpected" != answer.code
    else:
        assert isinstance(answer.config, dict)
        assert re.fullmatch(r"[A-Za-z0-9._/-]+", answer.id)
