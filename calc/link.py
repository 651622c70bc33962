"""Scenario <-> query string.

A link writes the schema version and every field that differs from the default which that version froze for good, so it
opens the same numbers next year. Names and option words are language-neutral and part of the format: labels and
translations may change freely. Reading never fails and never runs long: a part that cannot be used is reported and its
default taken, the other parts are kept.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from calc.examples import OPENING
from calc.memory.breakdown import Problem
from calc.scenario import SCHEMA_VERSION, ConfigModel, Hardware, PathModel, Scenario

KEYS = {
    "model": "model",
    "method": "plan.method",
    "rank": "plan.lora.rank",
    "alpha": "plan.lora.alpha",
    "dropout": "plan.lora.dropout",
    "targets": "plan.lora.target_modules",
    "save": "plan.lora.modules_to_save",
    "adapter": "plan.lora.adapter_dtype",
    "dora": "plan.lora.use_dora",
    "quant": "plan.quantization.format",
    "double": "plan.quantization.double_quant",
    "upcast": "plan.quantization.upcast_for_training",
    "precision": "plan.precision",
    "optim": "plan.optimizer",
    "optim_args": "plan.optimizer_args",
    "in_bwd": "plan.optimizer_in_backward",
    "batch": "plan.micro_batch_size",
    "seq": "plan.seq_len",
    "accum": "plan.gradient_accumulation_steps",
    "ckpt": "plan.gradient_checkpointing",
    "attn": "plan.attention",
    "loss": "plan.loss",
    "kernels": "plan.kernels",
    "images": "plan.images.per_sequence",
    "image_height": "plan.images.height",
    "image_width": "plan.images.width",
    "train_text": "plan.images.train_text",
    "train_vision": "plan.images.train_vision",
    "train_projector": "plan.images.train_projector",
    "padded": "plan.padded",
    "dequant": "plan.dequantize",
    "objective": "plan.objective",
    "framework": "plan.framework",
    "shard": "plan.sharding.strategy",
    "dp": "plan.sharding.data_parallel",
    "replicas": "plan.sharding.replicas",
    "reshard": "plan.sharding.reshard_after_forward",
    "sync_each": "plan.sharding.sync_each_batch",
    "tp": "plan.sharding.tensor_parallel",
    "pp": "plan.sharding.pipeline_parallel",
    "cp": "plan.sharding.context_parallel",
    "ep": "plan.sharding.expert_parallel",
    "offload": "plan.sharding.offload",
    "act_offload": "plan.sharding.activation_offload",
    "gpu": "hardware.gpu",
    "gpus": "hardware.num_gpus",
}
"""Key in the link -> path of the Scenario field, in the order written.

Two keys are not fields: `v`, the schema version, and `config`, a pasted config.json (then `model` is only its name)."""

PATHS = {path: key for key, path in KEYS.items()}

# Longest query that is read. Mail programs and chat tools cut links well before it.
MAX_QUERY = 8_000
MAX_KEYS = 100
# Longest a config.json may be in a link once packed, and once unpacked again.
MAX_PACKED_CONFIG = 2_000
MAX_CONFIG = 256 * 1024


class NotLinkable(ValueError):
    """A scenario that no link can carry whole: its model is a file, or a config.json too large.

    `rest` is the link of everything else.
    """

    def __init__(self, reason: str, rest: dict[str, str]) -> None:
        super().__init__(reason)
        self.rest = rest


def params(scenario: Scenario) -> dict[str, str]:
    """The link's keys and values: the schema version, and what differs from the defaults.

    Raises `NotLinkable` when the model is a file of this machine or a config.json that is too large for a link.
    """
    plan = type(scenario.plan)
    default = by_path({"plan": plan(), "hardware": Hardware()})
    given = by_path({"plan": scenario.plan, "hardware": scenario.hardware})
    # Full fine-tuning is the default method, and each method has its own set of fields.
    default["plan.method"] = "full"
    rest = {key: _text(given[path]) for path, key in PATHS.items() if path in given and given[path] != default[path]}
    version = {"v": str(SCHEMA_VERSION)}
    match scenario.model:
        case str(model):
            return version | {"model": model} | rest
        case ConfigModel(config=config, id=name):
            packed = _pack(config)
            if len(packed) > MAX_PACKED_CONFIG:
                raise NotLinkable(
                    f"this config.json takes {len(packed):,} characters packed and a link carries at most "
                    f"{MAX_PACKED_CONFIG:,}; send the file beside the link, or use the model's id on the Hub",
                    version | rest,
                )
            return version | {"model": name, "config": packed} | rest
        case PathModel(path=path):
            raise NotLinkable(
                f"'{path}' is a file of this machine; paste its content, or use the model's id on the Hub",
                version | rest,
            )


def query(scenario: Scenario) -> str:
    """The query string that opens this scenario, without the question mark. Raises `NotLinkable` as `params` does.

    >>> query(Scenario(model="mistralai/Mistral-7B-v0.1"))
    'v=1&model=mistralai/Mistral-7B-v0.1'
    """
    return encoded(params(scenario))


def encoded(values: dict[str, str]) -> str:
    """Keys and values as a query string that stays readable: slash, comma and colon may stand in it as they are."""
    return urlencode(values, quote_via=quote, safe="/,:")


def scenario(query: str) -> tuple[Scenario, tuple[Problem, ...]]:
    """The scenario that a query string (or a whole link) opens, and what in it could not be used.

    >>> scenario("v=1&model=mistralai/Mistral-7B-v0.1&batch=4")[0].plan.micro_batch_size
    4
    >>> opened, problems = scenario("model=mistralai/Mistral-7B-v0.1&batch=0&seq=4096")
    >>> opened.plan.seq_len, opened.plan.micro_batch_size, [problem.field for problem in problems]
    (4096, 8, ['plan.micro_batch_size'])
    """
    problems: list[Problem] = []
    texts = _parts(query, problems)
    version = texts.pop("v", str(SCHEMA_VERSION))
    if version != str(SCHEMA_VERSION):
        said = f"this link says version '{_short(version)}'; it is read as version {SCHEMA_VERSION}"
        problems.append(_problem("version", said))

    values: dict[str, Any] = {}
    config = texts.pop("config", None)
    for key, text in texts.items():
        if key not in KEYS:
            problems.append(_problem("unknown-key", f"'{_short(key)}' is no part of a scenario and was left out"))
            continue
        try:
            values[KEYS[key]] = _read(KEYS[key], text)
        except (ValueError, RecursionError) as error:
            problems.append(_unusable(KEYS[key], text, str(error)))
    if config is not None:
        try:
            values["model"] = {"config": _unpack(config), "id": values.get("model", "")}
        except (ValueError, RecursionError) as error:
            problems.append(_problem("config", f"the config.json in this link cannot be read ({error})", "model"))
    return _validated(values, texts, problems), tuple(problems)


def _validated(values: dict[str, Any], texts: dict[str, str], problems: list[Problem]) -> Scenario:
    """The scenario of these values by path, without those that it refuses."""
    while True:
        if not values.get("model"):
            values["model"] = OPENING.model
            problems.append(_problem("no-model", f"this link names no model; {OPENING.model} is shown", "model"))
        try:
            return Scenario.model_validate(nested(values))
        except ValidationError as refused:
            for error in refused.errors(include_url=False, include_context=False):
                for path in _blamed(error["loc"], values):
                    del values[path]
                    problems.append(_unusable(path, texts.get(PATHS[path], ""), _reason(error, values)))


def _blamed(location: tuple[int | str, ...], values: dict[str, Any]) -> list[str]:
    """The given paths that an error speaks of.

    A location names the method's tag after "plan", and alternatives after a field.
    """
    steps = [str(step) for step in location]
    if steps[:1] == ["plan"] and steps[1:2]:
        del steps[1]
    if steps == ["plan"]:
        steps = ["plan", "method"]
    given = ".".join(steps)
    return [path for path in values if path == given or path.startswith(f"{given}.") or given.startswith(f"{path}.")]


def _reason(error: Any, values: dict[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return f"not used by method {values.get('plan.method', 'full')}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message.replace("Input should be", "must be").replace("Assertion failed, ", "")


def _unusable(path: str, text: str, reason: str) -> Problem:
    return _problem("unusable", f"{PATHS[path]}={_short(text)} was left out: {reason}", path)


def _problem(code: str, message: str, field: str = "") -> Problem:
    return Problem(code=f"link-{code}", message=message, field=field, blocking=False)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _parts(query: str, problems: list[Problem]) -> dict[str, str]:
    """Key -> text, the last one where a key repeats."""
    # A lone surrogate is text that no encoding can write.
    query = query.encode(errors="replace").decode().strip()
    if "://" in query[:20] or query.startswith("/"):
        try:
            query = urlsplit(query).query
        except ValueError:
            query = ""
    query = query.removeprefix("?")
    if len(query) > MAX_QUERY:
        said = f"this link has {len(query):,} characters; only the first {MAX_QUERY:,} were read"
        problems.append(_problem("too-long", said))
        # A key whose value was cut is worse than none.
        query = query[:MAX_QUERY].rpartition("&")[0]
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_KEYS)
    except ValueError:
        problems.append(_problem("too-many", f"this link has more than {MAX_KEYS} parts; none was read"))
        return {}
    texts: dict[str, str] = {}
    for key, text in pairs:
        if key in texts and texts[key] != text:
            problems.append(_problem("repeated", f"'{_short(key)}' is given more than once; the last is used"))
        texts[key] = text
    return texts


def _text(value: Any) -> str:
    match value:
        case bool():
            return "1" if value else "0"
        case float():
            return repr(value).removesuffix(".0")
        case dict():
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        case tuple():
            # One name keeps a comma, so that a layer called "attention" is not the word for all of them.
            names = ",".join(quote(name, safe="") for name in value)
            return f"{names}," if len(value) == 1 else names
        case _:
            return str(value)


def _read(path: str, text: str) -> Any:
    match path.rpartition(".")[2]:
        case "target_modules" if text in ("all-linear", "attention"):
            return text
        case "target_modules" | "modules_to_save":
            return tuple(unquote(name) for name in text.split(",") if name)
        case "optimizer_args":
            return _json(text)
        case _:
            return text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError("not JSON") from error


def _pack(config: dict[str, Any]) -> str:
    text = json.dumps(config, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def _unpack(packed: str) -> dict[str, Any]:
    try:
        squeezed = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(squeezed, MAX_CONFIG)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError("it is damaged") from error
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("it is cut off, or too large")
    config = _json(text.decode(errors="replace"))
    if not isinstance(config, dict):
        raise ValueError("it is no JSON object")
    return config


def by_path(value: Any, prefix: str = "") -> dict[str, Any]:
    """Field values by dotted path, for a scenario, a part of one, or parts by name. A model stays whole."""
    fields = value if isinstance(value, dict) else dict(value)
    flat: dict[str, Any] = {}
    for name, inner in fields.items():
        whole = name == "model" or not isinstance(inner, BaseModel)
        flat |= {f"{prefix}{name}": inner} if whole else by_path(inner, f"{prefix}{name}.")
    return flat


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """What `by_path` undid: values by dotted path as the dictionary that `Scenario.model_validate` takes."""
    whole: dict[str, Any] = {}
    for path, value in values.items():
        *parents, name = path.split(".")
        inside = whole
        for parent in parents:
            inside = inside.setdefault(parent, {})
        inside[name] = value
    return whole
