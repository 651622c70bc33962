"""What keeps images from being seen: each one sentence that says what to do."""

from __future__ import annotations

from calc.catalog.frameworks import FRAMEWORKS
from calc.memory.breakdown import Problem
from calc.memory.recipes import PRECISIONS
from calc.memory.refused import Refused
from calc.model.family import Architecture
from calc.model.recipe import PARTS
from calc.model.vision import Seeing
from calc.scenario import Plan

MEASURED = "transformers-5.24"
"""The release whose classes were measured."""


def refuse_images(plan: Plan, model: Architecture) -> None:
    """Raises `Refused` for images that a model cannot see, or whose run was not measured."""
    given, dims = plan.images, model.dims
    trained = {part for part in PARTS if getattr(given, f"train_{part}")}
    if not isinstance(dims, Seeing):
        if given.per_sequence:
            raise Refused(
                "sees_no_images",
                f"{model.name} sees no images; set images per sequence to 0, or choose a model that sees them.",
                "plan.images.per_sequence",
            )
        if trained != PARTS:
            raise Refused("no_parts", f"{model.name} has no parts to freeze; train all of it.", "plan.images")
        return
    if not (trained if given.per_sequence else trained & {"text"}):
        raise Refused(
            "nothing_trained", "every part that runs is frozen; train at least one.", "plan.images.train_text"
        )
    for field, usual in (("framework", MEASURED), ("loss", "eager")):
        if (value := getattr(plan, field)) != usual:
            name = FRAMEWORKS[value].label if field == "framework" else value
            raise Refused(
                "not_modelled_with_images",
                f"{field} {name} is not modelled for models that see images; choose {usual}.",
                f"plan.{field}",
            )
    if not given.per_sequence:
        return
    if plan.gradient_checkpointing == "selective":
        raise Refused(
            "not_modelled_with_images",
            "selective checkpointing is not modelled with images; choose full or none.",
            "plan.gradient_checkpointing",
        )
    precision = PRECISIONS[plan.precision]
    if dims.pixels not in ("fp32", precision.weights) and not precision.autocast:
        raise Refused(
            "class_fails",
            f"the image processor of {model.name} makes {dims.pixels} pixels, which meet {precision.weights} weights in its tower, and PyTorch "
            "refuses that product without autocast; choose bf16 or bf16-mixed.",
            "plan.precision",
        )
    if reason := dims.unable(given.height, given.width):
        raise Refused("image_not_seen", f"{model.name} cannot see this image: {reason}.", "model")


def image_problems(plan: Plan, model: Architecture) -> tuple[Problem, ...]:
    """Images whose tokens are more than a sequence has."""
    given, dims = plan.images, model.dims
    if not isinstance(dims, Seeing) or not given.per_sequence:
        return ()
    sight = dims.sight(given.height, given.width)
    tokens = given.per_sequence * (sight.tokens + sight.beside)
    if tokens <= plan.seq_len:
        return ()
    return (
        Problem(
            "images_too_long",
            f"The images take {tokens:,} tokens of a sequence and only {plan.seq_len:,} fit, which the class refuses; lengthen it, or take "
            "fewer or smaller ones.",
            "plan.seq_len",
            blocking=False,
        ),
    )
