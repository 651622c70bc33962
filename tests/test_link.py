"""A scenario is a link: what goes in comes out, for good, whatever else the link carries."""

from __future__ import annotations

import base64
import json
import random
import string
import zlib
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from calc import link
from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.gpus import GPUS
from calc.catalog.optimizers import OPTIMIZERS
from calc.examples import EXAMPLES, OPENING
from calc.scenario import (
    AdapterDType,
    Attention,
    Checkpointing,
    ConfigModel,
    FullFineTuning,
    Hardware,
    Kernels,
    Lora,
    LoraAdapter,
    Loss,
    Objective,
    Offload,
    PathModel,
    Precision,
    QLora,
    Quantization,
    QuantizedFormat,
    Scenario,
    Sharding,
    Strategy,
)

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name.strip() == name)
WORDS = st.text(alphabet=string.ascii_letters + string.digits + "_-./,%&=+ é한", min_size=1, max_size=20)


def one_of(literal: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(literal))


ADAPTERS = st.builds(
    LoraAdapter,
    rank=st.integers(1, 4096),
    alpha=st.floats(1e-3, 65536),
    dropout=st.floats(0, 0.99),
    target_modules=st.sampled_from(["all-linear", "attention"]) | st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    modules_to_save=st.lists(WORDS, max_size=3).map(tuple),
    adapter_dtype=one_of(AdapterDType),
    use_dora=st.booleans(),
)
QUANTIZATIONS = st.builds(
    Quantization, format=one_of(QuantizedFormat), double_quant=st.booleans(), upcast_for_training=st.booleans()
)
SHARDINGS = st.builds(
    Sharding,
    strategy=one_of(Strategy),
    data_parallel=st.integers(1, 65536),
    replicas=st.integers(1, 65536),
    reshard_after_forward=st.booleans(),
    sync_each_batch=st.booleans(),
    tensor_parallel=st.integers(1, 256),
    pipeline_parallel=st.integers(1, 256),
    context_parallel=st.integers(1, 256),
    expert_parallel=st.integers(1, 256),
    offload=one_of(Offload),
    activation_offload=st.booleans(),
)
TRAINING: dict[str, st.SearchStrategy[Any]] = {
    "precision": one_of(Precision),
    "optimizer": st.sampled_from(list(OPTIMIZERS)),
    "optimizer_args": st.dictionaries(
        NAMES, st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | WORDS, max_size=4
    ),
    "optimizer_in_backward": st.booleans(),
    "micro_batch_size": st.integers(1, 65536),
    "seq_len": st.integers(1, 16_777_216),
    "gradient_accumulation_steps": st.integers(1, 1_000_000),
    "gradient_checkpointing": one_of(Checkpointing),
    "attention": one_of(Attention),
    "loss": one_of(Loss),
    "kernels": one_of(Kernels),
    "padded": st.booleans(),
    "dequantize": st.booleans(),
    "objective": one_of(Objective),
    "framework": st.sampled_from(list(FRAMEWORKS)),
    "sharding": SHARDINGS,
}
PLANS = (
    st.builds(FullFineTuning, **TRAINING)
    | st.builds(Lora, lora=ADAPTERS, **TRAINING)
    | st.builds(QLora, lora=ADAPTERS, quantization=QUANTIZATIONS, **TRAINING)
)
CONFIGS = st.builds(
    ConfigModel,
    config=st.dictionaries(
        NAMES, st.integers() | WORDS | st.none() | st.booleans() | st.lists(st.integers(), max_size=4), max_size=6
    ),
    id=st.text(max_size=20).filter(lambda name: name.strip() == name),
)
SCENARIOS = st.builds(
    Scenario,
    model=WORDS | CONFIGS,
    plan=PLANS,
    hardware=st.builds(Hardware, gpu=st.sampled_from(list(GPUS)), num_gpus=st.integers(1, 65536)),
)


@settings(max_examples=300, deadline=None)
@given(SCENARIOS)
def test_a_link_opens_the_scenario_that_it_was_made_from(scenario):
    """Whatever the types allow, writing and reading is the identity, and nothing is reported."""
    assert (scenario, ()) == link.scenario(link.query(scenario))


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda example: example.id)
def test_an_example_makes_a_short_link(example):
    """A link that a person will paste somewhere is short, plain and free of escapes."""
    query = link.query(example.scenario)

    assert len(query) < 200
    assert "%" not in query


def test_every_field_of_a_scenario_is_in_the_link():
    """Whoever adds a field must give it a key, or links would lose it."""

    def leaves(model: type[BaseModel], prefix: str) -> set[str]:
        found: set[str] = set()
        for name, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found |= leaves(inner, f"{prefix}{name}.")
            else:
                found.add(f"{prefix}{name}")
        return found

    fields = {"model"} | leaves(Hardware, "hardware.")
    for plan in (FullFineTuning, Lora, QLora):
        fields |= leaves(plan, "plan.")

    assert fields == set(link.KEYS.values())
    assert len(link.KEYS) == len(link.PATHS)


# What version 1 promises for a link that names only a model. Changing one of these changes the meaning of links that
# people already have: it needs a new schema version and a reading of the old one.
FROZEN_DEFAULTS = {
    "full": {
        "precision": "bf16", "optimizer": "adamw_torch_fused", "optimizer_args": {}, "optimizer_in_backward": False, "micro_batch_size": 8,
        "seq_len": 2048, "gradient_accumulation_steps": 1, "gradient_checkpointing": "none", "attention": "sdpa",
        "loss": "eager", "kernels": "eager", "padded": False, "dequantize": False, "objective": "sft", "framework": "transformers-5.24",
        "images": {
            "per_sequence": 0, "height": 448, "width": 448, "train_text": True, "train_vision": True, "train_projector": True,
        },
        "sharding": {
            "strategy": "none", "data_parallel": 1, "replicas": 1, "reshard_after_forward": True, "sync_each_batch": False, "tensor_parallel": 1,
            "pipeline_parallel": 1, "context_parallel": 1, "expert_parallel": 1, "offload": "none", "activation_offload": False,
        },
    },
    "lora": {
        "rank": 8, "alpha": 8.0, "dropout": 0.0, "target_modules": "all-linear", "modules_to_save": (),
        "adapter_dtype": "fp32", "use_dora": False,
    },
    "quantization": {"format": "nf4", "double_quant": True, "upcast_for_training": False},
    "hardware": {"gpu": "h100-sxm", "num_gpus": 1},
}  # fmt: skip


def test_version_1_defaults_are_frozen():
    """A link of version 1 leaves out what equals these values, so they may never change under it."""
    opened, problems = link.scenario("v=1&model=a/b&method=qlora")

    assert () == problems
    plan = opened.plan.model_dump()
    assert FROZEN_DEFAULTS["lora"] == plan.pop("lora")
    assert FROZEN_DEFAULTS["quantization"] == plan.pop("quantization")
    assert "qlora" == plan.pop("method")
    assert FROZEN_DEFAULTS["full"] == plan
    assert FROZEN_DEFAULTS["hardware"] == opened.hardware.model_dump()


FROZEN_LINKS = {
    "v=1&model=meta-llama/Llama-3.1-8B&method=qlora&rank=16&alpha=32&targets=q_proj,v_proj&dora=1&quant=fp4&double=0"
    "&upcast=1&precision=bf16-autocast&optim=paged_adamw_8bit&batch=2&seq=4096&accum=16&ckpt=full&attn=flash_attention_2"
    "&loss=liger&kernels=liger&padded=1&framework=transformers-4.57&shard=zero2&dp=4&offload=optimizer"
    "&gpu=rtx-4090&gpus=4": Scenario(
        model="meta-llama/Llama-3.1-8B",
        plan=QLora(
            lora=LoraAdapter(rank=16, alpha=32, target_modules=("q_proj", "v_proj"), use_dora=True),
            quantization=Quantization(format="fp4", double_quant=False, upcast_for_training=True),
            precision="bf16-autocast", optimizer="paged_adamw_8bit", micro_batch_size=2, seq_len=4096,
            gradient_accumulation_steps=16, gradient_checkpointing="full", attention="flash_attention_2", loss="liger",
            kernels="liger", padded=True, framework="transformers-4.57",
            sharding=Sharding(strategy="zero2", data_parallel=4, offload="optimizer"),
        ),
        hardware=Hardware(gpu="rtx-4090", num_gpus=4),
    ),
    'v=1&model=google/gemma-2b&method=lora&adapter=bf16&save=embed_tokens,lm_head&dropout=0.05&optim=galore_adamw&'
    'optim_args={"rank":128,"scale":0.25}': Scenario(
        model="google/gemma-2b",
        plan=Lora(
            lora=LoraAdapter(adapter_dtype="bf16", modules_to_save=("embed_tokens", "lm_head"), dropout=0.05),
            optimizer="galore_adamw", optimizer_args={"rank": 128, "scale": 0.25},
        ),
    ),
    # One layer that is called attention, and the word for the layers of attention.
    "v=1&model=a/b&method=lora&targets=attention,": Scenario(
        model="a/b", plan=Lora(lora=LoraAdapter(target_modules=("attention",)))
    ),
    "v=1&model=a/b&method=lora&targets=attention": Scenario(
        model="a/b", plan=Lora(lora=LoraAdapter(target_modules="attention"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("query", FROZEN_LINKS)
def test_a_link_that_people_already_have_opens_the_same_scenario(query):
    """These texts are out in the world; they are never edited, only added to."""
    assert (FROZEN_LINKS[query], ()) == link.scenario(query)
    assert (FROZEN_LINKS[query], ()) == link.scenario(link.query(FROZEN_LINKS[query]))


@pytest.mark.parametrize(
    ("bad", "field", "says"),
    [
        ("batch=0", "plan.micro_batch_size", "greater than or equal to 1"),
        ("batch=99999999999999999999999", "plan.micro_batch_size", "batch="),
        ("seq=inf", "plan.seq_len", "integer"),
        ("seq=1e400", "plan.seq_len", "integer"),
        ("precision=bf17", "plan.precision", "bf16-autocast"),
        ("optim=adamw_troch", "plan.optimizer", "adamw_torch"),
        ("gpu=rtx-4091", "hardware.gpu", "rtx-4090"),
        ("framework=transformers-9", "plan.framework", "transformers-5.24"),
        ("method=magic", "plan.method", "qlora"),
        ("rank=16", "plan.lora.rank", "not used by method full"),
        ("quant=nf4", "plan.quantization.format", "not used by method full"),
        ("optim_args={", "plan.optimizer_args", "not JSON"),
        ("optim_args=[1]", "plan.optimizer_args", "dictionary"),
        ('optim_args={"a":[1]}', "plan.optimizer_args", "left out"),
        ('optim_args={"a":NaN}', "plan.optimizer_args", "left out"),
        ("padded=perhaps", "plan.padded", "boolean"),
        ("batchsize=4", "", "no part of a scenario"),
        ("v=99", "", "version '99'"),
        ("config=zzzz", "model", "damaged"),
    ],
)
def test_a_bad_part_is_named_and_the_good_ones_are_kept(bad, field, says):
    """The visitor reads which part was left out and why; accumulation, a good part, still counts."""
    opened, problems = link.scenario(f"{bad}&model=a/b&accum=3")

    assert 3 == opened.plan.gradient_accumulation_steps
    assert [field] == [problem.field for problem in problems]
    assert says in problems[0].message
    assert not problems[0].blocking


def test_the_last_of_a_repeated_key_is_used_and_said():
    """Copy and paste doubles parts of a link."""
    opened, problems = link.scenario("model=a/b&batch=2&batch=5")

    assert 5 == opened.plan.micro_batch_size
    assert ["link-repeated"] == [problem.code for problem in problems]


@pytest.mark.parametrize("text", ["", "?", "batch=2", "model=", "///", "https://", "https://[", "&&&=&"])
def test_a_link_without_a_model_shows_the_opening_model_and_says_so(text):
    """There is no default model, so the stand-in is named."""
    opened, problems = link.scenario(text)

    assert OPENING.model == opened.model
    assert "link-no-model" in [problem.code for problem in problems]


def test_a_whole_address_may_be_pasted():
    """`python -m calc open` takes what is in the address bar."""
    query = link.query(OPENING)

    assert (OPENING, ()) == link.scenario(f"https://example.org/optimizers?{query}#top")
    assert (OPENING, ()) == link.scenario(f"/optimizers?{query}")
    assert (OPENING, ()) == link.scenario(f"?{query}")


def test_a_link_never_opens_a_file_of_the_server():
    """A path is for the command line; neither writing nor reading a link touches one."""
    with pytest.raises(link.NotLinkable, match="paste its content"):
        link.query(Scenario(model=PathModel(path="/etc/passwd")))

    for query in ("path=/etc/passwd", "model.path=/etc/passwd", "model=/etc/passwd"):
        assert isinstance(link.scenario(query)[0].model, str)


def test_a_config_too_large_for_a_link_is_refused_and_the_rest_is_given():
    """Nothing is cut in silence: the sentence says what to do, and the plan can still be linked."""
    noise = random.Random(0)
    large = {f"layer_{i}": noise.random() for i in range(400)}
    scenario = Scenario(model=ConfigModel(config=large, id="mine"), plan=FullFineTuning(micro_batch_size=3))

    with pytest.raises(link.NotLinkable, match="send the file beside the link") as refused:
        link.query(scenario)

    assert {"v": "1", "batch": "3"} == refused.value.rest


def test_a_packed_bomb_is_not_unpacked():
    """100 MB of zeros in 140 kB: reading stops at the bound."""
    bomb = base64.urlsafe_b64encode(zlib.compress(json.dumps({"a": "0" * 4_000_000}).encode(), 9)).decode().rstrip("=")
    assert len(bomb) < link.MAX_QUERY

    opened, problems = link.scenario(f"model=a/b&config={bomb}")

    assert "a/b" == opened.model
    assert ["link-config"] == [problem.code for problem in problems]


def test_ten_thousand_mutated_links_open_or_say_why():
    """No traceback, no long run, and what comes out can be linked again."""
    noise = random.Random(2)
    sources = [link.query(example.scenario) for example in EXAMPLES.values()] + list(FROZEN_LINKS)
    pieces = ["&", "=", "%", "%00", "%ff", "\ud800", "NaN", "-1", "9" * 50, "\x00", "١", "[" * 50]
    pieces += ["&batch=", "&targets=,,", "&config=eJw"]
    for _ in range(10_000):
        text = list(noise.choice(sources))
        for _ in range(noise.randint(1, 6)):
            at = noise.randrange(len(text))
            match noise.randrange(3):
                case 0:
                    text[at] = noise.choice(string.printable)
                case 1:
                    del text[at : at + noise.randint(1, 12)]
                case _:
                    text.insert(at, noise.choice(pieces))
            text = text or ["x"]
        opened, _ = link.scenario("".join(text))
        assert isinstance(opened, Scenario)
        assert opened == link.scenario(link.query(opened))[0]


ABSURD = ["a=1&" * 5000, "model=" + "x" * 100_000, "optim_args=" + "[" * 7000, "&" * 7000, "batch=2&" * 900]


@pytest.mark.parametrize("text", ABSURD, ids=range(len(ABSURD)))
def test_an_absurd_link_is_bounded(text):
    """Length and number of parts have a limit, and passing it is said."""
    _, problems = link.scenario(text)

    assert problems
