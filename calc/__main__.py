"""The command line: `python -m calc estimate|plan|params|schedule|link|open|schema`.

Scenarios come as JSON Lines from a file or standard input; answers go out as JSON Lines in the same order. A bad line gives an error
object and the rest go on. Exit status: 0 when all were answered, 1 when an asserted plan does not fit, 2 when a line was bad.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from calc.catalog.models import MODELS
from calc.catalog.table import UnknownName
from calc.memory.breakdown import Breakdown, Instant, Line, Problem, Span
from calc.memory.estimate import estimate
from calc.memory.problems import Refused
from calc.model import ConfigError, UnknownArchitecture, typed
from calc.model.about import about
from calc.model.counting import Counted, counted, uncountable
from calc.model.inventory import inventories
from calc.model.stored_tensors import of_tensors
from calc.model.unsupported import UNSUPPORTED
from calc.planner.room import fits, need
from calc.scenario import ConfigModel, PathModel, Scenario
from calc.schedule.phases import ScheduleError
from calc.units import count, readable

if TYPE_CHECKING:
    from calc.hub import Repository
    from calc.memory.floor import Floor

LINE_LIMIT = 8 << 20
"""Bytes of one input line, and of a config.json, that are read."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="calc", description="Memory and schedules of LLM fine-tuning, before you rent a GPU."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("estimate", help="memory of each scenario, line by line")
    one.add_argument("source", help="JSON Lines file of scenarios, or - for standard input")
    one.add_argument("--table", action="store_true", help="print for people")
    one.add_argument("--assert-fits", action="store_true", help="exit 1 when a plan does not fit")
    one.add_argument(
        "--margin", type=share, default=0.0, metavar="8%", help="room that must stay free with --assert-fits"
    )
    plan = commands.add_parser(
        "plan", help="what to change so that it fits, how far one can go, and the best plan that fits"
    )
    plan.add_argument("source", help="JSON Lines file of scenarios, or - for standard input")
    plan.add_argument(
        "--method", action="append", choices=("full", "lora", "qlora"), help="allow only this one; may be repeated"
    )
    plan.add_argument("--no-8bit", action="store_true", help="no optimizer states in 8 bits or fewer")
    plan.add_argument("--no-installs", action="store_true", help="nothing that must be installed first")
    plan.add_argument(
        "--global-batch", type=int, metavar="N", help="sequences per optimizer step, kept by accumulation"
    )
    plan.add_argument("--margin", type=share, default=0.0, metavar="8%", help="room that must stay free")
    commands.add_parser("schema", help="the JSON schemas of a scenario and of its answer")
    parameters = commands.add_parser("params", help="parameters of a config.json or a model id")
    asked = parameters.add_mutually_exclusive_group(required=True)
    asked.add_argument("source", nargs="?", help="a config.json, or a model id of the catalogue or the Hub")
    asked.add_argument(
        "--unsupported", action="store_true", help="list the model types that are not supported, and what is missing"
    )
    parameters.add_argument(
        "--all", action="store_true", help="also head, parts, what the repository stores, what can be trained, notes"
    )
    schedule = commands.add_parser("schedule", help="steps, warmup and the learning rate of each step")
    schedule.add_argument("source", help="JSON Lines file of schedule scenarios, or - for standard input")
    link = commands.add_parser("link", help="the query string of each scenario")
    link.add_argument("source", help="JSON Lines file of scenarios, or - for standard input")
    opened = commands.add_parser("open", help="the scenario of a query string")
    opened.add_argument("query", help="what follows the ? of a shared link")
    given = parser.parse_args(arguments)
    try:
        status = COMMANDS[given.command](given)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as `head` has enough; what is still in the buffer must not fail at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def share(text: str) -> float:
    """8% or 0.08 as a number from 0 to 1."""
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("a margin lies between 0% and 100%")
    return value


def estimates(given: argparse.Namespace) -> int:
    """One answer per scenario."""
    status = 0

    def answered(value: Any) -> Any:
        nonlocal status
        scenario = Scenario.model_validate(value)
        answer = estimate(scenario, config=config_at(scenario))
        if given.assert_fits and not fits(answer, margin=given.margin):
            status = 1
            print(_shortfall(answer, given.margin), file=sys.stderr)
        return table(answer) if given.table else answer_object(answer)

    bad = each(given.source, answered)
    return 2 if bad else status


def _shortfall(answer: Breakdown, margin: float) -> str:
    if answer.verdict == "impossible":
        return "; ".join(problem.message for problem in answer.problems if problem.blocking)
    room = f" less {margin:.0%}" if margin else ""
    needed = need(answer.peak.reserved, answer.peak.device)
    return f"does not fit: the {answer.peak.instant} needs {needed} of {answer.capacity}{room}"


def planned(given: argparse.Namespace) -> int:
    """Levers, solvers and plans of each scenario."""
    from calc.planner.answer import answer
    from calc.planner.plans import METHODS, Constraints

    def answered(value: Any) -> Any:
        scenario = Scenario.model_validate(value)
        constraints = Constraints(
            methods=tuple(given.method or METHODS),
            narrow_states=not given.no_8bit,
            installs=not given.no_installs,
            global_batch=given.global_batch,
            margin=given.margin,
        )
        return answer(scenario, constraints, config=config_at(scenario))

    return 2 if each(given.source, answered) else 0


def schema(given: argparse.Namespace) -> int:
    """The schemas of scenario and answer."""
    from calc.schema import schemas

    print(json.dumps(schemas(), ensure_ascii=False))
    return 0


def parameters(given: argparse.Namespace) -> int:
    """Parameters of one model, or the types that are not supported."""
    if given.unsupported:
        _unsupported()
        return 0
    try:
        config, model, hub_total = _counted(given.source)
        answer: dict[str, Any] = {
            "total": model.total,
            "trainable": model.total,
            "embedding": model.embedding,
            "active": model.active,
        }
        if given.all:
            answer |= _more(config, model, hub_total)
    except Exception as error:
        print(json.dumps(problem_object(error)))
        return 2
    print(json.dumps(answer, ensure_ascii=False))
    return 0


def _counted(source: str) -> tuple[Mapping[str, Any], Counted, int | None]:
    """The config.json of a file, of the catalogue or of the Hub, its parameters, and the Hub's stored total."""
    path = Path(source)
    if path.suffix == ".json" or path.is_file():
        config: Mapping[str, Any] = config_at(Scenario(model=PathModel(path=source))) or {}
        return config, counted(typed(config, "")), None
    if source in MODELS:
        row = MODELS[source]
        return row.config, counted(typed(row.config, row.id)), row.hub_total
    found = _on_the_hub(source)
    config, total = typed(found.config, found.id), found.facts.stored_total
    if found.tensors is None:
        return config, counted(config), total
    return config, of_tensors(found.tensors.tensors, config), total


def _on_the_hub(source: str) -> Repository:
    """A model that the catalogue does not have. Raises `Refused` with the Hub's reason and the names that are near."""
    from calc import hub

    found = hub.repository(source, needs_tensors=uncountable)
    if not isinstance(found, hub.HubFailure):
        return found
    near = ", ".join(UnknownName("model", source, list(MODELS)).near)
    hint = f" Of the catalogue the nearest: {near}." if near else ""
    raise Refused("unknown_name", f"{source[:100]} is not in the catalogue. {found.message}{hint}", "model")


def _more(config: Mapping[str, Any], model: Counted, hub_total: int | None) -> dict[str, Any]:
    """What else is known of a model's parameters."""
    known = about(model, config, hub_total)
    quantized = known.checkpoint
    return {
        "model_type": model.model_type,
        "name": model.name,
        "activations_modelled": model.modelled,
        "head": model.head,
        "parts": dict(known.parts),
        "hub_total": hub_total,
        "difference": known.reasons and [{"reason": r.text, "elements": r.elements} for r in known.reasons],
        "stored_bytes": None if known.load is None else int(known.load),
        "quantized": quantized
        and {
            "method": quantized.method.id,
            "adapters": quantized.method.adapters,
            "refusal": quantized.refusal,
        },
        "notes": list(model.notes),
        "source": model.source,
    }


def _unsupported() -> None:
    """Types whose parameters are not known, then those whose activations are not."""
    for model_type, missing in sorted(UNSUPPORTED.items()):
        print(f"{model_type}: missing is {missing}")
    for model_type in sorted(inventories()):
        print(f"{model_type}: its parameters are known, missing is the forward pass, which its activations need")


def schedules(given: argparse.Namespace) -> int:
    """Steps, warmup and rates of each schedule scenario."""
    from calc.schedule.answer import answer

    return 2 if each(given.source, answer) else 0


def links(given: argparse.Namespace) -> int:
    """The query string of each scenario."""
    from calc.link import query

    return 2 if each(given.source, lambda value: query(Scenario.model_validate(value))) else 0


def opened(given: argparse.Namespace) -> int:
    """The scenario of a query string, and what was wrong with it."""
    from calc.link import scenario

    found, notes = scenario(given.query)
    print(json.dumps(found.model_dump(mode="json")))
    for note in notes:
        print(note.message, file=sys.stderr)
    return 2 if notes else 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "estimate": estimates, "plan": planned, "params": parameters, "schedule": schedules, "link": links, "open": opened,
    "schema": schema,
}  # fmt: skip


def config_at(scenario: Scenario) -> dict[str, Any] | None:
    """The config.json of a model that is a path, or that only the Hub has; None for other models."""
    if isinstance(scenario.model, str) and scenario.model not in MODELS:
        found = _on_the_hub(scenario.model)
        return dict(typed(found.config, found.id))
    if not isinstance(scenario.model, PathModel):
        return None
    path = Path(scenario.model.path)
    try:
        if path.stat().st_size > LINE_LIMIT:
            raise Refused(
                "too_large", f"{path} is larger than {readable(LINE_LIMIT)}; a config.json is not.", "model.path"
            )
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Refused("no_file", f"cannot read {path}: {error.strerror}.", "model.path") from None
    return ConfigModel(config=parsed(text)).config


def parsed(text: str) -> Any:
    """JSON of bounded size and depth. Raises `Refused`."""
    if len(text) > LINE_LIMIT:
        raise Refused("too_large", f"a line is longer than {readable(LINE_LIMIT)}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("not_json", f"not JSON: {str(error)[:120]}.") from None


def each(source: str, answered: Callable[[Any], Any]) -> bool:
    """Print the answer to each line of a source; whether one was bad."""
    bad = False
    for line in lines(source):
        if not line.strip():
            continue
        try:
            result = answered(parsed(line))
        except Exception as error:
            result, bad = problem_object(error), True
        print(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False), flush=True)
    return bad


def lines(source: str) -> Iterator[str]:
    """The lines of a file or of standard input."""
    if source == "-":
        yield from sys.stdin
        return
    with Path(source).open(encoding="utf-8") as file:
        yield from file


def problem_object(error: Exception) -> dict[str, Any]:
    """What went wrong, as the contract's error object."""
    if isinstance(error, Refused | ScheduleError):
        code, message, field = error.code, error.message, error.field
    elif isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = ".".join(
            str(part) for part in first["loc"] if part not in ("full", "lora", "qlora") or first["loc"].index(part) > 1
        )
        code, message, field = str(first["type"]), str(first["msg"]), place
    elif isinstance(error, UnknownName):
        code, message, field = "unknown_name", str(error), error.kind
    elif isinstance(error, UnknownArchitecture | ConfigError):
        code = "bad_config" if isinstance(error, ConfigError) else "unknown_architecture"
        message, field = str(error), "model"
    elif isinstance(error, ValueError):
        code, message, field = "bad_value", str(error), ""
    else:
        code, message, field = "internal", f"{type(error).__name__}: {error}", ""
    return {"error": {"code": code, "message": message, "field": field}}


def answer_object(answer: Breakdown) -> dict[str, Any]:
    """The contract's answer."""
    return {
        "parameters": {n: getattr(answer.parameters, n) for n in ("total", "trainable", "active", "embedding")},
        "peak": {
            "allocated": int(answer.peak.allocated),
            "instant": answer.peak.instant,
            "reserved": span_object(answer.peak.reserved),
            "device": span_object(answer.peak.device),
        },
        "instants": [instant_object(instant) for instant in answer.instants],
        "lines": [line_object(line) for line in answer.lines],
        "host": {"training": int(answer.host.training), "load": int(answer.host.load)},
        "capacity": int(answer.capacity),
        "verdict": answer.verdict,
        "headroom": int(answer.headroom),
        "problems": [problem_line(problem) for problem in answer.problems],
    }


def floor_object(least: Floor) -> dict[str, Any]:
    """What is known of a step whose activations are not modelled, in the words of the answer."""
    return {
        "parameters": {n: getattr(least.parameters, n) for n in ("total", "trainable", "active", "embedding")},
        "at_least": {"allocated": int(least.peak.allocated), "instant": least.peak.name},
        "likely": None
        if least.likely is None
        else {name: int(getattr(least.likely, name)) for name in ("low", "expected", "high")}
        | {"nearest": least.likely.nearest},
        "instants": [instant_object(instant) for instant in least.instants],
        "lines": [line_object(line) for line in least.lines],
        "host": {"training": int(least.host.training), "load": int(least.host.load)},
        "capacity": int(least.capacity),
        "verdict": least.verdict,
        "headroom": int(least.headroom),
        "problems": [problem_line(problem) for problem in least.problems],
    }


def span_object(span: Span) -> dict[str, int]:
    """A range in bytes."""
    return {"low": int(span.low), "expected": int(span.expected), "high": int(span.high)}


def problem_line(problem: Problem) -> dict[str, Any]:
    """A problem of a plan."""
    return {
        "code": problem.code,
        "message": problem.message,
        "field": problem.field,
        "blocking": problem.blocking,
    }


def instant_object(instant: Instant) -> dict[str, Any]:
    """An instant with its lines."""
    return {
        "name": instant.name,
        "allocated": int(instant.allocated),
        "operation": instant.operation,
        "lines": [line_object(line) for line in instant.lines],
    }


def line_object(line: Line) -> dict[str, Any]:
    """A line with its reason."""
    return {
        "component": line.component, "label": line.label, "bytes": int(line.bytes), "certainty": line.certainty,
        "formula": line.formula, "numbers": line.numbers, "source": line.source, "note": line.note,
    }  # fmt: skip


def table(answer: Breakdown) -> str:
    """The answer for people, in plain text."""
    rows: list[tuple[str, str]] = [(line.label, readable(line.bytes)) for line in answer.lines]
    width = max(len(label) for label, _ in rows)
    body = "\n".join(f"  {label:<{width}}  {size:>12}" for label, size in rows)
    peak, device = answer.peak, answer.peak.device
    return (
        f"{answer.verdict.replace('_', ' ')}: peak {peak.allocated} at the {peak.instant}, {device.expected} on the device "
        f"({device.low} to {device.high}) of {answer.capacity}\n"
        f"  {count(answer.parameters.total)} parameters, {count(answer.parameters.trainable)} trained\n{body}"
        + "".join(f"\n  ! {problem.message}" for problem in answer.problems)
    )


if __name__ == "__main__":
    sys.exit(main())
