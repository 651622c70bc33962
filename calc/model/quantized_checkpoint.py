"""Checkpoints whose weights are stored quantised: what config.json says of it, how much they load, and what can be trained on them.

A quantised matrix keeps its own shape in the count of parameters; what is stored is packed, with scales beside it. Sources: the quantizers of
transformers 5.24.0 (`is_trainable`), and the formats of each library; the element counts are checked against repositories on the Hub.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from calc.model.config import Config, ConfigError
from calc.model.parameters import Parameter


class Stored(NamedTuple):
    """What a quantised matrix is stored as."""

    elements: int
    """As the Hub counts them: of packed numbers the containers."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Format:
    """How one matrix (out, in) is stored."""

    id: str
    bits: int
    stored: Callable[[int, int, Layout], Stored]


@dataclass(frozen=True, slots=True)
class Layout:
    """Over how many weights one scale holds."""

    block: tuple[int, int] | None = None
    """Rows and columns of a block."""
    group: int | None = None
    """Inputs of a group."""
    per_output: bool = False
    """A scale for each output."""
    static_inputs: bool = False
    """A scale for the inputs is stored too."""
    double: bool = False
    """The scales are quantised too."""


def _parts(size: int, of: int) -> int:
    return -(-size // of)


def _fp8(out: int, inner: int, layout: Layout) -> Stored:
    if layout.block is not None:
        scales = _parts(out, layout.block[0]) * _parts(inner, layout.block[1])
    else:
        scales = out if layout.per_output else 1
    scales += layout.static_inputs
    return Stored(out * inner + scales, out * inner + 4 * scales)


def _gptq(bits: int) -> Callable[[int, int, Layout], Stored]:
    def stored(out: int, inner: int, layout: Layout) -> Stored:
        groups = _parts(inner, layout.group or inner)
        packed, zeros, scales = out * inner * bits // 32, groups * out * bits // 32, groups * out
        return Stored(packed + zeros + scales + inner, 4 * packed + 4 * zeros + 2 * scales + 4 * inner)

    return stored


def _awq(out: int, inner: int, layout: Layout) -> Stored:
    groups = _parts(inner, layout.group or inner)
    packed, zeros, scales = out * inner // 8, groups * out // 8, groups * out
    return Stored(packed + zeros + scales, 4 * packed + 4 * zeros + 2 * scales)


def _nvfp4(out: int, inner: int, layout: Layout) -> Stored:
    packed, scales = out * inner // 2, out * _parts(inner, 16)
    return Stored(packed + scales + 2, packed + scales + 8)


def _mxfp4(out: int, inner: int, layout: Layout) -> Stored:
    return Stored(out * inner, out * inner // 2 + out * _parts(inner, 32))


def _packed_int(out: int, inner: int, layout: Layout) -> Stored:
    packed, scales = out * inner // 8, out * _parts(inner, layout.group or inner)
    return Stored(packed + scales + 2, 4 * packed + 2 * scales + 16)


def _bnb4(out: int, inner: int, layout: Layout) -> Stored:
    numbers = out * inner
    blocks = _parts(numbers, 64)
    packed = _parts(numbers, 2)
    if not layout.double:
        return Stored(packed + blocks + 16, packed + 4 * blocks + 64)
    return Stored(
        packed + blocks + _parts(blocks, 256) + 256 + 16 + 1, packed + blocks + 4 * _parts(blocks, 256) + 1024 + 64 + 4
    )


def _bnb8(out: int, inner: int, layout: Layout) -> Stored:
    return Stored(out * inner + out, out * inner + 4 * out)


FORMATS: Mapping[str, Format] = {
    row.id: row
    for row in (
        Format("fp8", 8, _fp8),
        Format("gptq-2", 2, _gptq(2)),
        Format("gptq-3", 3, _gptq(3)),
        Format("gptq-4", 4, _gptq(4)),
        Format("gptq-8", 8, _gptq(8)),
        Format("awq", 4, _awq),
        Format("nvfp4", 4, _nvfp4),
        Format("mxfp4", 4, _mxfp4),
        Format("int4", 4, _packed_int),
        Format("bnb-4bit", 4, _bnb4),
        Format("bnb-8bit", 8, _bnb8),
    )
}
"""How a matrix is stored, by format."""


@dataclass(frozen=True, slots=True)
class Method:
    """A `quant_method` of config.json, and what can be trained on such a checkpoint."""

    id: str
    label: str
    adapters: bool
    """Whether adapters can be trained on the quantised weights as they are."""
    advice: str
    """What to do instead of training the weights."""
    source: str
    """The file of transformers 5.24.0 that says so (`is_trainable`)."""
    dequantizes: bool = False
    """Whether loading can make 16-bit weights of them (`dequantize=True`)."""


_START = "start from the unquantised weights"
_ADAPTERS = f"train adapters on it, or {_START}"
METHODS: Mapping[str, Method] = {
    row.id: row
    for row in (
        Method("fp8", "FP8", True, "load it with FineGrainedFP8Config(dequantize=True), which makes bf16 weights", "quantizer_finegrained_fp8.py", dequantizes=True),
        Method("gptq", "GPTQ", True, _ADAPTERS, "quantizer_gptq.py"),
        Method("awq", "AWQ", True, f"train adapters on it (gptqmodel 5 or newer), or {_START}", "quantizer_awq.py"),
        Method("bitsandbytes", "bitsandbytes", True, _ADAPTERS, "quantizer_bnb_4bit.py"),
        Method("mxfp4", "MXFP4", False, "load it with Mxfp4Config(dequantize=True), which makes bf16 weights", "quantizer_mxfp4.py", dequantizes=True),
        Method("modelopt", "NVFP4 (ModelOpt)", False, _START, "quantizer_nvfp4.py"),
        Method("nvfp4", "NVFP4", False, _START, "quantizer_nvfp4.py"),
        Method("compressed-tensors", "compressed-tensors", True, "train adapters on it, or load it with CompressedTensorsConfig(dequantize=True)", "quantizer_compressed_tensors.py", dequantizes=True),
        Method("fbgemm_fp8", "FBGEMM FP8", False, _START, "quantizer_fbgemm_fp8.py"),
        Method("aqlm", "AQLM", True, "train adapters on it (aqlm 1.0.2 or newer)", "quantizer_aqlm.py"),
        Method("hqq", "HQQ", True, _ADAPTERS, "quantizer_hqq.py"),
        Method("eetq", "EETQ", True, _ADAPTERS, "quantizer_eetq.py"),
        Method("quanto", "Quanto", True, _ADAPTERS, "quantizer_quanto.py"),
        Method("sinq", "SINQ", True, _ADAPTERS, "quantizer_sinq.py"),
        Method("auto-round", "AutoRound", False, _START, "quantizer_auto_round.py"),
        Method("vptq", "VPTQ", False, _START, "quantizer_vptq.py"),
        Method("spqr", "SpQR", False, _START, "quantizer_spqr.py"),
        Method("higgs", "HIGGS", False, _START, "quantizer_higgs.py"),
        Method("quark", "Quark", False, _START, "quantizer_quark.py"),
        Method("bitnet", "BitNet", False, "start from the repository's bf16 weights", "quantizer_bitnet.py"),
        Method("torchao", "torchao", False, f"{_START} (adapters can be trained on its 8-bit formats only)", "quantizer_torchao.py"),
    )
}  # fmt: skip
"""Every method that is known. `bitnet` can be trained in its online form, which repositories of packed weights do not declare."""


@dataclass(frozen=True, slots=True)
class QuantizedCheckpoint:
    """What a config.json says of its quantised weights."""

    method: Method
    format: Format | None
    """None where the method is known but its sizes are not."""
    layout: Layout
    spared: tuple[str, ...]
    """Patterns of the modules that are not quantised."""
    only: tuple[str, ...] = ()
    """Patterns of the modules that are, if it is not every linear layer."""
    spared_layers: tuple[tuple[str, frozenset[int]], ...] = ()
    """Modules that are not quantised in single layers: `*` for the layer's number, and which layers."""
    base: tuple[str, bool] | None = None
    """Format and double quantisation of a base that bitsandbytes stored, as QLoRA makes it itself."""

    @property
    def refusal(self) -> str:
        """Why its weights cannot be trained, in one sentence."""
        return f"the weights are stored in {self.method.label}, which cannot be trained: {self.method.advice}"

    def holds(self, parameter: Parameter) -> bool:
        """Whether that parameter is stored quantised, in some layers at least."""
        if parameter.role == "expert" and len(parameter.shape) == 3:
            return self._meant(parameter.name)
        is_layer = parameter.role in ("linear", "expert") and len(parameter.shape) == 2
        return is_layer and parameter.name.endswith(".weight") and self._meant(parameter.name)

    def split(self, parameters: Iterable[Parameter]) -> tuple[list[Parameter], list[Parameter]]:
        """What is stored quantised, and what is not."""
        held: list[Parameter] = []
        rest: list[Parameter] = []
        for p in parameters:
            spared = self._spared(p) if self.holds(p) else p.count
            held += [replace(p, count=p.count - spared)] if spared < p.count else []
            rest += [replace(p, count=spared)] if spared else []
        return held, rest

    def _spared(self, parameter: Parameter) -> int:
        """In how many layers it is left alone."""
        module = parameter.name.removesuffix(".weight")
        layers: set[int] = set()
        for pattern, numbers in self.spared_layers:
            if f".{pattern}." in f".{module}.":
                layers |= numbers
        return min(len(layers), parameter.count)

    def _meant(self, name: str) -> bool:
        module = name.removesuffix(".weight")
        if any(_matches(pattern, module) for pattern in self.spared):
            return False
        return not self.only or any(_matches(pattern, module) for pattern in self.only)


def quantized_checkpoint(config: Mapping[str, Any]) -> QuantizedCheckpoint | None:
    """What a config.json says of its quantised weights; None if it says nothing.

    Raises ConfigError for a method that is not known.
    """
    for reader in (config, config.get("text_config")):
        if not isinstance(reader, Mapping):
            continue
        for name in ("quantization_config", "compression_config"):
            if reader.get(name) is not None:
                return _read(Config(reader).part(name))
    return None


def _read(given: Config) -> QuantizedCheckpoint:
    name = given.text("quant_method", default="modelopt" if given.given("quant_algo") is not None else None)
    if name not in METHODS:
        raise ConfigError(
            "quantization_config.quant_method", f"should be one of {', '.join(METHODS)}, not {name[:40]!r}"
        )
    spared = []
    layers: dict[str, set[int]] = {}
    for field in ("modules_to_not_convert", "ignore", "exclude_modules", "llm_int8_skip_modules"):
        for path in given.texts(field, default=None):
            if (single := _SINGLE.fullmatch(path)) is None:
                spared.append(path)
            else:
                layers.setdefault(f"{single[1]}.*{single[3]}", set()).add(int(single[2]))
    format_id, layout = _layout(name, given)
    only = ("*experts*",) if name == "mxfp4" else ()
    numbers = tuple([(pattern, frozenset(found)) for pattern, found in layers.items()])
    base = None
    if name == "bitsandbytes" and not numbers and {*spared} <= {"lm_head"}:
        base = (given.text("bnb_4bit_quant_type", default="fp4"), layout.double) if format_id == "bnb-4bit" else ("int8", False)  # fmt: skip
    return QuantizedCheckpoint(
        METHODS[name], FORMATS.get(format_id), layout, tuple(spared) or ("lm_head",), only, numbers, base
    )


_SINGLE = re.compile(r"([\w.]+)\.(\d{1,4})(\.[\w.]+|)")
"""The path of a module of one layer."""


def _layout(name: str, given: Config) -> tuple[str, Layout]:
    algorithm = str(given.given("moe_quant_algo") or given.given("quant_algo") or "").lower()
    if name == "gptq":
        bits = given.integer("bits", default=4, high=8)
        group = given.integer("group_size", default=128, low=-1)
        return f"gptq-{bits}", Layout(group=None if group < 1 else group)
    if name == "awq":
        group = given.integer("group_size", "q_group_size", default=128, low=-1)
        return "awq", Layout(group=None if group < 1 else group)
    if name == "bitsandbytes":
        if given.boolean("load_in_4bit", default=False):
            return "bnb-4bit", Layout(double=given.boolean("bnb_4bit_use_double_quant", default=False))
        return "bnb-8bit", Layout()
    if "nvfp4" in algorithm or name == "nvfp4":
        return "nvfp4", Layout()
    if name == "fp8":
        block = given.integers("weight_block_size", default=None)
        if block and (len(block) != 2 or min(block) < 1):
            raise ConfigError("quantization_config.weight_block_size", f"should be two sizes, not {list(block)[:4]}")
        static = given.text("activation_scheme", default="dynamic") == "static"
        return "fp8", Layout(block=(block[0], block[1]) if block else None, static_inputs=static)
    if name == "compressed-tensors":
        return _compressed(given)
    if algorithm == "fp8":
        return "fp8", Layout(static_inputs=True)
    return name, Layout()


def _compressed(given: Config) -> tuple[str, Layout]:
    groups = given.given("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    weights = weights if isinstance(weights, Mapping) else {}
    kind = str(given.given("format"))
    if "mxfp4" in kind:
        return "mxfp4", Layout()
    if "nvfp4" in kind:
        return "nvfp4", Layout()
    if weights.get("type") == "float" and weights.get("num_bits") == 8:
        return "fp8", Layout(per_output=weights.get("strategy") == "channel")
    if weights.get("type") == "int" and weights.get("num_bits") == 4:
        return "int4", Layout(group=weights.get("group_size"))
    return kind, Layout()


def _matches(pattern: str, module: str) -> bool:
    """Whether a pattern means a module. `*` in the module stands for every layer's number: a pattern that names one layer alone does not."""
    if pattern.startswith("re:"):
        return re.fullmatch(pattern[3:], module.replace("*", "0")) is not None
    return any(
        fnmatchcase(path, pattern)
        or path == pattern
        or path.startswith(f"{pattern}.")
        or path.endswith(f".{pattern}")
        or f".{pattern}." in f".{path}."
        for path in (module, module.replace("*", "7"))
    )


def stored(parameters: Iterable[Parameter], checkpoint: QuantizedCheckpoint, size: int = 2) -> Stored:
    """What the checkpoint's files hold: quantised matrices in their format, the rest in `size` bytes an element.

    Each expert's matrices are stored one by one, gate and up apart. Raises ConfigError for a format whose sizes are not known.
    """
    if checkpoint.format is None:
        raise ConfigError("quantization_config", f"the sizes of {checkpoint.method.label} are not modelled")
    held, rest = checkpoint.split(parameters)
    elements = sum(p.numel * p.count for p in rest)
    total = sum(p.numel * p.count * (4 if p.dtype == "fp32" else size) for p in rest)
    for parameter in held:
        *experts, out, inner = parameter.shape
        pieces = parameter.count * (experts[0] if experts else 1)
        if parameter.name.endswith("gate_up_proj") and experts:
            pieces, out = 2 * pieces, out // 2
        one = checkpoint.format.stored(out, inner, checkpoint.layout)
        elements += pieces * one.elements
        total += pieces * one.bytes
    return Stored(elements, total)
