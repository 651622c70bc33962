"""Saved activations in host memory, by TRL's own OffloadActivations on the pretended GPU.

It tells tensors apart by the address of their memory, which fake ones do not have: a number stands for it that no other storage gets.
(Where a card gives a new tensor an address that an older one had, that tensor may be taken for the older one and stay on the card.)
"""

from __future__ import annotations

import itertools
import unittest.mock
import weakref

import fake_gpu  # noqa: F401  (before torch)
import streams
import torch
import trl.models.activation_offloading as offloading

DEVICE = "cuda"


ADDRESSES: dict[int, tuple[weakref.ref[torch.UntypedStorage], int]] = {}
NUMBERS = itertools.count(1)
APART = 2**48
"""Further than any offset in a storage."""


def address(storage: torch.UntypedStorage) -> int:
    """What stands for the place of a storage in memory."""
    known = ADDRESSES.get(storage._cdata)
    if known is None or known[0]() is None:
        known = ADDRESSES[storage._cdata] = weakref.ref(storage), next(NUMBERS) * APART
    return known[1]


def around(model: torch.nn.Module) -> offloading.OffloadActivations:
    """What TRL's trainers put around a whole training step (`activation_offloading=True`)."""
    streams.do_without()
    torch.cuda.empty_cache = lambda: None
    torch.UntypedStorage.data_ptr = address
    with unittest.mock.patch("torch.accelerator.current_accelerator", return_value=torch.device(DEVICE)):
        return offloading.get_act_offloading_ctx_manager(model, use_pin_memory=False)


def on_host(context: offloading.OffloadActivations) -> int:
    """Bytes of the copies in host memory."""
    copies = [kept[0] for kept in context.tracker.values() if kept[1]]
    return sum(copy.untyped_storage().nbytes() for copy in copies)
