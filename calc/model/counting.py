"""How many parameters a config.json describes, and of which part: text, vision, audio, projector; embeddings, head, experts.

Families are counted by running their forward pass, other known types by their table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from calc.autograd.storage import Ledger, recording
from calc.autograd.tensor import empty, without_graph
from calc.model import Architecture, UnknownArchitecture, architecture, family_of, typed, unknown
from calc.model.config import Config, ConfigError
from calc.model.inventory import Sizes, inventories, inventory, tensors
from calc.model.modules import Modules
from calc.model.parameters import Parameter
from calc.model.quantized_checkpoint import QuantizedCheckpoint, quantized_checkpoint
from calc.model.recipe import Recipe

Part = Literal["text", "vision", "audio", "projector"]
_TOWERS: tuple[tuple[str, Part], ...] = (
    (r"vision|visual|image|vit\b|pixel|patch_embed", "vision"),
    (r"audio|speech|acoustic", "audio"),
)
"""Words in a module's name that say what it looks at or listens to."""
_BETWEEN = re.compile(
    r"projector|projection|merger|connector|multi_modal|multimodal|abstractor|resampler|qformer|perceiver|aligner|modality"
)
"""Words of a module between a tower and the text model."""
_LAST_OF_A_TOWER = re.compile(r"merger|connector|projector|resampler|aligner|img_projection|embedding_projection")
"""Words of such a module where a tower holds it."""
_TEXT = frozenset(
    ("language_model", "text_model", "embed_tokens", "layers", "layer", "block", "blocks", "h", "decoder", "lm_head")
)
"""Modules within which everything is the text model's."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The parameters of a config.json."""

    model_type: str
    name: str
    parameters: tuple[Parameter, ...]
    """In bf16, but for those that stay fp32 whatever the rest is loaded in."""
    experts: tuple[int, int] | None
    """Experts of a layer, and those that a token passes."""
    modelled: bool
    """Whether the forward pass is modelled too, so that activations can be estimated."""
    source: str
    notes: tuple[str, ...] = ()
    wide_in_fp16: tuple[str, ...] = ()
    """Patterns of the names of parameters that stay fp32 when the model is loaded in fp16."""

    def numel(self, *roles: str) -> int:
        """Elements of all parameters, or of those with one of the roles."""
        return sum(p.numel * p.count for p in self.parameters if not roles or p.role in roles)

    @property
    def total(self) -> int:
        """Elements of all parameters; a tied head counts once."""
        return self.numel()

    @property
    def embedding(self) -> int:
        """Elements of the input embeddings."""
        return self.numel("embedding")

    @property
    def head(self) -> int:
        """Elements of a head of its own; 0 when it is tied to the embeddings."""
        return self.numel("head")

    @property
    def active(self) -> int:
        """Elements that one token passes: of each layer's experts only those it is sent to."""
        if self.experts is None:
            return self.total
        count, chosen = self.experts
        held = self.numel("expert")
        return self.total - held + held * chosen // count

    def parts(self) -> Mapping[Part, int]:
        """Elements by part; a model without a tower is all text."""
        found: Counter[Part] = Counter()
        for parameter, part in self.by_part():
            found[part] += parameter.numel * parameter.count
        return found

    def by_part(self) -> list[tuple[Parameter, Part]]:
        """Each parameter with its part."""
        found = [(parameter, part_of(parameter.name)) for parameter in self.parameters]
        if any(part in ("vision", "audio") for _, part in found):
            return found
        return [(parameter, "text") for parameter, _ in found]


def part_of(name: str) -> Part:
    """The part of a model with towers that a parameter belongs to: the first module in its name that says so; else text."""
    modules = name.split(".")
    for module, inner in zip(modules, (*modules[1:], ""), strict=True):
        if module in _TEXT:
            return "text"
        if _BETWEEN.search(module):
            return "projector"
        for words, part in _TOWERS:
            if re.search(words, module):
                return "projector" if _LAST_OF_A_TOWER.search(inner) else part
    return "text"


def counted(config: Mapping[str, Any]) -> Counted:
    """Count a config.json. Raises ConfigError for one that cannot be a model, UnknownArchitecture for a type that is not known."""
    reader = Config(config)
    model_type = reader.text("model_type")
    if family_of(model_type) is not None:
        return of_architecture(architecture(config))
    if model_type not in inventories():
        raise UnknownArchitecture(unknown(model_type))
    table = inventory(model_type)
    named = reader.given("architectures")
    if isinstance(named, list) and named and table.class_name not in named:
        reader.notes.append(f"architectures names {str(named[0])[:60]}; counted as {table.class_name}")
    parts: list[Counted] = []

    def included(values: Mapping[str, Any]) -> tuple[Parameter, ...]:
        parts.append(counted(values))
        return parts[-1].parameters

    parameters = tuple(
        [
            replace(p, dtype="fp32") if any(re.search(pattern, p.name) for pattern in table.wide) else p
            for p in tensors(table, reader, included)
        ]
    )
    sizes = Sizes(table, reader)
    experts = next((part.experts for part in parts if part.experts is not None), None)
    if table.experts is not None and any(p.role == "expert" for p in parameters):
        experts = (sizes.of(table.experts[0]), sizes.of(table.experts[1]))
    notes = tuple(reader.notes)
    return Counted(model_type, table.name, parameters, experts, False, table.source, notes, table.wide_in_fp16)


def checkpoint_of(model: Counted, config: Mapping[str, Any]) -> QuantizedCheckpoint | None:
    """How the repository stores the model's weights, if quantised: what its class keeps in fp32 is not (get_modules_to_not_convert).

    Raises ConfigError for a method that is not known.
    """
    checkpoint = quantized_checkpoint(config)
    if checkpoint is None:
        return None
    kept = tuple([f"re:.*{pattern}.*" for pattern in model.wide_in_fp16])
    return replace(checkpoint, spared=(*checkpoint.spared, *kept))


def uncountable(config: Mapping[str, Any], name: str) -> bool:
    """Whether a config.json, of a repository of that name, does not tell the parameters: then only the stored tensors can."""
    try:
        counted(typed(config, name))
    except (ConfigError, UnknownArchitecture):
        return True
    return False


def of_architecture(model: Architecture) -> Counted:
    """Count an architecture by running its forward pass over one layer of each kind."""
    kinds = Counter(model.dims.kinds)
    small = replace(model.dims, kinds=tuple(kinds))
    with recording(Ledger()), without_graph():
        m = Modules(
            Recipe(batch=1, length=2, attention="sdpa" if "sdpa" in model.family.attentions else "eager"),
            small,
            model_type=model.model_type,
        )
        x = model.family.body(m, empty((m.rows,), "i64", "token ids"))
        if model.family.loss is None:
            model.family.head(m, x)
        else:
            model.family.loss(m, x)
        parameters = m.inventory(dict(enumerate(kinds.values())))
    sizes = model.text
    held = getattr(sizes, "num_experts", 0)
    experts = (held, getattr(sizes, "num_experts_per_tok", 0)) if held else None
    return Counted(model.model_type, model.name, parameters, experts, True, model.family.source, model.notes)
