"""One rank of a sharded training step: torch's own FSDP2 and DDP over a process group that sends nothing.

The fake process group answers at once; parameters, gathered weights, buckets and reduced gradients are allocated as by real
ranks. Streams and events do not exist: tensors that a real run keeps until another stream is done with them are let go at
once where torch lets go of them.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import fake_gpu  # noqa: F401  (before torch)
import torch
import torch.distributed
import train_step
import transformers.modeling_utils  # before CUDA is said to be available
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

transformers.Trainer  # noqa: B018  (imported before CUDA is said to be available, too)


class Nothing:
    """A stream or an event: everything happens at once."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def record_event(self, event: Any = None) -> Nothing:
        return Nothing()

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


torch.cuda.Stream = torch.cuda.Event = Nothing
torch.cuda.current_stream = lambda *args: Nothing()
torch.cuda.stream = lambda stream: contextlib.nullcontext()
torch.cuda.device_count = lambda: 8
torch.cuda.current_device = lambda: 0
torch.cuda.set_device = torch.cuda._lazy_init = lambda *args: None
torch.cuda.is_initialized = lambda: True
torch.Tensor.record_stream = lambda self, stream: None


def shard(model: torch.nn.Module, case: dict[str, Any], mesh: Any) -> torch.nn.Module:
    """The model spread over the mesh: each block and then the whole, as accelerate wraps transformers' models."""
    sharding = case["plan"]["sharding"]
    if sharding["strategy"] == "ddp":
        parallel = DistributedDataParallel(model, init_sync=False)
        parallel.register_comm_hook(None, reduced)
        parallel.logger = Nothing()  # it times with CUDA events
        parallel.reducer = KeptBuckets(parallel.reducer)
        return parallel
    if sharding["strategy"] == "fsdp":
        return fsdp1(model, case)
    policy = MixedPrecisionPolicy()
    if case["plan"]["precision"] == "bf16-mixed":
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, output_dtype=torch.bfloat16
        )
    options = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": case.get("reshard_after_forward", True)}
    for block in model.base_model.layers:
        fully_shard(block, **options)
    return fully_shard(model, **options)


class KeptBuckets:
    """DDP's reducer, that never asks the other ranks for a better order of the buckets: their sizes stay the same."""

    def __init__(self, reducer: Any):
        self._reducer = reducer

    def _rebuild_buckets(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reducer, name)


def reduced(state, bucket):
    """All-reduce of a bucket in place, done at once. (DDP looks at annotations, and takes none that are text.)"""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def fsdp1(model: torch.nn.Module, case: dict[str, Any]) -> torch.nn.Module:
    """The older FSDP: one flat parameter per block and one for the rest."""
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    half = torch.bfloat16 if case["plan"]["precision"] == "bf16-mixed" else None
    return FullyShardedDataParallel(
        model,
        auto_wrap_policy=ModuleWrapPolicy({type(model.base_model.layers[0])}),
        use_orig_params=True,
        device_id=0,
        mixed_precision=MixedPrecision(half, half, half) if half else None,
        limit_all_gathers=True,
        sharding_strategy=ShardingStrategy.FULL_SHARD
        if case.get("reshard_after_forward", True)
        else ShardingStrategy.SHARD_GRAD_OP,
    )


class ShardedStep(train_step.Step):
    """A step after one that let the sharding settle (DDP orders its buckets by the first backward). FSDP's mixed precision is its own, not
    autocast's."""

    def _prepare_optimizer(self):
        prepared = super()._prepare_optimizer()
        self.forward(self._batch(), observe=False).backward()
        self._update(*prepared)
        return prepared

    def forward(self, batch: dict[str, torch.Tensor], observe: bool) -> torch.Tensor:
        if self.plan["sharding"]["strategy"] == "ddp":
            return super().forward(batch, observe=False)
        return self.model(**batch).loss


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Every count of rank 0."""
    gc.collect()
    ranks = case["plan"]["sharding"]["data_parallel"]
    torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        mesh = init_device_mesh("cuda", (ranks,))
        with FakeTensorMode(allow_non_fake_inputs=True):
            model = train_step.build_model(case["model"], case["plan"])
            whole = {
                "parameters": sum(p.numel() for p in model.parameters()),
                "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
            }
            available, torch.cuda.is_available = torch.cuda.is_available, lambda: True
            try:
                measured = ShardedStep(shard(model, case, mesh), case["plan"]).run()
                del measured["saved"]  # gathered weights are saved too, and emptied
                measured |= whole
                return measured
            finally:
                torch.cuda.is_available = available
    finally:
        torch.distributed.destroy_process_group()
