"""Models that see images against recorded steps of the real classes: parts frozen and trained, with and without checkpointing."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from recordings import GOLDEN, saved

from calc.autograd.storage import SIZE
from calc.catalog.gpus import GPUS
from calc.memory.estimate import estimate
from calc.memory.recipes import recipe
from calc.memory.refused import Refused
from calc.memory.step import run
from calc.model import Architecture, architecture
from calc.scenario import Scenario

ROWS: list[dict[str, Any]] = json.loads((GOLDEN / "oracle" / "steps_vision.json").read_text())["rows"]
CONFIGS: dict[str, dict[str, Any]] = {
    row["case"]["model"]: row["measured"]["config"] for row in ROWS if "plan" not in row["case"]
}


@cache
def model(name: str) -> Architecture:
    """The architecture of a recorded model."""
    return architecture(CONFIGS[name])


def found(row: dict[str, Any]) -> dict[str, int]:
    """What our step says to what was measured."""
    case = row["case"]
    net = model(case["model"])
    plan = Scenario.model_validate({"model": {"config": CONFIGS[case["model"]]}, "plan": case["plan"]}).plan
    how = recipe(plan, GPUS["a100-sxm-80gb"])
    step = run(net, how)
    ours = {
        "trainable": sum(p.numel * p.count for p in step.parameters if p.trainable),
        "buffer_bytes": net.family.buffers(net.dims, SIZE[how.dtype]),
        "input_bytes": inputs(net, how),
        "live_after_forward": step.live.total,
        "live_after_backward": step.after.total,
        "forward": step.forward.total,
        "backward": max(step.loss.total, step.backward.total, step.end.total),
    }
    if how.adapters is None:
        ours["parameters"] = sum(p.numel * p.count for p in step.parameters)
    if how.checkpointing == "none":  # else the list has the blocks' inputs too, which they keep in another way
        ours["saved"] = saved(step)
    return ours


def inputs(net: Architecture, how: Any) -> int:
    """Bytes of the batch."""
    total = 8 * how.batch * how.length * (2 if how.padded else 1)
    for one in net.family.given(net.dims, how):
        size = SIZE[one.dtype]
        for d in one.shape:
            size *= d
        total += size
    return total


def measured(row: dict[str, Any]) -> dict[str, int]:
    """What was measured, by our words."""
    values, peaks = row["measured"], row["measured"]["peaks"]
    standing = values["standing_bytes"]
    phases = {
        "forward": ("forward", "loss forward"),
        "backward": ("loss backward", "backward", "end of backward"),
    }
    return values | {
        name: max(peaks[phase] for phase in these if phase in peaks) - standing for name, these in phases.items()
    }


SIZES = (
    (448, 448, 448, 448, 448, 448),
    (336, 500, 336, 504, 336, 504),
    (1080, 1920, 1092, 1932, 868, 1540),
    (50, 70, 56, 56, 56, 84),
    (28, 4000, 28, 4004, 28, 1540),
    (3000, 4000, 2996, 4004, 1176, 1540),
    (10, 10, 56, 56, 28, 28),
    (98, 126, 112, 112, 112, 140),
    (4362, 277, 4368, 280, 1540, 112),
    (444, 1324, 448, 1316, 448, 1344),
    (3862, 2059, 3864, 2072, 1540, 840),
    (3139, 4494, 2968, 4284, 1092, 1540),
    (855, 4741, 868, 4732, 280, 1540),
    (2309, 1531, 2296, 1540, 1540, 1036),
)
"""Height and width; what smart_resize of Qwen2-VL's image processor makes of them with patches of 28 and the bounds of the published models;
what get_resize_output_image_size of Pixtral's makes of them with patches of 28 and a longest side of 1540. From transformers 5.24.0."""


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_image_processors_make_the_recorded_sizes(size: tuple[int, ...]) -> None:
    """Rounded to whole merged patches, within the bounds; a token for each merged patch."""
    height, width, *made = size
    qwen = architecture({"model_type": "qwen2_5_vl", "vision_config": {"model_type": "qwen2_5_vl"}}).dims
    pixtral = architecture({"model_type": "mistral3"}).dims
    seen, other = qwen.sight(height, width), pixtral.sight(height, width)
    assert made == [seen.height, seen.width, other.height, other.width]
    assert seen.tokens == seen.height * seen.width // 28**2
    assert (other.tokens, other.beside) == (other.height * other.width // 28**2, other.height // 28)


TILES = (
    (448, 448, 1),
    (100, 100, 1),
    (1080, 1920, 9),
    (3000, 4000, 13),
    (448, 896, 3),
    (600, 1200, 3),
    (2000, 500, 5),
    (4032, 3024, 13),
)
"""Height, width, and tiles that get_optimal_tiled_canvas of InternVL's image processor makes with the small copy. From transformers 5.24.0."""


@pytest.mark.parametrize("size", TILES, ids=str)
def test_an_image_is_cut_into_the_recorded_tiles(size: tuple[int, int, int]) -> None:
    """At most twelve, and a small copy beside several; 256 tokens for each."""
    seen = architecture({"model_type": "internvl"}).dims.sight(*size[:2])
    assert size[2] == seen.tiles
    assert seen.tokens == 256 * seen.tiles


CANVASES = (
    (336, 336, 1, 3),
    (100, 100, 1, 3),
    (1080, 1920, 16, 18),
    (3000, 4000, 13, 15),
    (336, 672, 3, 5),
    (600, 1200, 9, 11),
    (2000, 500, 13, 15),
    (28, 4000, 13, 15),
    (5000, 200, 16, 18),
    (2000, 2000, 17, 19),
)
"""Height, width, tiles that get_best_fit of Llama 4's image processor makes with the small copy, and the other tokens that its processor
writes for them. From transformers 5.24.0."""


@pytest.mark.parametrize("size", CANVASES, ids=str)
def test_an_image_is_laid_on_the_recorded_canvas(size: tuple[int, int, int, int]) -> None:
    """At most sixteen tiles, and a small copy beside several; 144 tokens for each."""
    height, width, tiles, beside = size
    seen = architecture({"model_type": "llama4", "vision_config": {"image_size": 336}}).dims.sight(height, width)
    assert (tiles, beside, 144 * tiles) == (seen.tiles, seen.beside, seen.tokens)


PIECES = (
    (336, 336, 17),
    (100, 100, 17),
    (1080, 1920, 13),
    (3000, 4000, 13),
    (28, 4000, 5),
    (2000, 500, 5),
    (4032, 3024, 13),
)
"""Height, width, and tiles that Idefics3's image processor makes with the small copy. From transformers 5.24.0."""


@pytest.mark.parametrize("size", PIECES, ids=str)
def test_an_image_is_brought_to_four_tiles_along_its_longer_side(size: tuple[int, int, int]) -> None:
    """A small one too; SmolVLM's tiles of 512 pixels are 64 tokens each."""
    height, width, tiles = size
    config = {"model_type": "smolvlm", "scale_factor": 4, "vision_config": {"image_size": 512, "patch_size": 16}}
    seen = architecture(config).dims.sight(height, width)
    assert (tiles, 64 * tiles) == (seen.tiles, seen.tokens)


ROUNDED = (
    (448, 448, 448, 448),
    (336, 500, 336, 504),
    (1080, 1920, 1092, 1932),
    (50, 70, 84, 112),
    (28, 4000, 28, 4004),
    (3000, 4000, 1876, 2520),
    (10, 10, 84, 84),
    (98, 126, 112, 112),
)
"""Height and width, and what smart_resize of GLM-4.1V's image processor makes of them. From transformers 5.24.0."""


@pytest.mark.parametrize("size", ROUNDED, ids=str)
def test_an_image_is_rounded_as_two_frames(size: tuple[int, int, int, int]) -> None:
    """The bounds are for all frames that a patch reaches over; a narrow strip is not taken."""
    height, width, *made = size
    glm = architecture({"model_type": "glm4v"}).dims
    seen = glm.sight(height, width)
    assert made == [seen.height, seen.width]
    assert seen.tokens == seen.height * seen.width // 28**2
    assert not glm.unable(height, width)
    assert "more than 200 times" in glm.unable(20, 20 * 201)


SCOUT_TOWER = {"image_size": 336, "hidden_size": 1408, "vision_output_dim": 4096}


@pytest.mark.parametrize(
    ("vision", "said"),
    [
        (SCOUT_TOWER, ""),
        (SCOUT_TOWER | {"vision_output_dim": 7680}, "takes 7,680 numbers and is given 4,096"),
        (SCOUT_TOWER | {"image_size": 350}, "do not fall into squares"),
    ],
)
def test_a_tower_whose_layers_do_not_meet_cannot_see(vision: dict[str, int], said: str) -> None:
    """Such a config makes a model, which only fails when it is given an image."""
    tower = architecture({"model_type": "llama4", "vision_config": vision}).dims
    assert said in tower.unable(336, 336)
    assert bool(said) == bool(tower.unable(336, 336))


def test_bf16_pixels_do_not_meet_fp32_weights() -> None:
    """Llama 4's image processor hands on bf16, and its tower multiplies it as it is; the recording is refused too."""
    for precision, fails in (("fp32", True), ("bf16", False), ("bf16-mixed", False)):
        plan = {
            "method": "full",
            "micro_batch_size": 1,
            "seq_len": 512,
            "precision": precision,
            "images": {"per_sequence": 1},
        }
        question = Scenario.model_validate({"model": {"config": CONFIGS["llama4@2"]}, "plan": plan})
        if fails:
            with pytest.raises(Refused, match="bf16 pixels"):
                estimate(question)
        else:
            assert estimate(question).peak.allocated > 0


def test_a_class_that_fails_as_it_stands_is_told() -> None:
    """Llama 4's of 5.24.0, which the oracle mends; Llama's is whole."""
    for name, codes in (("llama4@2", ["class_is_mended"]), ("llava@2", [])):
        plan = {"method": "full", "micro_batch_size": 1, "seq_len": 64}
        answer = estimate(Scenario.model_validate({"model": {"config": CONFIGS[name]}, "plan": plan}))
        assert codes == [problem.code for problem in answer.problems if problem.code == "class_is_mended"]


def test_all_linear_means_a_convolution_too_in_glm_4_5v() -> None:
    """PEFT turns it into the layers' last names there, and the patches' convolution is called as two of them are."""
    for part, refused in (({}, True), ({"train_vision": False}, False)):
        plan = {"method": "lora", "micro_batch_size": 1, "seq_len": 64, "images": part}
        plan |= {"lora": {"target_modules": "all-linear"}}
        question = Scenario.model_validate({"model": {"config": CONFIGS["glm4v_moe@2"]}, "plan": plan})
        if refused:
            with pytest.raises(Refused, match="convolution"):
                estimate(question)
        else:
            assert estimate(question).parameters.trainable > 0


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "router"]])
def test_the_router_of_llama_4_takes_no_adapter(targets: Any) -> None:
    """It hands back a pair; PEFT 0.21 raises an AttributeError when it adds to it."""
    plan = {"method": "lora", "micro_batch_size": 1, "seq_len": 64, "lora": {"target_modules": targets}}
    with pytest.raises(Refused, match="router"):
        estimate(Scenario.model_validate({"model": {"config": CONFIGS["llama4@2"]}, "plan": plan}))


GEMMA = "google/gemma-3-4b-it"


def asked(model: str, **images: Any) -> Scenario:
    """A small plan with images."""
    plan = {"method": "lora", "micro_batch_size": 1, "seq_len": 512, "images": images}
    return Scenario.model_validate({"model": model, "plan": plan})


def test_a_model_without_eyes_refuses_images() -> None:
    """And has no parts to freeze."""
    with pytest.raises(Refused, match="sees no images"):
        estimate(asked("google/gemma-3-1b-it", per_sequence=1))
    with pytest.raises(Refused, match="no parts to freeze"):
        estimate(asked("google/gemma-3-1b-it", train_vision=False))


def test_a_step_that_trains_nothing_is_refused() -> None:
    """On text alone the tower does not run, whatever is said of it."""
    with pytest.raises(Refused, match="train at least one"):
        estimate(asked(GEMMA, train_text=False))
    assert estimate(asked(GEMMA, train_text=False, per_sequence=1)).parameters.trainable > 0


def test_images_longer_than_the_sequence_are_told() -> None:
    """Two of 256 tokens fit 512, three do not."""
    assert [] == [problem.code for problem in estimate(asked(GEMMA, per_sequence=2)).problems]
    assert ["images_too_long"] == [problem.code for problem in estimate(asked(GEMMA, per_sequence=3)).problems]


def test_without_images_the_tower_stands_by_as_frozen() -> None:
    """Its weights are loaded, no gradient reaches them, and freezing it changes nothing."""
    trained, frozen = (estimate(asked(GEMMA, train_vision=how, train_projector=how)) for how in (True, False))
    assert trained.peak == frozen.peak
    assert trained.parameters == frozen.parameters
    assert trained.parameters.total == 4_300_079_472


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_recorded_step_with_images_is_met_to_the_byte(name: str) -> None:
    """Parameters, buffers, inputs, what is saved and alive, both peaks and the gradients."""
    off = []
    for row in ROWS:
        if row["case"]["model"] == name and "plan" in row["case"]:
            theirs = measured(row)
            off += [
                (json.dumps(row["case"]["plan"]), key, n - theirs[key])
                for key, n in found(row).items()
                if n != theirs[key]
            ]
    assert [] == off
