"""Streams and events on the pretended GPU: there are none, and everything happens at once.

Tensors that a real run keeps until another stream is done with them are let go where torch's Python code lets go of them.
"""

from __future__ import annotations

import contextlib
from typing import Any

import fake_gpu  # noqa: F401  (before torch)
import torch


class Nothing:
    """A stream or an event."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def record_event(self, event: Any = None) -> Nothing:
        return Nothing()

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def do_without() -> None:
    """Let torch's code run as if it had streams, events and eight GPUs."""
    torch.cuda.Stream = torch.cuda.Event = Nothing
    torch.cuda.current_stream = lambda *args: Nothing()
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.cuda.device_count = lambda: 8
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = torch.cuda._lazy_init = lambda *args: None
    torch.cuda.is_initialized = lambda: True
    torch.Tensor.record_stream = lambda self, stream: None
