"""One training step of a real model on the pretended GPU, and every byte of it.

The model is transformers' own, the adapters PEFT's, the optimizer torch's; only the numbers are missing. What is recorded
is a step that finds optimizer states in place, as every step but the first does.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import weakref
from typing import Any

import even_routing
import fake_gpu  # noqa: F401  (before torch)
import torch
import transformers
from live_bytes import LiveBytes
from models import MODELS
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks

try:
    import transformers.initialization
except ImportError:  # before 5
    pass
else:
    transformers.initialization.trunc_normal_ = lambda tensor, *bounds, **named: tensor  # asks for numbers that it drew

try:
    import transformers.masking_utils
except ImportError:  # before 4.53
    pass
else:
    # Whether a batch is packed is asked of the numbers, which a fake tensor has none of; it then builds a mask, always.
    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None


def look_at_masks(seq2seq: bool) -> None:
    """Whether a mask holds only ones is asked of the numbers too; a fake tensor's is taken to hold a zero.

    Decoders beside an encoder make a mask of ones for themselves where they are given none, and then see that it masks nothing.
    """
    masks = transformers.masking_utils
    masks._ignore_causal_mask_sdpa = (lambda padding, *sizes: UNSEEN(None, *sizes)) if seq2seq else UNSEEN


UNSEEN = getattr(getattr(transformers, "masking_utils", None), "_ignore_causal_mask_sdpa", None)
DTYPE = "dtype" if transformers.__version__ >= "5" else "torch_dtype"

CHECKPOINTING = {"use_reentrant": False} if transformers.__version__ >= "5" else None
"""What the Trainer asks for; before version 5 nothing, so that torch's older kind runs."""

DEVICE = "cuda"
WEIGHTS = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "bf16-autocast": torch.bfloat16,
    "bf16-mixed": torch.float32,
    "fp16-mixed": torch.float32,
    "fp16-autocast": torch.float16,
}
AUTOCAST = {
    "bf16-autocast": torch.bfloat16,
    "bf16-mixed": torch.bfloat16,
    "fp16-mixed": torch.float16,
    "fp16-autocast": torch.float16,
}
SCALED = ("fp16-mixed", "fp16-autocast")
PHASES = ("forward", "loss forward", "loss backward", "backward", "end of backward", "optimizer step")
OPTIMIZERS = {
    "adamw_torch_fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
    "adamw_torch": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, foreach=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-4, foreach=True),
}


def build_config(name: str) -> transformers.PretrainedConfig:
    row = MODELS[name]
    return getattr(transformers, row.config)(**row.given)


def build_model(name: str, plan: dict[str, Any]) -> torch.nn.Module:
    """The model on the pretended GPU, ready to train by `plan`."""
    if UNSEEN is not None:
        look_at_masks("Seq2Seq" in MODELS[name].auto)
    with torch.device(DEVICE):
        model = getattr(transformers, MODELS[name].auto).from_config(
            build_config(name), attn_implementation=plan["attention"], **{DTYPE: WEIGHTS[plan["precision"]]}
        )
    model.tie_weights()
    model.train()
    model.config.use_cache = False
    if plan.get("kernels", "eager") != "eager" or plan.get("loss", "eager") != "eager":
        import fused

        fused.patch(model, plan)
    if "quantization" in plan:
        import quantised

        quantised.quantise(model, plan["quantization"], WEIGHTS[plan["precision"]])
    if "lora" in plan:
        import adapters

        model = adapters.wrap(model, plan)
    if plan["gradient_checkpointing"] == "selective":  # as TRL does it: what attention gives is kept
        import trl.models

        trl.models.enable_selective_activation_checkpointing(model)
    if plan["gradient_checkpointing"] != "none":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=CHECKPOINTING)
        if "lora" in plan:
            model.enable_input_require_grads()
    return model


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Of a sharded tensor this rank's part, else itself."""
    return getattr(tensor, "_local_tensor", tensor)


class Saved:
    """What autograd keeps for backward: each storage once, the model's own left out, with the module that saved it."""

    def __init__(self, model: torch.nn.Module, kept: list[torch.Tensor], modules: list[str]):
        self.modules = modules
        own = [local(t).untyped_storage() for t in [*model.parameters(), *model.buffers(), *kept]]
        self.own = {storage._cdata: weakref.ref(storage) for storage in own}
        self.storages: dict[int, tuple[weakref.ref[torch.UntypedStorage], str, torch.dtype]] = {}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if (
            tensor.device.type == DEVICE
            and (
                key not in self.own or self.own[key]() is None
            )  # bitsandbytes lets a bias go, and its memory is used again
            and (key not in self.storages or self.storages[key][0]() is None)
        ):
            self.storages.pop(key, None)  # in the order of saving, also where memory is used again
            self.storages[key] = (weakref.ref(storage), self.modules[-1] if self.modules else "", tensor.dtype)
        return tensor

    def alive(self) -> list[tuple[str, torch.dtype, int]]:
        """(module, dtype, bytes) of each storage that was saved and is still held."""
        return [
            (module, dtype, storage.nbytes())
            for held, module, dtype in self.storages.values()
            if (storage := held()) is not None
        ]

    def record(self) -> dict[str, Any]:
        """Bytes in all, outside the blocks, and by block (equal neighbours folded: [bytes, blocks])."""
        outside, blocks = 0, {}
        for module, _, size in self.alive():
            block = block_of(module)
            if block is None:
                outside += size
            else:
                blocks[block] = blocks.get(block, 0) + size
        folded: list[list[int]] = []
        for block in sorted(blocks):
            if folded and folded[-1][0] == blocks[block]:
                folded[-1][1] += 1
            else:
                folded.append([blocks[block], 1])
        return {"bytes": outside + sum(blocks.values()), "outside_blocks": outside, "blocks": folded}


def block_of(module: str) -> int | None:
    """Number of the block that a module's dotted name lies in."""
    for before, part in itertools.pairwise(module.split(".")):
        if part.isdigit() and before in ("layers", "h", "blocks"):
            return int(part)
    return None


def counter(model: torch.nn.Module) -> LiveBytes:
    """What counts; where the experts' loop reads the router's numbers, it knows those."""
    if getattr(model, "config", None) is None or model.config.model_type not in even_routing.MODEL_TYPES:
        return LiveBytes(DEVICE)
    return even_routing.EvenRouting(DEVICE)


class Step:
    """Runs training steps of one case and keeps count."""

    def __init__(self, model: torch.nn.Module, plan: dict[str, Any]):
        self.model, self.plan = model, plan
        self.live = counter(model)
        self.kept: list[torch.Tensor] = []
        if "quantization" in plan:
            import quantised

            self.kept, self.live.parts = quantised.state_tensors(model), quantised.PARTS
        self.trained = [p for p in model.parameters() if p.requires_grad]
        self.saved = Saved(model, self.kept, self.live.modules)
        self._mark_phases()

    def _mark_phases(self) -> None:
        """Say to the counter where the run is: module names on a stack, phases by hooks on two hidden states."""
        stack, live = self.live.modules, self.live
        for name, module in self.model.named_modules():
            module.register_forward_pre_hook(lambda module, given, name=name: stack.append(name))
            module.register_forward_hook(lambda module, given, out: (stack.pop(), None)[1])
        inner = getattr(self.model, "module", self.model)
        inner = inner.get_base_model() if hasattr(inner, "get_base_model") else inner

        def enter(phase):
            def at(*_):
                live.phase = phase

            return at

        def embedded(module, given, out):
            if live.phase == "forward" and out.requires_grad:
                out.register_hook(enter("end of backward"))

        def stacked(module, given, out):
            hidden = out[0]
            if hidden.requires_grad:
                hidden.register_hook(enter("backward"))
            live.phase = "loss forward"

        first = inner.get_encoder() if inner.config.is_encoder_decoder else inner
        last = inner.base_model if inner.base_model is not inner else inner.get_decoder()
        first.get_input_embeddings().register_forward_hook(embedded)
        last.register_forward_hook(stacked)

    def forward(self, batch: dict[str, torch.Tensor], observe: bool) -> torch.Tensor:
        """The loss, computed as the Trainer does: autocast around forward, outputs back to fp32 after it."""
        dtype = AUTOCAST.get(self.plan["precision"])
        with contextlib.ExitStack() as around:
            if observe:
                around.enter_context(saved_tensors_hooks(self.saved.pack, lambda t: t))
            if self.plan.get("loss") == "chunked":
                import fused

                with torch.autocast(DEVICE, dtype=dtype) if dtype else contextlib.nullcontext():
                    return fused.chunked_loss(self.model, batch)
            if dtype is None:
                return self.model(**batch).loss
            with torch.autocast(DEVICE, dtype=dtype):
                out = self.model(**batch)
        from accelerate.utils.operations import convert_to_fp32

        return convert_to_fp32(out).loss

    def run(self) -> dict[str, Any]:
        live, plan = self.live, self.plan
        with live:
            live.count_module(self.model)
            parameters = sum(
                p.numel() * p.element_size() for p in map(local, self.model.parameters()) if p.device.type == DEVICE
            )
            buffers = live.live - parameters
            for tensor in self.kept:
                live.count(tensor)
            measured = {
                "parameters": sum(p.numel() for p in self.model.parameters()),
                "trainable": sum(p.numel() for p in self.trained),
                "parameter_bytes": parameters,
                "buffer_bytes": buffers,
            }
            if self.kept:
                measured["quantization_state_bytes"] = live.live - parameters - buffers
            model_bytes = live.live
            batch = self._batch()
            measured["input_bytes"] = live.live - model_bytes
            optimizer, scaler = self._prepare_optimizer()
            offload = self._offload()
            if offload is not None:  # it remembers the last operation of a backward, and what hangs on that
                with offload:
                    loss = self.forward(batch, observe=False)
                    self._backward(loss, optimizer, scaler)
                    del loss
                self._update(optimizer, scaler)
            live.forget_peaks()
            standing = measured["standing_bytes"] = live.live
            measured["optimizer_bytes"] = standing - model_bytes - measured["input_bytes"]
            micros = plan.get("gradient_accumulation_steps", 1)
            for micro in range(micros):
                live.phase = "forward"
                self._begins(last=micro == micros - 1)
                before = live.live
                with offload or contextlib.nullcontext():
                    loss = self.forward(batch, observe=micro == 0 and offload is None)
                    if offload is not None:
                        import offloaded

                        measured["host_activation_bytes"] = offloaded.on_host(offload)
                    elif micro == 0:
                        measured["saved"] = self.saved.record()
                    measured["live_after_forward"] = live.live - before
                    live.phase = "loss backward"
                    self._backward(loss, optimizer, scaler)
                    del loss
            measured["live_after_backward"] = live.live - standing
            if in_vain := sum(p.numel() for p in self.trained if p.grad is None):
                measured["without_gradient"] = in_vain
            live.phase = "optimizer step"
            self._update(optimizer, scaler)
            measured["peaks"] = {name: peak.bytes for name, peak in live.peaks.items() if name in PHASES}
            measured["rounded_peaks"] = {name: peak.rounded for name, peak in live.peaks.items() if name in PHASES}
            measured["peak_at"] = {name: peak.at for name, peak in live.peaks.items() if name in PHASES}
        return measured

    def _offload(self) -> Any:
        """What moves saved activations to host memory; None where they stay."""
        if self.plan["gradient_checkpointing"] != "offload" and not self.plan.get("sharding", {}).get(
            "activation_offload"
        ):
            return None
        import offloaded

        return offloaded.around(self.model)

    def _begins(self, *, last: bool) -> None:
        """A micro-batch begins."""

    def _backward(self, loss: torch.Tensor, optimizer: Any, scaler: torch.amp.GradScaler | None) -> None:
        if hasattr(optimizer, "fused_backward"):
            optimizer.fused_backward(loss)
        else:
            (loss if scaler is None else scaler.scale(loss)).backward()

    def _prepare_optimizer(self) -> tuple[torch.optim.Optimizer, torch.amp.GradScaler | None]:
        """The optimizer with its states, as every step but the first finds it."""
        if self.plan.get("optimizer_in_backward") or self.plan["optimizer"] not in OPTIMIZERS:
            return self._stepping_in_backward(), None
        optimizer = OPTIMIZERS[self.plan["optimizer"]](self._groups())
        scaler = torch.amp.GradScaler(DEVICE) if self.plan["precision"] in SCALED else None
        if scaler is not None:
            scaler.scale(torch.zeros(1, device=DEVICE))
        for parameter in self.trained:
            parameter.grad = torch.empty_like(parameter)
        self._update(optimizer, scaler)
        return optimizer, scaler

    def _stepping_in_backward(self) -> Any:
        """An optimizer that steps inside the backward pass, with its states: a step was done."""
        import in_backward

        if self.plan["optimizer"] in OPTIMIZERS:
            optimizer = in_backward.EachItsOwn(self.trained, OPTIMIZERS[self.plan["optimizer"]])
        else:
            optimizer = in_backward.FromTransformers(self.model, self.plan)
        self._backward(self.forward(self._batch(), observe=False), optimizer, None)
        return optimizer

    def _groups(self) -> list[dict[str, Any]]:
        """The trained parameters with weight decay and those without, as the Trainer parts them; a fused step makes nothing for a group."""
        if self.plan["optimizer"] == "adamw_torch_fused":
            return [{"params": self.trained}]
        decayed = set(transformers.Trainer.get_decay_parameter_names(None, self.model))
        parts: tuple[list[torch.nn.Parameter], ...] = ([], [])
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                parts[name not in decayed].append(parameter)
        return [{"params": part} for part in parts if part]

    def _update(self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        if scaler is None:
            optimizer.step()
        else:
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad(set_to_none=True)

    def _batch(self) -> dict[str, torch.Tensor]:
        size = self.plan["micro_batch_size"], self.plan["seq_len"]
        ids = torch.zeros(*size, dtype=torch.long, device=DEVICE)
        batch = {"input_ids": ids, "labels": ids, "use_cache": False}
        if "SequenceClassification" in type(self.model).__name__:
            batch["labels"] = torch.zeros(size[0], dtype=torch.long, device=DEVICE)
        if self.plan.get("padded"):
            batch["attention_mask"] = torch.ones(*size, dtype=torch.long, device=DEVICE)
        return batch


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Every count of one case."""
    gc.collect()
    with FakeTensorMode(allow_non_fake_inputs=True):
        return Step(build_model(case["model"], case["plan"]), case["plan"]).run()
