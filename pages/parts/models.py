"""The model picker: the embedded catalogue as one types, then the Hub, or a config.json of the visitor's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from calc import hub
from calc.catalog.models import MODELS, search
from calc.examples import EXAMPLES
from calc.hub import HubFailure, Repository
from calc.model import ConfigError, UnknownArchitecture, architecture
from calc.model import typed as with_type
from calc.model.counting import Counted, counted, uncountable
from calc.model.quantized_checkpoint import quantized_checkpoint
from calc.model.stored_tensors import of_tensors
from calc.model.vision import Seeing
from calc.scenario import ConfigModel
from calc.units import KIB, count, readable
from pages.parts import custom, state, texts
from pages.parts.state import plain, said, t

# Longest config.json that may be given: the largest known has 3 MB, most of it tables that no byte depends on.
LONGEST_CONFIG = 4096 * KIB
NEAR = 3

# Names in the session. The token is in its own widget's place only.
_ASKED, _FAILED, _FOUND, TOKEN = "_model_asked", "_model_failed", "_models_found", "_hub_token"


@dataclass(frozen=True, slots=True)
class Known:
    """A model whose configuration is at hand."""

    config: dict[str, Any] | None
    """None where `calc` has it in its own catalogue."""
    commit: str = ""
    """Of the Hub's repository that it was read from; empty for the other ways."""
    notes: tuple[str, ...] = ()
    """What the visitor should know, a sentence each."""
    stored_total: int | None = None
    """Elements that the Hub's repository stores."""
    stored: Counted | None = None
    """Its parameters as the repository stores them, where the config does not tell them."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A model that could not be had, with the one sentence that says why."""

    typed: str
    sentence: str
    near: tuple[str, ...] = ()
    """Ids that may have been meant."""


def current() -> Known | Unknown:
    """The scenario's model."""
    return of(state.kept("model"))


def dequantizes() -> bool:
    """Whether the model's weights are stored quantised in a way that loading can undo."""
    model, known = state.kept("model"), current()
    if isinstance(known, Unknown):
        return False
    try:
        stored = quantized_checkpoint(known.config if known.config is not None else MODELS[model].config)
    except ConfigError:
        return False
    return stored is not None and stored.method.dequantizes


def eyes() -> Seeing | None:
    """What the model sees images with; None where it sees none."""
    model, known = state.kept("model"), current()
    if isinstance(known, Unknown):
        return None
    try:
        dims = architecture(known.config if known.config is not None else with_type(MODELS[model].config, model)).dims
    except (ConfigError, UnknownArchitecture):
        return None
    return dims if isinstance(dims, Seeing) else None


def of(model: Any) -> Known | Unknown:
    """A scenario's model. Asks the Hub where nothing else knows it; a failure is remembered until another try."""
    if isinstance(model, ConfigModel):
        return Known(model.config)
    if model in MODELS and not _untold(model):
        return Known(None)
    found: dict[str, Known | Unknown] = st.session_state.setdefault(_FOUND, {})
    if model not in found:
        found[model] = _asked(model)[1]
    return found[model]


def _asked(typed: str) -> tuple[str, Known | Unknown]:
    """The id to keep for what was typed, and what is known of it."""
    same = next((hit.id for hit in search(typed, 1) if hit.id.casefold() == typed.casefold()), None)
    if same and not _untold(same):
        return same, Known(None)
    answer = hub.repository(typed, token=st.session_state.get(TOKEN) or None, needs_tensors=uncountable)
    if isinstance(answer, HubFailure) and same:
        return same, Known(None, notes=(answer.message,))
    if isinstance(answer, HubFailure):
        near = [answer.base_model] if answer.base_model else [hit.id for hit in search(typed, NEAR)]
        return typed, Unknown(typed, answer.message, tuple(near))
    reference = hub.parse_reference(typed)
    pinned = not isinstance(reference, HubFailure) and reference.revision not in ("", "main")
    name = f"{answer.id}@{answer.revision}" if pinned else answer.id
    return name, _known(answer)


@cache
def _untold(name: str) -> bool:
    """Whether the catalogue's config.json of a model does not tell its parameters, so that only the Hub's tensors can."""
    return uncountable(MODELS[name].config, name)


def _known(found: Repository) -> Known:
    """What a repository says of its model."""
    notes, stored = found.notes, None
    if found.tensors is not None:
        try:
            stored = of_tensors(found.tensors.tensors, found.config)
        except ConfigError as error:
            notes = (*notes, f"{error}.")
    return Known(dict(with_type(found.config, found.id)), found.commit, notes, found.facts.stored_total, stored)


def _choose() -> None:
    """Ask for what was typed, in the run that follows."""
    typed = str(st.session_state["model"] or "").strip()
    if typed and typed != state.model_name():
        st.session_state[_ASKED] = typed


def ask(typed: str) -> None:
    """Ask for this model in the run that follows. For callbacks."""
    st.session_state[_ASKED] = typed


def _resolve() -> None:
    """Take the model that was asked for if it can be had; else say why and stay with the one before."""
    typed = st.session_state.pop(_ASKED, "")
    if not typed:
        return
    with st.spinner(t("model.asking")):
        name, answer = _asked(typed)
    if isinstance(answer, Unknown):
        st.session_state[_FAILED] = (answer, state.kept("model"))
        return
    st.session_state.pop(_FAILED, None)
    st.session_state.setdefault(_FOUND, {})[name] = answer
    state.keep("model", name)


def draw() -> None:
    """The box, what is known of the model in it, and the ways to bring another."""
    box, below = st.container(), st.container()
    with below:
        _resolve()
    name = state.model_name()
    options = list(MODELS)
    if st.session_state.get("model") != name:
        st.session_state["model"] = name
    box.selectbox(
        texts.label("model", state.language()),
        options if name in MODELS else [name, *options],
        key="model",
        on_change=_choose,
        accept_new_options=True,
        placeholder=t("model.placeholder"),
        help=texts.help_of("model", state.language()),
    )
    with below:
        with st.spinner(t("model.asking"), show_time=True):
            answer = current()
        # What could not be had is said until another model is chosen.
        failed, beside = st.session_state.get(_FAILED, (None, None))
        if failed and beside == state.kept("model"):
            failure(failed)
        elif isinstance(answer, Unknown):
            failure(answer)
        if isinstance(answer, Known):
            _said(answer)
        with st.container(horizontal=True, gap="small"):
            with st.popover(t("model.other"), type="tertiary", icon=":material/add:"):
                _others()
            with st.popover(t("examples"), type="tertiary"):
                _examples()


def _said(known: Known) -> None:
    """Where on the Hub it comes from, and what is odd about it."""
    for note in known.notes:
        st.caption(said(note))
    if known.commit:
        st.caption(t("model.from-hub", commit=known.commit[:7]))


def _examples() -> None:
    """Scenarios one click away."""
    for row in EXAMPLES.values():
        name = t(f"example.{row.id}")
        st.button(name, key=f"example_{row.id}", type="tertiary", on_click=state.go, args=(row.scenario,))


def failure(failed: Unknown) -> None:
    """The sentence of a model that could not be had, the names that may have been meant, and another try."""
    st.warning(f"**{plain(failed.typed)}**: {said(failed.sentence)}")
    with st.container(horizontal=True, gap="small"):
        for place, near in enumerate(failed.near):
            st.button(near, key=f"model_near_{place}", on_click=ask, args=(near,), help=t("model.near"))
        st.button(t("model.retry"), key="model_retry", on_click=_again, args=(failed.typed,), icon=":material/refresh:")


def _again(typed: str) -> None:
    st.session_state.get(_FOUND, {}).pop(typed, None)
    ask(typed)


def _others() -> None:
    st.text_input(
        t("model.search"),
        key="hub_search",
        type="search",
        live=True,  # another pause than the usual would load pandas before the first answer
        icon=":material/search:",
        placeholder="Qwen3 8B",
    )
    words = str(st.session_state.get("hub_search") or "").strip()
    if words:
        hits = hub.search(words, limit=6, token=st.session_state.get(TOKEN) or None)
        if isinstance(hits, HubFailure):
            st.caption(said(hits.message))
        elif not hits:
            st.caption(t("model.search.none"))
        else:
            for place, hit in enumerate(hits):
                size = f" · {count(hit.stored_total)}" if hit.stored_total else ""
                st.button(f"{hit.id}{size}", key=f"hub_hit_{place}", on_click=ask, args=(hit.id,), type="tertiary")
    st.text_area(t("model.paste"), key="config_text", height=110, placeholder='{"model_type": "llama", …}')
    uploaded = st.file_uploader(t("model.upload"), type="json", key="config_file")
    given = uploaded.getvalue().decode(errors="replace") if uploaded else str(st.session_state.get("config_text") or "")
    name = uploaded.name if uploaded else ""
    if given.strip():
        config, problem = read_config(given)
        if config is None:
            st.warning(problem)
        else:
            if problem := odd(config, name):
                st.warning(said(problem))
            st.button(t("model.use"), key="config_use", on_click=_use, args=(config, name))
    custom.form()
    st.text_input(
        t("model.token"),
        key=TOKEN,
        type="password",
        autocomplete="off",
        help=t("model.token.note"),
        on_change=_retry_last,
    )


def _retry_last() -> None:
    if failed := st.session_state.get(_FAILED):
        ask(failed[0].typed)
    found = st.session_state.get(_FOUND, {})
    for name in [name for name, answer in found.items() if isinstance(answer, Unknown)]:
        del found[name]


def _use(config: dict[str, Any], name: str) -> None:
    state.put("model", ConfigModel(config=config, id=str(config.get("_name_or_path") or name)[:200]))
    st.session_state.pop(_FAILED, None)


def odd(config: dict[str, Any], name: str) -> str:
    """Why a config.json does not tell a model's parameters, in one sentence; empty where it does."""
    try:
        counted(with_type(config, name))
    except ValueError as error:
        return str(error)
    return ""


def read_config(given: str) -> tuple[dict[str, Any] | None, str]:
    """The content of a config.json, or None and the sentence that says what is wrong with it."""
    if len(given) > LONGEST_CONFIG:
        return None, t("config.too-large", size=readable(len(given)), limit=readable(LONGEST_CONFIG))
    try:
        config = json.loads(given, parse_constant=str, parse_int=_whole)
    except json.JSONDecodeError as error:
        return None, t("config.not-json", line=error.lineno)
    except RecursionError:
        return None, t("config.not-object")
    return (config, "") if isinstance(config, dict) else (None, t("config.not-object"))


def _whole(digits: str) -> int | str:
    # Thousands of digits are no size of anything, and Python refuses to read them.
    return int(digits) if len(digits) <= 20 else digits
