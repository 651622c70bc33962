"""A call ends within its limit, whatever the server does, and takes no more memory than its caps."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_hub import BOB, LLAMA, FakeHub, Fault, Weights, llama_tensors

from calc import hub
from calc.hub import HubFailure, Repository

SLACK = 1.0
"""Seconds that a busy machine may add."""


def code(answer: object) -> str:
    return answer.code if isinstance(answer, HubFailure) else type(answer).__name__


def timed(call: Callable[[], Any]) -> tuple[str, float]:
    begun = time.monotonic()
    return code(call()), time.monotonic() - begun


def test_the_promise_is_ten_seconds() -> None:
    assert 10.0 == hub.TIME_LIMIT


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("/api/models/acme/tiny", Fault(delay=60)),
        ("/api/models/acme/tiny", Fault(drip_headers=0.02)),
        ("/api/models/acme/tiny", Fault(drip=0.02)),
        ("/api/models/acme/tiny", Fault(endless=b" ", drip=0.01)),
        ("/resolve/", Fault(delay=60)),
        ("resolve-cache", Fault(drip=0.02)),
        (".", Fault(delay=0.2)),
    ],
    ids=[
        "silent",
        "slow headers",
        "slow body",
        "endless trickle",
        "silent file",
        "slow file",
        "every step a little slow",
    ],
)
def test_a_slow_hub_is_left_in_time(server: FakeHub, short: float, pattern: str, fault: Fault) -> None:
    """No read of these ever meets a timeout of its own: each byte comes soon enough. No thread is left behind either."""
    server.add("acme/tiny", {"config.json": LLAMA})
    server.fault(pattern, fault)
    why, seconds = timed(lambda: hub.repository("acme/tiny", endpoint=server.endpoint))
    assert "timeout" == why
    assert short * 0.9 < seconds < short + SLACK
    for thread in threading.enumerate():
        if thread.name == "hub":
            thread.join(2)
            assert not thread.is_alive()


def test_the_body_of_an_error_is_not_waited_for(server: FakeHub, short: float) -> None:
    server.fault(".", Fault(status=500, body=b"x" * 1000, drip=0.02))
    assert "server_error" == code(hub.repository("acme/tiny", endpoint=server.endpoint))


def test_a_slow_chain_of_adapters_has_one_limit_in_all(server: FakeHub, short: float) -> None:
    server.add("acme/a", {"adapter_config.json": {"base_model_name_or_path": "acme/b"}})
    server.add("acme/b", {"config.json": LLAMA})
    server.fault(".", Fault(delay=0.15))
    why, seconds = timed(lambda: hub.repository("acme/a", endpoint=server.endpoint))
    assert ("timeout", True) == (why, seconds < short + SLACK)


def test_slow_searches_and_headers_are_left_in_time(server: FakeHub, short: float) -> None:
    server.add("acme/tiny", {"model.safetensors": Weights(llama_tensors())})
    server.fault("api/models[?]|cdn:", Fault(drip=0.02))
    for call in (hub.search, hub.safetensors_shapes):
        why, seconds = timed(lambda call=call: call("acme/tiny", endpoint=server.endpoint))
        assert ("timeout", True) == (why, seconds < short + SLACK)


def test_an_address_that_never_resolves_is_left_in_time(short: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver cannot be cancelled; the caller leaves it behind."""
    hub.forget()
    resolved = threading.Event()
    real = socket.getaddrinfo

    def stuck(host: Any, *rest: Any, **named: Any) -> Any:
        if "stuck" in str(host):
            resolved.wait(10)
            raise socket.gaierror("no such host")
        return real(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    why, seconds = timed(lambda: hub.repository("acme/tiny", endpoint="http://stuck.invalid"))
    resolved.set()
    assert ("timeout", True) == (why, seconds < short + SLACK)


def test_a_connection_that_is_never_taken_is_left_in_time(short: float) -> None:
    hub.forget()
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        why, seconds = timed(lambda: hub.repository("acme/tiny", endpoint=f"http://127.0.0.1:{deaf.getsockname()[1]}"))
    assert ("timeout", True) == (why, seconds < short + SLACK)


def test_a_crowd_is_told_to_come_back(server: FakeHub, short: float) -> None:
    """Threads are bounded: when all are held by a dead Hub, the next visitor waits half the limit and is told."""
    server.add("acme/tiny", {"config.json": LLAMA})
    for _ in range(hub.CALLS_AT_ONCE):
        assert hub._SLOTS.acquire(timeout=5), "a slot was not given back by an earlier call"
    try:
        why, seconds = timed(lambda: hub.repository("acme/tiny", endpoint=server.endpoint))
    finally:
        for _ in range(hub.CALLS_AT_ONCE):
            hub._SLOTS.release()
    assert ("busy", True) == (why, seconds < short + SLACK)
    assert "Repository" == code(hub.repository("acme/tiny", endpoint=server.endpoint))


def test_a_body_without_end_is_cut_at_the_cap(server: FakeHub) -> None:
    """Neither a declared nor an undeclared length is read past the cap; an error's body is not read at all."""
    server.add("acme/tiny", {"config.json": LLAMA})
    server.fault("/api/models/acme/tiny", Fault(endless=b" " * 65536))
    assert "too_large" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
    server.heal()
    server.fault("resolve-cache", Fault(endless=b" " * 65536))
    assert "too_large" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
    server.heal()
    server.fault("resolve-cache", Fault(headers={"Content-Length": str(10**12)}))
    assert "too_large" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
    server.heal()
    server.fault("resolve-cache", Fault(status=500, endless=b" " * 65536))
    assert "server_error" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
    server.heal()
    server.fault(
        "/acme/tiny/resolve", Fault(status=302, endless=b" " * 65536, headers={"Location": "/acme/tiny/resolve/x/y"})
    )
    assert "strange_redirect" == code(hub.repository("acme/tiny", endpoint=server.endpoint))


def test_the_largest_real_config_is_within_the_cap(server: FakeHub) -> None:
    """nvidia/MiniMax-M3-NVFP4's config.json has 3,087,083 bytes."""
    config = LLAMA | {"quantization_config": {"quant_algo": "NVFP4", "layers": "x" * 3_087_083}}
    server.add("acme/large", {"config.json": config})
    answer = hub.repository("acme/large", endpoint=server.endpoint)
    assert isinstance(answer, Repository)
    assert config == answer.config


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"RateLimit": '"api";r=0;t=55', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}, 55),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0"}, 1),
        ({"Retry-After": "99999999"}, None),
        ({"Retry-After": "999999"}, 900),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"RateLimit": "nonsense"}, None),
        ({}, None),
    ],
)
def test_a_limited_server_says_how_long(server: FakeHub, headers: dict[str, str], wait: int | None) -> None:
    server.fault(".", Fault(status=429, headers=headers))
    answer = hub.repository("acme/tiny", endpoint=server.endpoint)
    assert isinstance(answer, HubFailure)
    assert ("rate_limited", wait) == (answer.code, answer.wait_seconds)
    assert (f"try again in {wait} s" if wait else "try again in a few minutes") in answer.message
    assert 1 == len(server.seen)


def test_a_wait_that_is_not_told_is_short(server: FakeHub) -> None:
    """Every letter typed may ask, so some seconds pass without a question all the same."""
    server.add("acme/tiny", {"config.json": LLAMA})
    server.fault(".", Fault(status=429, times=1))
    for _ in range(3):
        assert "rate_limited" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
    assert 1 == len(server.seen)
    hub.forget()
    assert "Repository" == code(hub.repository("acme/tiny", endpoint=server.endpoint))


def test_while_it_waits_the_server_does_not_ask(server: FakeHub) -> None:
    """One address serves all visitors: after a 429 none asks again too early, but those with a token of their own."""
    server.add("acme/tiny", {"config.json": LLAMA})
    server.account(BOB)
    server.limit(seconds=1)
    assert "rate_limited" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
    server.heal()
    again = hub.repository("acme/other", endpoint=server.endpoint)
    assert isinstance(again, HubFailure)
    assert ("rate_limited", True) == (again.code, again.wait_seconds == 1)
    assert "rate_limited" == code(hub.search("acme", endpoint=server.endpoint))
    assert 1 == len(server.seen)
    assert "Repository" == code(hub.repository("acme/tiny", token=BOB, endpoint=server.endpoint))
    time.sleep(1.05)
    assert "Repository" == code(hub.repository("acme/tiny", endpoint=server.endpoint))
