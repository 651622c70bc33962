"""Proof that the count is true: real training on the CPU, seen by its allocator, against the same code on fake tensors.

The allocator's own events (torch.profiler) know nothing of our counter; the counter knows nothing of real numbers. Phases
are told apart by allocations of a size that nothing else has.
"""

from __future__ import annotations

import contextlib
import gc
import os
import warnings
from collections.abc import Callable
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402
import transformers.masking_utils  # noqa: E402
from live_bytes import LiveBytes  # noqa: E402
from models import MODELS  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None
# Backward in this thread, so that the allocator's events come in one order and dispatch modes see it.
torch.autograd.set_multithreading_enabled(False)

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "bf16-autocast": torch.bfloat16, "bf16-mixed": torch.float32}
Mark = Callable[[str], None]
EXPLAINED = 256
"""Bytes that scalars on the host account for."""
MARK = 1_000_003
"""Size of the first marking allocation; the next is two bytes larger. Above every tensor's size but odd, as none is."""


def three_uses(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return (y * 3).sum() + (y * 4).sum() + (y * 5).sum()


def tied_by_transposes(x: torch.Tensor) -> torch.Tensor:
    ids = torch.zeros(8, dtype=torch.long)
    return torch.nn.functional.linear(torch.nn.functional.embedding(ids, x), x).sum()


def leaf_used_twice(x: torch.Tensor) -> torch.Tensor:
    return (x * 3).sum() + (x * 4).sum()


def rows_picked(x: torch.Tensor) -> torch.Tensor:
    return x[torch.arange(x.shape[0] - 1)].sum()


def columns_gathered(x: torch.Tensor) -> torch.Tensor:
    return x.gather(1, torch.zeros(x.shape, dtype=torch.long)).sum()


def largest_of_rows(x: torch.Tensor) -> torch.Tensor:
    return x.topk(4).values.sum() + x.max(-1).values.sum()


GRAPHS = {
    "three uses": three_uses,
    "tied by transposes": tied_by_transposes,
    "a leaf used twice": leaf_used_twice,
    "rows picked": rows_picked,
    "columns gathered": columns_gathered,
    "largest of rows": largest_of_rows,
}
"""Graphs whose peak is the adding of gradients: by the engine, in place where it may, into new memory where the gathered one is a view; and
into the zeros of a derivative, in place."""


def differentiate(graph: Callable[[torch.Tensor], torch.Tensor], mark: Mark) -> None:
    x = torch.zeros(512, 256, requires_grad=True)
    mark("load")
    loss = graph(x)
    mark("second forward")
    loss.backward()
    mark("second backward")


def train(case: dict[str, Any], mark: Mark) -> None:
    """Two steps of real training code; `mark` is called at the end of each phase."""
    if "graph" in case:
        return differentiate(GRAPHS[case["graph"]], mark)
    plan, row = case["plan"], MODELS[case["model"]]
    torch.manual_seed(0)
    config = getattr(transformers, row.config)(**row.given)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation=plan["attention"], dtype=DTYPES[plan["precision"]]
    )
    model.train()
    model.config.use_cache = False
    if "lora" in plan:
        import adapters

        model = adapters.wrap(model, plan)
    if plan["gradient_checkpointing"] == "full":
        # The state of the random generator would lie in host memory beside a GPU; here it would be counted.
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False, "preserve_rng_state": False}
        )
        if "lora" in plan:
            model.enable_input_require_grads()
    ids = torch.zeros(plan["micro_batch_size"], plan["seq_len"], dtype=torch.long)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=1e-4,
        **{"adamw_torch_fused": {"fused": True}, "adamw_torch": {"foreach": True}}[plan["optimizer"]],
    )
    autocast = (
        torch.autocast("cpu", torch.bfloat16)
        if "auto" in plan["precision"] or "mixed" in plan["precision"]
        else contextlib.nullcontext()
    )
    mark("load")
    for step in ("first", "second"):
        with autocast:
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        mark(f"{step} forward")
        loss.backward()
        del loss
        mark(f"{step} backward")
        optimizer.step()
        mark(f"{step} optimizer step")
        optimizer.zero_grad(set_to_none=True)
        mark(f"{step} end")


def real(case: dict[str, Any]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Phase to [bytes alive at its end, most bytes alive in it], from the allocator's events; and what allocated at the most."""
    sizes: dict[int, str] = {}

    def mark(phase: str) -> None:
        size = MARK + 2 * len(sizes)
        sizes[size] = phase
        torch.empty(size, dtype=torch.uint8)

    gc.collect()
    gc.disable()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        train(case, mark)
    gc.enable()
    events: list[tuple[int, int, tuple[str, ...]]] = []

    def walk(event, path: tuple[str, ...]) -> None:
        if hasattr(event.extra_fields, "alloc_size"):
            events.append((event.start_time_ns, event.extra_fields.alloc_size, path))
        for child in event.children:
            walk(child, (*path, event.name))

    for root in profile.profiler.kineto_results.experimental_event_tree():
        walk(root, ())
    alive = peak = 0
    at: tuple[str, ...] = ()
    phases, places = {}, {}
    for _, size, path in sorted(events, key=lambda event: event[0]):
        if abs(size) in sizes:
            if size > 0:
                phases[sizes[size]], places[sizes[size]] = [alive, peak], " > ".join(at[-3:])
                peak = alive
            continue
        alive += size
        if alive > peak:
            peak, at = alive, path
    return phases, places


def fake(case: dict[str, Any]) -> dict[str, list[int]]:
    """The same from the counter, on fake tensors."""
    phases = {}
    with FakeTensorMode(allow_non_fake_inputs=True):
        live = LiveBytes("cpu")

        def mark(phase: str) -> None:
            phases[phase] = [live.live, live.peaks["load"].bytes]
            live.forget_peaks()

        with live:
            train(case, mark)
    return phases


begun: set[bool] = set()


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """The count; where the real run differs, by how much; and where it took scratch of the CPU's kernels, in which of them.

    How much scratch a kernel takes is left out: it depends on the processor and its threads.
    """
    kind = "lora" in case.get("plan", {})
    if kind not in begun:  # what a process makes once and keeps is none of the step's
        begun.add(kind)
        train(case, lambda phase: None)
    (seen, places), counted = real(case), fake(case)
    differ = {
        phase: [a - b for a, b in zip(seen[phase], counted[phase], strict=True)]
        for phase in seen
        if seen[phase] != counted[phase]
    }
    scratch = {phase for phase, (_, most) in differ.items() if most > EXPLAINED}
    return {
        "counted": counted,
        "real_less_counted": {phase: by[:1] if phase in scratch else by for phase, by in differ.items()},
        "scratch_in": {phase: places[phase] for phase in scratch},
    }
