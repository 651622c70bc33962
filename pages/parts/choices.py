"""Every optimizer of the catalogue on the plan at hand: what it keeps, what its step takes, whether the run then fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from calc import Breakdown, Scenario, estimate
from calc.catalog.gpus import GPUS
from calc.catalog.optimizers import OPTIMIZERS, Optimizer
from calc.memory import step
from calc.memory.breakdown import Component, Line
from calc.memory.estimate import built, config_of
from calc.memory.optimizer_states import Node, state_dict_tree
from calc.memory.recipes import recipe
from calc.units import Bytes
from pages.parts import texts
from pages.parts.here import Here
from pages.parts.state import language, plain, t

Config = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One optimizer in the place of the chosen one."""

    optimizer: Optimizer
    scenario: Scenario
    answer: Breakdown | None
    """None where the plan is refused; then `refusal` says why."""
    refusal: str = ""

    @property
    def runs(self) -> bool:
        """Whether there is an answer and nothing keeps the run from starting."""
        return self.answer is not None and self.answer.verdict != "impossible"

    def held(self, component: Component) -> Bytes:
        """What a component holds at the optimizer's step."""
        return sum((line.bytes for line in self.lines(component)), Bytes(0))

    def lines(self, component: Component) -> tuple[Line, ...]:
        """The lines of a component at the optimizer's step."""
        lines = self.answer.instants[-1].lines if self.answer else ()
        return tuple(line for line in lines if line.component == component)


def choices(here: Here) -> list[Choice]:
    """All optimizers on this plan, the smallest peak first; those that cannot run come last."""
    made = [_choice(here, optimizer) for optimizer in OPTIMIZERS.values()]
    return sorted(made, key=lambda one: (not one.runs, one.answer.peak.allocated if one.answer else 0))


def _choice(here: Here, optimizer: Optimizer) -> Choice:
    plan = here.scenario.plan
    args = plan.optimizer_args
    if optimizer.id != plan.optimizer:
        # What another optimizer was told means nothing to this one; what it cannot start without is filled in.
        args = {argument.name: argument.default for argument in optimizer.arguments if argument.required}
    changed = plan.model_copy(update={"optimizer": optimizer.id, "optimizer_args": args})
    scenario = here.scenario.model_copy(update={"plan": changed})
    try:
        return Choice(optimizer, scenario, estimate(scenario, config=here.config))
    except ValueError as refused:
        return Choice(optimizer, scenario, None, str(refused))


def pick(made: Sequence[Choice], here: Here) -> Choice:
    """Show the choices as a table; the one whose row is chosen, the plan's own while none is."""
    sizes = ("states", "host", "temporaries", "gradients")
    columns: dict[str, Any] = {
        t(f"optimizers.{name}"): st.column_config.NumberColumn(format="%.2f GiB") for name in sizes
    }
    highest = max((one.answer.peak.allocated for one in made if one.answer), default=Bytes(0))
    columns[t("optimizers.peak")] = st.column_config.ProgressColumn(
        format="%.2f GiB", min_value=0, max_value=max(highest, here.gpu.capacity).gib, color="auto-inverse"
    )
    columns[t("optimizers.cost")] = st.column_config.TextColumn(width="large")
    shown = st.dataframe(
        _table(made), hide_index=True, column_config=columns, key="optimizers", on_select="rerun",
        selection_mode="single-row", alt=t("optimizers.alt"), height=420,
    )  # fmt: skip
    rows = shown["selection"]["rows"]
    if rows and rows[0] < len(made):
        return made[rows[0]]
    own = here.scenario.plan.optimizer
    return next((one for one in made if one.optimizer.id == own), made[0])


def _drawback(one: Choice) -> str:
    return texts.said(one.refusal or one.optimizer.blocked or one.optimizer.cost, language())


def _table(made: Sequence[Choice]) -> pd.DataFrame:
    """The choices as a table; sizes in GiB."""
    return pd.DataFrame(
        {
            t("optimizers.name"): [one.optimizer.id for one in made],
            t("optimizers.verdict"): [_verdict(one) for one in made],
            t("optimizers.peak"): [one.answer.peak.allocated.gib if one.answer else None for one in made],
            t("optimizers.cost"): [_drawback(one) for one in made],
            t("optimizers.states"): [one.held("optimizer states").gib if one.answer else None for one in made],
            t("optimizers.host"): [one.answer.host.training.gib if one.answer else None for one in made],
            t("optimizers.temporaries"): [one.held("temporaries").gib if one.answer else None for one in made],
            t("optimizers.gradients"): [one.held("gradients").gib if one.answer else None for one in made],
            t("optimizers.library"): [one.optimizer.library for one in made],
        }
    )


def _verdict(one: Choice) -> str:
    return t(f"verdict.{one.answer.verdict if one.answer else 'impossible'}")


def summary(made: Sequence[Choice], here: Here) -> str:
    """How many fit, and the leanest, in a sentence."""
    running = [one for one in made if one.runs]
    fit = [one for one in running if one.answer and one.answer.verdict == "fits"]
    least = running[0] if running else None
    if least is None or least.answer is None:
        return t("optimizers.none", all=len(made))
    peak, name = least.answer.peak.allocated, f"`{least.optimizer.id}`"
    return t("optimizers.summary", fit=len(fit), all=len(made), gpu=plain(here.gpu.name), least=name, peak=peak)


def fitting(made: Sequence[Choice]) -> list[Choice]:
    """Those that fit, tightly ones too."""
    return [one for one in made if one.answer and one.answer.verdict in ("fits", "tight")]


def tree(choice: Choice, config: Config) -> str:
    """`optimizer.state_dict()` as people see it when they print it, with the bytes of each tensor."""
    scenario = choice.scenario
    model = built(config if config is not None else config_of(scenario))
    parameters = step.run(model, recipe(scenario.plan, GPUS[scenario.hardware.gpu])).parameters
    root = state_dict_tree(choice.optimizer, parameters, scenario.plan.optimizer_args)
    return "\n".join([_words(root), *_branches(root, "")])


def _branches(node: Node, indent: str) -> Iterator[str]:
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        yield f"{indent}{'└─' if last else '├─'} {_words(child)}"
        yield from _branches(child, indent + ("   " if last else "│  "))


def _words(node: Node) -> str:
    size = f"  {node.bytes}" if node.bytes else ""
    return f"{node.key}{f': {node.value}' if node.value else ''}{size}"
