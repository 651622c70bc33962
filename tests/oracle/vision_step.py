"""One training step of a real model that sees images, counted as train_step.py counts: which parts are trained is the plan's word.

The plan's `images`: `per_sequence`, `height` and `width` in pixels as the image processor hands them on, and whether the vision tower
(`train_vision`), the projector (`train_projector`) and the text model (`train_text`) are trained. Optimizer states are made by a first
whole step, since parts of some towers never get a gradient; what is saved is looked at in that one too, for looking keeps the inputs of
checkpointed blocks that have no gradient.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import fake_gpu  # noqa: F401  (before torch)
import torch
import train_step
import transformers
import transformers.initialization
from known_numbers import KnownNumbers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes
from train_step import DEVICE, DTYPE, PHASES, WEIGHTS, local
from vision_models import MODELS

# Numbers are drawn again until they lie within bounds, which a fake tensor cannot say of itself.
transformers.initialization.TORCH_INIT_FUNCTIONS["trunc_normal_"] = lambda tensor, *args, **kwargs: tensor

# Llama 4's class of 5.24.0 asks its text model's output for a field that it lacks, and so cannot run as it stands.
transformers.models.llama4.modeling_llama4.MoeCausalLMOutputWithPast.image_outputs = None

torch.utils.checkpoint.DefaultDeviceType.set_device_type(DEVICE)  # what torch finds by itself where there is a GPU

# Whether a mask of patches holds only ones is asked of its numbers, which are known here.
transformers.masking_utils._ignore_bidirectional_mask_sdpa = lambda mask, length, window=None: (
    window is None and (mask is None or bool(mask.all()))
)

make_tensor = torch.tensor


def tensor(data: Any, **kwargs: Any) -> torch.Tensor:
    """torch.tensor, also of a list of tensors with one number each, which are read for it."""
    if isinstance(data, list):
        data = [item.item() if isinstance(item, torch.Tensor) else item for item in data]
    return make_tensor(data, **kwargs)


torch.utils._device._device_constructors()  # notes the true one, so that `with torch.device(...)` goes on meaning it
torch.tensor = tensor

NOISE = (
    "transformers_version",
    "_name_or_path",
    "id2label",
    "label2id",
    "architectures",
    "chunk_size_feed_forward",
    "dtype",
)
PROJECTOR = ("multi_modal_projector", "visual.merger", "deepstack_merger", "connector", "mlp1")
TOWER = ("vision_tower", "visual.", "vision_model")
SEQUENCE = ("input_ids", "labels")


def part_of(name: str) -> str:
    """The part that a parameter belongs to."""
    if any(word in name for word in PROJECTOR):
        return "projector"
    return "vision" if any(word in name for word in TOWER) else "text"


def build_model(name: str, plan: dict[str, Any]) -> torch.nn.Module:
    """The model on the pretended GPU, with the parts that the plan freezes frozen."""
    row = MODELS[name]
    config = getattr(transformers, row.config)(**row.given)
    with torch.device(DEVICE):
        model = transformers.AutoModelForImageTextToText.from_config(
            config, attn_implementation=plan["attention"], **{DTYPE: WEIGHTS[plan["precision"]]}
        )
    model.tie_weights()
    model.train()
    model.config.use_cache = False
    model.config.get_text_config().use_cache = False
    images = plan.get("images", {})
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(images.get(f"train_{part_of(name)}", True))
    if "lora" in plan:
        import adapters

        if any(not trained for key, trained in images.items() if key.startswith("train_")):
            plan = plan | {"lora": plan["lora"] | {"target_modules": adapted_layers(model, images, plan["lora"])}}
        model = adapters.wrap(model, plan)
    if plan["gradient_checkpointing"] != "none":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if "lora" in plan:
            model.enable_input_require_grads()
    return model


def adapted_layers(model: torch.nn.Module, images: dict[str, Any], lora: dict[str, Any]) -> list[str]:
    """The linear layers that are meant, of the parts that get adapters: all but the head, or those of a list."""
    head, meant = model.get_output_embeddings(), lora["target_modules"]
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and module is not head
        and (meant == "all-linear" or name.rpartition(".")[2] in meant)
        and images.get(f"train_{part_of(name)}", True)
    ]


class Saved(train_step.Saved):
    """What autograd keeps. A result that its own node keeps would never go if nothing runs backward through it, as in a tower's last
    layer, so its memory is kept without it."""

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Note the tensor, and keep only its memory."""
        return super().pack(tensor).detach()


class RealImages(KnownNumbers):
    """Counts as KnownNumbers does, and knows that no image is only there to fill the batch, which a class may ask of the pixels."""

    def told(self, func: Any, args: Any, out: Any) -> None:
        """How many pixels of an image are zero is compared with their number."""
        if func is torch.ops.aten.ne.Scalar and out.dim() == 1:
            with _disable_current_modes():
                self.know(out, torch.ones(out.shape, dtype=torch.bool))


class VisionStep(train_step.Step):
    """A step whose batch has images in it."""

    def __init__(self, model: torch.nn.Module, plan: dict[str, Any]):
        super().__init__(model, plan)
        self.live = RealImages(DEVICE)
        self.saved = Saved(model, self.kept, self.live.modules)
        self._mark_phases()

    def _mark_phases(self) -> None:
        if not isinstance(self.live, KnownNumbers):
            return  # called by the parent, of another counter
        super()._mark_phases()

    def run(self) -> dict[str, Any]:
        live = self.live
        with live:
            live.count_module(self.model)
            parameters = sum(p.numel() * p.element_size() for p in map(local, self.model.parameters()))
            buffers = live.live - parameters
            measured = {
                "parameters": sum(p.numel() for p in self.model.parameters()),
                "parameter_bytes": parameters,
                "buffer_bytes": buffers,
            }
            model_bytes = live.live
            batch = self._batch()
            measured["input_bytes"] = live.live - model_bytes
            optimizer = train_step.OPTIMIZERS[self.plan["optimizer"]](self.trained)
            loss = self.forward(batch, observe=True)
            measured["saved"] = self.saved.record()["bytes"]
            loss.backward()
            measured["trainable"] = sum(p.numel() for p in self.trained if p.grad is not None)
            measured["without_gradient"] = sum(p.numel() for p in self.trained if p.grad is None)
            del loss
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            states = [t for state in optimizer.state.values() for t in state.values() if t.device.type == DEVICE]
            measured["optimizer_bytes"] = sum(t.numel() * t.element_size() for t in states)
            live.forget_peaks()
            standing = measured["standing_bytes"] = live.live
            measured["kept_by_model"] = standing - model_bytes - measured["input_bytes"] - measured["optimizer_bytes"]
            live.phase = "forward"
            loss = self.forward(batch, observe=False)
            measured["live_after_forward"] = live.live - standing
            live.phase = "loss backward"
            loss.backward()
            del loss
            measured["live_after_backward"] = live.live - standing
            live.phase = "optimizer step"
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            measured["peaks"] = {name: peak.bytes for name, peak in live.peaks.items() if name in PHASES}
            measured["peak_at"] = {name: peak.at for name, peak in live.peaks.items() if name in PHASES}
        return measured

    def _batch(self) -> dict[str, Any]:
        """What the processor and the collator of the class hand to the model."""
        rows, length = self.plan["micro_batch_size"], self.plan["seq_len"]
        inner = getattr(self.model, "base_model", self.model) if "lora" in self.plan else self.model
        inner = getattr(inner, "model", inner) if "lora" in self.plan else inner
        config = inner.config
        images = self.plan.get("images", {})
        number = images.get("per_sequence", 0)
        kind = config.model_type
        with _disable_current_modes():
            numbers = torch.zeros(rows, length, dtype=torch.long)
        given: dict[str, Any] = {}
        if number:
            given, tokens = PROCESSORS[kind](config, rows * number, images["height"], images["width"])
            if kind in BY_SEQUENCE:
                given = {name: by_sequence(value, rows) for name, value in given.items()}
            marker = getattr(config, "image_token_id", None)
            marker = config.image_token_index if marker is None else marker
            with _disable_current_modes():
                for image in range(number):  # a token of text before each
                    start = 1 + image * (tokens + 1)
                    numbers[:, start : start + tokens] = marker
        batch = {"input_ids": self._known(numbers), "use_cache": False}
        batch["labels"] = batch["input_ids"]
        if number and kind in TYPED:
            with _disable_current_modes():
                kinds = (numbers == marker).long()
            batch[TYPED[kind]] = self._known(kinds)
        if self.plan.get("padded"):
            with _disable_current_modes():
                real = torch.ones(rows, length, dtype=torch.long)
            batch["attention_mask"] = self._known(real)
        return batch | {
            name: self._known(value) if value.dtype == torch.long else value.to(DEVICE) for name, value in given.items()
        }

    def _known(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.live.know(torch.empty(numbers.shape, dtype=numbers.dtype, device=DEVICE), numbers)


def by_sequence(images: torch.Tensor, rows: int) -> torch.Tensor:
    """The images of each sequence apart."""
    with _disable_current_modes() if images.dtype == torch.long else contextlib.nullcontext():
        return images.unflatten(0, (rows, -1))


def _pixels(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, dtype=torch.float32, device=DEVICE)


def _sizes(count: int, *each: int) -> torch.Tensor:
    with _disable_current_modes():
        return torch.tensor([list(each)] * count, dtype=torch.long)


def _llava(config, count, height, width):
    vision = config.vision_config
    tokens = (height // vision.patch_size) * (width // vision.patch_size)
    return {"pixel_values": _pixels(count, 3, height, width)}, tokens


def _gemma3(config, count, height, width):
    return {"pixel_values": _pixels(count, 3, height, width)}, config.mm_tokens_per_image


def _mistral3(config, count, height, width):
    side = config.vision_config.patch_size * config.spatial_merge_size
    given = {"pixel_values": _pixels(count, 3, height, width), "image_sizes": _sizes(count, height, width)}
    return given, (height // side) * (width // side)


def _qwen(config, count, height, width):
    vision = config.vision_config
    grid = height // vision.patch_size, width // vision.patch_size
    columns = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    given = {
        "pixel_values": _pixels(count * grid[0] * grid[1], columns),
        "image_grid_thw": _sizes(count, 1, *grid),
    }
    return given, grid[0] * grid[1] // vision.spatial_merge_size**2


def _internvl(config, count, height, width):
    """Whole tiles of the tower's size, and a small copy of the whole beside several."""
    side, patch = config.vision_config.image_size[0], config.vision_config.patch_size[0]
    tiles = (height // side) * (width // side)
    tiles += tiles > 1
    return {"pixel_values": _pixels(count * tiles, 3, side, side)}, int(
        tiles * (side // patch * config.downsample_ratio) ** 2
    )


def _llama4(config, count, height, width):
    """Whole tiles of the tower's size, and a small copy of the whole beside several, in bf16."""
    side, patch = config.vision_config.image_size, config.vision_config.patch_size
    tiles = (height // side) * (width // side)
    tiles += tiles > 1
    tokens = int(tiles * (side // patch * config.vision_config.pixel_shuffle_ratio) ** 2)
    return {"pixel_values": _pixels(count * tiles, 3, side, side).to(torch.bfloat16)}, tokens


def _idefics3(config, count, height, width):
    """Whole tiles of the tower's size, and a small copy of the whole beside several; and which of their pixels are real."""
    side, patch = config.vision_config.image_size, config.vision_config.patch_size
    tiles = (height // side) * (width // side)
    tiles += tiles > 1
    with _disable_current_modes():
        real = torch.ones(count * tiles, side, side, dtype=torch.long)
    tokens = tiles * (side // patch // config.scale_factor) ** 2
    return {"pixel_values": _pixels(count * tiles, 3, side, side), "pixel_attention_mask": real}, tokens


PROCESSORS = {
    "llava": _llava,
    "gemma3": _gemma3,
    "paligemma": _llava,
    "mistral3": _mistral3,
    "qwen2_vl": _qwen,
    "qwen2_5_vl": _qwen,
    "qwen3_vl": _qwen,
    "glm4v": _qwen,
    "glm46v": _qwen,
    "glm4v_moe": _qwen,
    "internvl": _internvl,
    "llama4": _llama4,
    "idefics3": _idefics3,
    "smolvlm": _idefics3,
}
BY_SEQUENCE = ("idefics3", "smolvlm")
"""Types whose images lie sequence by sequence."""
TYPED = {
    "gemma3": "token_type_ids",
    "paligemma": "token_type_ids",
    "qwen2_vl": "mm_token_type_ids",
    "qwen2_5_vl": "mm_token_type_ids",
    "qwen3_vl": "mm_token_type_ids",
    "glm4v": "mm_token_type_ids",
    "glm46v": "mm_token_type_ids",
    "glm4v_moe": "mm_token_type_ids",
}
"""What tells a class which tokens are an image's."""


def told(value: Any) -> Any:
    """A config as config.json holds it, every default written out, without nulls and what says nothing about the model."""
    if not isinstance(value, dict):
        return value
    return {key: told(inner) for key, inner in value.items() if inner is not None and key not in NOISE}


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Every count of one case; of a model without a plan its config."""
    gc.collect()
    if "plan" not in case:
        row = MODELS[case["model"]]
        return {"config": told(getattr(transformers, row.config)(**row.given).to_dict())}
    with FakeTensorMode(allow_non_fake_inputs=True):
        return VisionStep(build_model(case["model"], case["plan"]), case["plan"]).run()
