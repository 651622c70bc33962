"""JSON schemas of the scenario and of the answer, generated from the types that they are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from calc.memory.breakdown import Breakdown
from calc.scenario import Scenario

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, Any]:
    """The schema of a scenario as the command line reads it, and of the answer as it prints it."""
    return {
        "scenario": {"$schema": DRAFT, **Scenario.model_json_schema()},
        "answer": {"$schema": DRAFT, "title": "Answer", **schema(Breakdown)},
    }


def schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a result type: a dataclass as an object of its public fields, a tuple as a list, bytes as whole numbers.

    Raises `TypeError` for a type that no answer is made of.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        parts = {name: schema(inner) for name, inner in public(kind).items()}
        about = (kind.__doc__ or "").partition("\n")[0]
        return {"type": "object", "description": about, "properties": parts, "required": list(parts),
                "additionalProperties": False}  # fmt: skip
    origin = get_origin(kind)
    if origin is tuple:
        return {"type": "array", "items": schema(get_args(kind)[0])}
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if origin in (Union, UnionType):
        return {"anyOf": [schema(one) for one in get_args(kind)]}
    for python, json in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (type(None), "null")):
        if isinstance(kind, type) and issubclass(kind, python):
            return {"type": json}
    raise TypeError(f"an answer holds no {kind}")


def public(kind: type) -> dict[str, Any]:
    """The fields of a result by name, with their types; a text that is written when it is read stands as its property."""
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for field in fields(kind):
        name = field.name.removeprefix("_")
        found[name] = hints[field.name] if name == field.name else get_type_hints(getattr(kind, name).fget)["return"]
    return found
