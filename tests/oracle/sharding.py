"""One rank of a sharded training step: torch's own FSDP2, FSDP1 and DDP over a process group that sends nothing.

The fake process group answers at once; parameters, gathered weights, buckets and reduced gradients are allocated as by real
ranks.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import fake_gpu  # noqa: F401  (before torch)
import streams
import torch
import torch.distributed
import torch.distributed.fsdp._flat_param
import train_step
import transformers.modeling_utils  # before CUDA is said to be available
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

transformers.Trainer  # noqa: B018  (imported before CUDA is said to be available, too)


streams.do_without()
torch.Tensor.pin_memory = lambda self, *args: self  # pinning copies within the host, which has no such memory here
torch.Tensor.is_pinned = lambda self, *args: True
# A fake tensor's memory has no address; whether there is any is told by its size.
torch.distributed.fsdp._flat_param._data_ptr_allocated = lambda tensor: tensor.untyped_storage().size() > 0
own_data = torch.Tensor.data


class WithData(property):
    """`tensor.data = other`, after which a fake tensor must say that it lies where the other one does."""

    def __set__(self, tensor: FakeTensor, other: torch.Tensor) -> None:
        own_data.__set__(tensor, other)
        if isinstance(other, FakeTensor):
            tensor.fake_device = other.fake_device


FakeTensor.data = WithData(own_data.__get__)


def reshards(case: dict[str, Any]) -> bool:
    """Whether a block's gathered weights are let go after its forward."""
    return case.get("reshard_after_forward", case["plan"]["sharding"].get("reshard_after_forward", True))


def shard(model: torch.nn.Module, case: dict[str, Any], mesh: Any) -> torch.nn.Module:
    """The model spread over the mesh: each block and then the whole, as accelerate wraps transformers' models."""
    sharding = case["plan"]["sharding"]
    if sharding["strategy"] == "ddp":
        parallel = DistributedDataParallel(model, init_sync=False)
        parallel.register_comm_hook(None, reduced)
        parallel.logger = streams.Nothing()  # it times with CUDA events
        parallel.reducer = KeptBuckets(parallel.reducer)
        return parallel
    if sharding["strategy"] == "fsdp":
        return fsdp1(model, case, mesh)
    policy = MixedPrecisionPolicy()
    if case["plan"]["precision"] in ("bf16-mixed", "bf16-autocast"):
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, output_dtype=torch.bfloat16
        )
    options = {
        "mesh": mesh,
        "mp_policy": policy,
        "reshard_after_forward": reshards(case),
        "offload_policy": CPUOffloadPolicy() if sharding.get("offload") == "all" else OffloadPolicy(),
    }
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    for block in inner.base_model.layers:
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


def fsdp1(model: torch.nn.Module, case: dict[str, Any], mesh: Any) -> torch.nn.Module:
    """The older FSDP: one flat parameter per block and one for the rest."""
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    sharding = case["plan"]["sharding"]
    strategies = {
        (False, True): ShardingStrategy.FULL_SHARD,
        (False, False): ShardingStrategy.SHARD_GRAD_OP,
        (True, True): ShardingStrategy.HYBRID_SHARD,
        (True, False): ShardingStrategy._HYBRID_SHARD_ZERO2,
    }
    copies = sharding.get("replicas", 1) > 1
    half = torch.bfloat16 if case["plan"]["precision"] == "bf16-mixed" else None
    return FullyShardedDataParallel(
        model,
        auto_wrap_policy=ModuleWrapPolicy({type(model.base_model.layers[0])}),
        use_orig_params=True,
        device_id=0,
        mixed_precision=MixedPrecision(half, half, half) if half else None,
        limit_all_gathers=True,
        sharding_strategy=strategies[copies, reshards(case)],
        cpu_offload=CPUOffload(offload_params=True) if sharding.get("offload") == "all" else None,
        **({"device_mesh": mesh} if copies else {}),
    )


class ShardedStep(train_step.Step):
    """A step after one that let the sharding settle (DDP orders its buckets by the first backward). FSDP's mixed precision is its own, not
    autocast's."""

    def _prepare_optimizer(self):
        prepared = super()._prepare_optimizer()
        self.forward(self._batch(), observe=False).backward()
        self.on_host: dict[str, int] = {}
        if self.plan["sharding"].get("offload", "none") != "none":
            self.on_host = {
                "host_parameter_bytes": self._on_host(self.model.parameters()),
                "host_gradient_bytes": self._on_host(p.grad for p in self.model.parameters() if p.grad is not None),
                "host_optimizer_bytes": self._on_host(
                    state for states in prepared[0].state.values() for state in states.values()
                ),
            }
        self._update(*prepared)
        return prepared

    def _on_host(self, tensors: Iterable[torch.Tensor]) -> int:
        """Bytes of tensors in host memory, each storage once."""
        storages = {
            storage._cdata: storage.nbytes()
            for tensor in map(train_step.local, tensors)
            if tensor.device.type == "cpu"
            for storage in (tensor.untyped_storage(),)
        }
        return sum(storages.values())

    def _begins(self, *, last: bool) -> None:
        """Gradients are reduced with the last micro-batch, or each time (accelerate: `sync_each_batch`)."""
        if self.plan["sharding"]["strategy"] == "fsdp2":
            self.model.set_requires_gradient_sync(last or self.plan["sharding"].get("sync_each_batch", False))

    def forward(self, batch: dict[str, torch.Tensor], observe: bool) -> torch.Tensor:
        if self.plan["sharding"]["strategy"] == "ddp":
            return super().forward(batch, observe=False)
        if self.plan.get("loss") == "chunked":
            import fused

            return fused.chunked_loss(self.model, batch)
        return self.model(**batch).loss


class NoDevice(FakeTensorMode):
    """There is no device to move a number to, also while CUDA is said to be available: its value stays known on the host."""

    avoid_device_init = True


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Every count of rank 0."""
    gc.collect()
    sharding = case["plan"]["sharding"]
    ranks, copies = sharding["data_parallel"], sharding.get("replicas", 1)
    torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        mesh = (
            init_device_mesh("cuda", (ranks,))
            if copies == 1
            else init_device_mesh("cuda", (copies, ranks // copies), mesh_dim_names=("replicate", "shard"))
        )
        with NoDevice(allow_non_fake_inputs=True):
            model = train_step.build_model(case["model"], case["plan"])
            whole = {
                "parameters": sum(p.numel() for p in model.parameters()),
                "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
            }
            available, torch.cuda.is_available = torch.cuda.is_available, lambda: True
            try:
                step = ShardedStep(shard(model, case, mesh), case["plan"])
                measured = step.run()
                del measured["saved"]  # gathered weights are saved too, and emptied
                measured |= whole | step.on_host
                return measured
            finally:
                torch.cuda.is_available = available
    finally:
        torch.distributed.destroy_process_group()
