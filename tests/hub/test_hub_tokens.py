"""A visitor's token serves that visitor only, and the operator's serves nobody here."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_hub import ALICE, BOB, LLAMA, FakeHub, Fault

from calc import hub
from calc.hub import HubFailure, Repository

OPERATOR = "hf_OperatorSecretOperatorSecret0000"
ROOT = Path(__file__).parents[2]


def code(answer: object) -> str:
    return answer.code if isinstance(answer, HubFailure) else type(answer).__name__


def test_the_operators_token_is_never_lent(cast: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not from the environment, not from the login file."""
    (tmp_path / "token").write_text(OPERATOR)
    monkeypatch.setenv("HF_TOKEN", OPERATOR)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    cast.account(OPERATOR, "acme/private")
    for token in (None, "", "  "):
        assert "not_found" == code(hub.repository("acme/private", token=token, endpoint=cast.endpoint))
        hub.search("acme", token=token, endpoint=cast.endpoint)
        hub.safetensors_shapes("acme/tiny", token=token, endpoint=cast.endpoint)
    assert {None} == {request.token for request in (*cast.seen, *cast.seen_by_cdn)}


def test_a_fresh_process_asks_only_what_was_asked_and_writes_nothing(cast: FakeHub, tmp_path: Path) -> None:
    """No telemetry, no token of the operator, no file under the home, and importing the calculator loads no client."""
    program = (
        "import sys, calc.hub as hub\n"
        "assert not {'huggingface_hub', 'httpx2', 'anyio'} & set(sys.modules)\n"
        f"answer = hub.repository('acme/gated', token={ALICE!r})\n"
        "assert answer.id == 'acme/gated', answer\n"
        "print(len(hub.search('tiny')))\n"
    )
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
    environment = kept | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"HF_ENDPOINT": cast.endpoint, "HF_TOKEN": OPERATOR}
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, timeout=30, check=False)  # fmt: skip
    assert ("1\n", "", 0) == (done.stdout, done.stderr, done.returncode)
    assert [] == sorted(tmp_path.iterdir())
    assert ["/api/models/acme/gated", "/api/models"] == [
        seen.path for seen in cast.seen if seen.path.startswith("/api/models")
    ]
    assert 4 == len(cast.seen)
    assert [ALICE, ALICE, ALICE, None] == [seen.token for seen in cast.seen]


def test_what_one_visitor_may_read_is_not_kept_for_the_next(cast: FakeHub) -> None:
    """Alice may read the gated model; after her, neither a stranger nor Bob nor an invalid token gets her copy."""
    commit = cast.repos["acme/gated"].commit("main")
    for revision in (None, commit):
        assert "Repository" == code(
            hub.repository("acme/gated", revision=revision, token=ALICE, endpoint=cast.endpoint)
        )
        assert "gated" == code(hub.repository("acme/gated", revision=revision, endpoint=cast.endpoint))
        assert "not_granted" == code(hub.repository("acme/gated", revision=revision, token=BOB, endpoint=cast.endpoint))
        invalid = hub.repository("acme/gated", revision=revision, token="hf_invalid", endpoint=cast.endpoint)
        assert "invalid_token" == code(invalid)


def test_answers_without_a_token_are_kept_and_those_with_one_are_not(server: FakeHub) -> None:
    server.add("acme/open", {"config.json": LLAMA})
    server.account(ALICE)
    for _ in range(3):
        assert "Repository" == code(hub.repository("acme/open", token=ALICE, endpoint=server.endpoint))
    assert 9 == len(server.seen)
    for _ in range(3):
        assert "Repository" == code(hub.repository("acme/open", endpoint=server.endpoint))
        assert 1 == len(hub.search("open", endpoint=server.endpoint))
    assert 9 + 3 + 1 == len(server.seen)
    assert "Repository" == code(hub.repository("acme/open", token=ALICE, endpoint=server.endpoint))
    assert 9 + 3 + 1 + 3 == len(server.seen)
    hub.forget()
    assert "Repository" == code(hub.repository("acme/open", endpoint=server.endpoint))
    assert 9 + 3 + 1 + 3 + 3 == len(server.seen)


def test_what_one_visitor_does_to_an_answer_does_not_reach_the_next(server: FakeHub) -> None:
    server.add("acme/open", {"config.json": LLAMA})
    for _ in range(3):
        answer = hub.repository("acme/open", endpoint=server.endpoint)
        assert isinstance(answer, Repository)
        assert LLAMA == answer.config
        answer.config["hidden_size"] = -1


def test_kept_answers_are_bounded_in_age_number_and_size(server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "REMEMBERED_ANSWERS", 2)
    for id in ("acme/a", "acme/b", "acme/c"):
        server.add(id, {"config.json": LLAMA})
        hub.repository(id, endpoint=server.endpoint)
    hub.repository("acme/c", endpoint=server.endpoint)
    assert 9 == len(server.seen)
    hub.repository("acme/a", endpoint=server.endpoint)
    assert 12 == len(server.seen)
    server.add("acme/large", {"config.json": LLAMA | {"x": "x" * hub.REMEMBERED_BYTES}})
    for _ in range(2):
        hub.repository("acme/large", endpoint=server.endpoint)
    assert 18 == len(server.seen)
    hub.forget()
    monkeypatch.setattr(hub, "REMEMBERED_SECONDS", -1.0)
    for _ in range(2):
        hub.repository("acme/a", endpoint=server.endpoint)
    assert 24 == len(server.seen)


def test_cookies_of_one_visitor_do_not_reach_the_next(cast: FakeHub) -> None:
    """The Hub sets one with every answer; the first request of each call has none."""
    for token in (ALICE, BOB, None):
        hub.repository("acme/tiny", token=token, endpoint=cast.endpoint)
    first = [seen for seen in cast.seen if seen.path == "/api/models/acme/tiny"]
    assert 3 == len(first)
    assert all("cookie" not in seen.headers for seen in first)


def test_a_token_stays_at_the_hubs_own_address(cast: FakeHub) -> None:
    """Weights come from another server, on the same host here: it gets the request without the token."""
    answer = hub.safetensors_shapes("acme/gated", token=ALICE, endpoint=cast.endpoint)
    assert "StoredTensors" == code(answer)
    assert {ALICE} == {seen.token for seen in cast.seen}
    assert [None] == [seen.token for seen in cast.seen_by_cdn]


@pytest.mark.parametrize(
    "token",
    ["hf_two words", "hf_line\nbreak", "hf_ümlaut", "abc", "Bearer hf_abc", "hf_-", "hf_" + "x" * 300, "hf_a\x00"],
)
def test_an_ill_formed_token_is_neither_sent_nor_shown(cast: FakeHub, token: str) -> None:
    """The client would put such a token into the text of its exception."""
    for call in (hub.repository, hub.search, hub.safetensors_shapes):
        answer = call("acme/tiny", token=token, endpoint=cast.endpoint)
        assert "bad_token" == code(answer)
        assert token not in repr(answer)
    assert not cast.seen


def test_a_token_typed_in_the_wrong_field_is_neither_sent_nor_shown(cast: FakeHub) -> None:
    for call in (hub.repository, hub.search, hub.safetensors_shapes):
        for text in (ALICE, f"acme {ALICE}", f"https://huggingface.co/{ALICE}"):
            answer = call(text, endpoint=cast.endpoint)
            assert "access_token" == code(answer)
            assert ALICE not in repr(answer)
    assert not cast.seen


def test_no_log_record_holds_a_token(
    cast: FakeHub, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the noisiest level, with the client's own debugging on, for answers and for every failure of the cast."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("huggingface_hub.constants.HF_DEBUG", True)
    monkeypatch.setattr(hub, "TIME_LIMIT", 0.3)
    # The client keeps its records from the root logger; here they shall reach it.
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    logging.getLogger("huggingface_hub").setLevel(logging.DEBUG)
    for id in (
        "acme/gated",
        "acme/nothing",
        "acme/broken",
        "acme/dropped",
        "acme/slow",
        "acme/limited",
        "acme/not-json",
    ):
        answer = hub.repository(id, token=ALICE, endpoint=cast.endpoint)
        assert ALICE not in repr(answer)
    assert any("acme/gated" in record.getMessage() for record in caplog.records), "nothing was logged at all"
    for record in caplog.records:
        assert ALICE not in record.getMessage() + repr(record.args) + repr(record.exc_info)


def test_visitors_at_the_same_time_are_not_mixed_up(server: FakeHub) -> None:
    """Six visitors with six tokens read six private models at once, each all of them; each gets its own alone."""
    tokens = {f"acme/private-{n}": f"hf_visitor{n:020d}" for n in range(6)}
    for n, (id, token) in enumerate(tokens.items()):
        server.add(id, {"config.json": LLAMA | {"num_hidden_layers": n}}, private=True)
        server.account(token, id)
    server.fault("resolve-cache", Fault(delay=0.05))
    tasks = [(id, reader) for id in tokens for reader in tokens]

    def read(task: tuple[str, str]) -> object:
        return hub.repository(task[0], token=tokens[task[1]], endpoint=server.endpoint)

    with ThreadPoolExecutor(12) as visitors:
        for (id, reader), answer in zip(tasks, visitors.map(read, tasks), strict=True):
            if id == reader:
                assert isinstance(answer, Repository)
                assert id == f"acme/private-{answer.config['num_hidden_layers']}"
            else:
                assert "not_found_with_token" == code(answer)
