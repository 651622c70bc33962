"""From what torch allocates to what the allocator holds and what nvidia-smi shows."""

from __future__ import annotations

from math import ceil

from calc.catalog.allowances import Stack, cachings, context, fragmentation
from calc.catalog.gpus import Gpu
from calc.memory.breakdown import Span
from calc.units import MIB, Bytes

# Small blocks come from segments of 2 MiB and large ones are cut to multiples of it, so what is held is a multiple too.
SEGMENT = Bytes(2 * MIB)


def reserved_and_device(
    allocated: Bytes, gpu: Gpu, *, num_gpus: int = 1, whole_logits: bool = True, stack: Stack = "transformers"
) -> tuple[Span, Span]:
    """What the caching allocator holds and what nvidia-smi shows when `allocated` bytes are the peak on one card.

    `low` is what the peak needs at least. `expected` is the usual amount on this card: before an allocation fails the allocator
    frees what it has cached, so the cache fills the room that the tensors leave and no more (source: torch-caching-allocator); only
    when the card is too small for `low` does `expected` exceed it. `high` is the most that can be seen: on a card with room the
    cache of published runs, on a full one what out-of-memory messages show was held and could not be given back. So a plan is
    tight when fragments as bad as the worst ones read would not leave it room.

    Args:
        allocated: torch's max_memory_allocated, in bytes.
        num_gpus: cards in the run; sharded runs gather and free large buffers, and more stays cached.
        whole_logits: the loss materialises the logits (every loss but a fused or chunked one).
        stack: whose allocation pattern it is.
    """
    rows = cachings(stack=stack, several_gpus=num_gpus > 1, whole_logits=whole_logits)
    process = context(gpu)
    low = _segments(allocated, min(row.low for row in rows))
    room = max(gpu.capacity - process.expected, Bytes(0)) // SEGMENT * SEGMENT
    expected = max(low, min(_segments(allocated, rows[0].expected), room))
    tightest = max(gpu.capacity - process.high, Bytes(0)) // SEGMENT * SEGMENT
    cached = min(_segments(allocated, max(row.high for row in rows)), max(tightest, expected))
    high = max(cached, _segments(allocated, fragmentation().high))
    reserved = Span(low=low, expected=expected, high=high)
    device = Span(low=low + process.low, expected=expected + process.expected, high=high + process.high)
    return reserved, device


def _segments(allocated: Bytes, ratio: float) -> Bytes:
    """That many times `allocated`, up to the next whole segment."""
    return SEGMENT * ceil(int(allocated) * ratio / int(SEGMENT))
