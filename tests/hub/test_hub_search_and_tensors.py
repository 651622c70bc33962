"""Search finds what is downloaded most; the headers of safetensors files tell every tensor in one or two questions."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from fake_hub import ALICE, BOB, FakeHub, Fault, Weights, llama_tensors, sharded

from calc import hub
from calc.hub import HubFailure, SearchHit, StoredTensor, StoredTensors
from calc.units import Bytes


def hits(server: FakeHub, text: str, **how: Any) -> tuple[SearchHit, ...]:
    answer = hub.search(text, endpoint=server.endpoint, **how)
    assert isinstance(answer, tuple), answer
    return answer


def tensors(server: FakeHub, text: str, **how: Any) -> StoredTensors:
    answer = hub.safetensors_shapes(text, endpoint=server.endpoint, **how)
    assert isinstance(answer, StoredTensors), answer
    return answer


def refused(server: FakeHub, text: str, **how: Any) -> str:
    answer = hub.safetensors_shapes(text, endpoint=server.endpoint, **how)
    assert isinstance(answer, HubFailure), answer
    return answer.code


def test_search_finds_the_most_downloaded_first(cast: FakeHub) -> None:
    found = hits(cast, "acme", limit=3)
    assert (
        SearchHit("acme/tiny", 900_000, 10, False, "text-generation", "transformers", 123_712),
        SearchHit("acme/gated", 70_000, 10, True, "text-generation", "transformers", 123_712),
        SearchHit("acme/sharded", 5_000, 10, False, "text-generation", "transformers", 123_712),
    ) == found
    assert 1 == len(cast.seen)


def test_a_pasted_link_is_searched_by_its_id(cast: FakeHub) -> None:
    assert ["acme/sharded"] == [hit.id for hit in hits(cast, "https://huggingface.co/acme/sharded/tree/main")]
    assert [["acme/sharded"]] == [seen.query["search"] for seen in cast.seen]


def test_search_shows_private_models_to_their_reader_only(cast: FakeHub) -> None:
    assert [] == [hit.id for hit in hits(cast, "private")]
    assert ["acme/private"] == [hit.id for hit in hits(cast, "private", token=ALICE)]
    assert [] == [hit.id for hit in hits(cast, "private", token=BOB)]
    assert [] == [hit.id for hit in hits(cast, "private")]


@pytest.mark.parametrize("text", ["", "a", " \n", "&?#"])
def test_a_search_for_nearly_nothing_asks_nothing(cast: FakeHub, text: str) -> None:
    answer = hub.search(text, endpoint=cast.endpoint)
    assert isinstance(answer, HubFailure)
    assert "search_too_short" == answer.code
    assert not cast.seen


def test_typed_text_cannot_become_other_parameters(cast: FakeHub) -> None:
    hits(cast, "llama&limit=9999#x ../é", limit=9999)
    assert {"search", "sort", "limit", "expand"} == set(cast.seen[0].query)
    assert (["llama limit 9999 x ../é"], ["50"]) == (cast.seen[0].query["search"], cast.seen[0].query["limit"])


def test_rows_that_are_no_models_are_left_out(server: FakeHub) -> None:
    rows = [None, 7, {}, {"id": 7}, {"id": "<b>"}, {"id": "acme/x", "downloads": "many", "likes": -1, "gated": "auto"}]
    server.fault("/api/models", Fault(body=json.dumps(rows).encode()))
    assert (SearchHit("acme/x", gated=True),) == hits(server, "acme")
    hub.forget()
    server.heal()
    server.fault("/api/models", Fault(body=b'{"error": 1}'))
    answer = hub.search("acme", endpoint=server.endpoint)
    assert isinstance(answer, HubFailure)
    assert "not_a_hub" == answer.code


EXPECTED = {
    name: StoredTensor(name, tuple(shape), dtype, Bytes(2 * shape[0] * (shape[1] if len(shape) > 1 else 1)))
    for name, (dtype, shape) in llama_tensors().items()
}


def test_all_shards_are_told_in_one_question(cast: FakeHub) -> None:
    answer = tensors(cast, "acme/sharded")
    assert EXPECTED == {tensor.name: tensor for tensor in answer.tensors}
    assert 123_712 == sum(tensor.elements for tensor in answer.tensors)
    assert 2 == len(cast.seen)
    assert not cast.seen_by_cdn


def test_another_revision_is_read_shard_by_shard(cast: FakeHub) -> None:
    answer = tensors(cast, "acme/sharded", revision="next")
    assert EXPECTED == {tensor.name: tensor for tensor in answer.tensors}
    assert cast.repos["acme/sharded"].commit("next") == answer.commit
    assert 2 == len(cast.seen_by_cdn)


def test_a_hub_that_cannot_tell_all_at_once_is_read_shard_by_shard(server: FakeHub) -> None:
    server.sharded_metadata = False
    server.add("acme/sharded", sharded(llama_tensors(), 5))
    assert EXPECTED == {tensor.name: tensor for tensor in tensors(server, "acme/sharded").tensors}
    assert 5 == len(server.seen_by_cdn)


def test_one_file_is_read_by_its_header_alone(cast: FakeHub) -> None:
    assert EXPECTED == {tensor.name: tensor for tensor in tensors(cast, "acme/tiny").tensors}
    assert [f"bytes=0-{hub.FIRST_BYTES - 1}"] == [seen.headers["range"] for seen in cast.seen_by_cdn]


def test_a_long_header_is_read_in_two_parts(server: FakeHub) -> None:
    many = {f"model.layers.{n}.weight": ("F32", [2, 3]) for n in range(3000)}
    weights = Weights(many)
    assert len(weights.head) > hub.FIRST_BYTES
    server.add("acme/many", {"model.safetensors": weights})
    assert 18_000 == sum(tensor.elements for tensor in tensors(server, "acme/many").tensors)
    assert 2 == len(server.seen_by_cdn)


def test_a_server_that_sends_whole_files_is_cut_off(server: FakeHub) -> None:
    """Range is a request, not an order: the header is taken and the connection closed."""
    server.add("acme/tiny", {"model.safetensors": Weights(llama_tensors())})
    whole = Weights(llama_tensors()).head
    server.fault("cdn:", Fault(status=200, endless=whole + bytes(hub.FIRST_BYTES)))
    assert EXPECTED == {tensor.name: tensor for tensor in tensors(server, "acme/tiny").tensors}


def file(header: Any, *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text


@pytest.mark.parametrize(
    "content",
    [
        b"short",
        file({}),
        file([]),
        file(b"{"),
        file({}, length=2**60),
        file({"x": 1}),
        file({"x": {"dtype": "F32", "shape": [2, -1], "data_offsets": [0, 4]}}),
        file({"x": {"dtype": "F32", "shape": "2", "data_offsets": [0, 4]}}),
        file({"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}),
        file({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}),
        file({"x": {"dtype": 7, "shape": [1], "data_offsets": [0, 4]}}),
        file({"x": {"dtype": "F32", "shape": [1] * 40, "data_offsets": [0, 4]}}),
        file({"x": {"dtype": "F32", "shape": [2**70], "data_offsets": [0, 4]}}),
    ],
)
def test_a_broken_weight_file_is_told(server: FakeHub, content: bytes) -> None:
    server.add("acme/broken", {"model.safetensors": content})
    assert "bad_safetensors" == refused(server, "acme/broken")
    assert 1 == len(server.seen_by_cdn), "more was read of a file that is known to be broken"


def test_an_index_can_only_name_its_own_shards(server: FakeHub) -> None:
    server.sharded_metadata = False
    for name in (
        "../../acme/other/model.safetensors",
        "https://evil.example/x.safetensors",
        "a/b.safetensors",
        "x.bin",
    ):
        server.add("acme/evil", {"model.safetensors.index.json": {"weight_map": {"w": name}}})
        assert "bad_safetensors" == refused(server, "acme/evil")
        hub.forget()
    assert not server.seen_by_cdn


def test_very_many_shards_are_not_asked_one_by_one(server: FakeHub) -> None:
    server.sharded_metadata = False
    many = {f"w{n}": ("F32", [1]) for n in range(hub.SHARD_LIMIT + 1)}
    server.add("acme/many", sharded(many, hub.SHARD_LIMIT + 1))
    assert "too_many_shards" == refused(server, "acme/many")
    assert not server.seen_by_cdn


@pytest.mark.parametrize(
    ("id", "token", "code"),
    [
        ("acme/gguf", None, "no_safetensors"),
        ("acme/gated", None, "gated"),
        ("acme/gated", BOB, "not_granted"),
        ("acme/private", None, "not_found"),
        ("acme/nothing", None, "not_found"),
        ("acme/limited", BOB, "rate_limited"),
        ("llama3:8b", None, "ollama_tag"),
    ],
)
def test_what_keeps_tensors_from_being_read_is_told(cast: FakeHub, id: str, token: str | None, code: str) -> None:
    assert code == refused(cast, id, token=token)


def test_tensors_of_any_format_are_counted_exactly(server: FakeHub) -> None:
    """The format is kept as written, even an unknown one; bytes are told by the tensor's place in the file."""
    header = {
        "w": {"dtype": "F4", "shape": [4, 8], "data_offsets": [0, 16]},
        "s": {"dtype": "F8_E4M3", "shape": [], "data_offsets": [16, 17]},
    }
    server.add("acme/new", {"model.safetensors": file(header)})
    answer = tensors(server, "acme/new")
    assert (StoredTensor("w", (4, 8), "F4", Bytes(16)), StoredTensor("s", (), "F8_E4M3", Bytes(1))) == answer.tensors
    assert [32, 1] == [tensor.elements for tensor in answer.tensors]
