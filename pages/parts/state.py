"""The scenario of this visit: one truth in the session, the widgets that change it, the address that carries it.

The session keeps every field's value by path, also of methods that are not chosen at the moment. A widget has no
default of its own: it is given the kept value when the two differ and reports a change in its callback, so values live
on across pages and hidden branches. The address is read when a visit begins and whenever it is not what was last
written (back, forward, another link); it is written in one place, once a run, and only when it differs.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from calc import link
from calc.examples import OPENING
from calc.memory.breakdown import Problem
from calc.scenario import ConfigModel, FullFineTuning, Hardware, Lora, QLora, Scenario
from calc.schedule.link import KEYS as SCHEDULE_KEYS
from pages.parts import texts
from pages.parts.texts import LANGUAGES, Language

METHODS = {"full": FullFineTuning, "lora": Lora, "qlora": QLora}

# Names in the session. Widgets are keyed by the link's own keys, so these begin with an underscore.
_KEPT, _TOUCHED, _WRITTEN, _PAGE, _NOTES, _LANGUAGE = "_kept", "_touched", "_written", "_page", "_notes", "lang"
_BESIDE, _LINKED, _LIVE = "_beside", "_linked", "_live"

BESIDE: tuple[str, ...] = (*SCHEDULE_KEYS, "pins")
"""Keys of the link that are no part of the scenario: the page that they belong to reads and writes them."""


def arrive(page: str) -> None:
    """Take the scenario from the address where that is what the visitor chose last. Call once, before any widget."""
    session = st.session_state
    given = st.query_params.to_dict()
    if given.get(_LANGUAGE) in LANGUAGES:
        session[_LANGUAGE] = given[_LANGUAGE]
    session.setdefault(_LANGUAGE, _own_language())

    touched = session.pop(_TOUCHED, False)
    elsewhere = page != session.get(_PAGE)
    session[_PAGE] = page
    if _KEPT not in session:
        _read(given)
    elif touched:
        session[_NOTES] = ()
    elif given != session[_WRITTEN] and not (elsewhere and not given):
        # A page opened without any query is a step within the visit, not a wish for another scenario.
        _read(given)


def _read(given: dict[str, str]) -> None:
    """Take what the address says; an empty one is the opening example."""
    own = (_LANGUAGE, *BESIDE)
    raw = [(key, text) for key in given if key not in own for text in st.query_params.get_all(key)]
    st.session_state[_BESIDE] = {key: given[key] for key in BESIDE if key in given}
    opened, problems = link.scenario(urlencode(raw)) if raw else (OPENING, ())
    _keep(opened)
    st.session_state[_NOTES] = problems


def _keep(scenario: Scenario) -> None:
    """Make this the scenario of the visit; what it has no word for stays as it was."""
    given = link.by_path({"model": scenario.model, "plan": scenario.plan, "hardware": scenario.hardware})
    st.session_state[_KEPT] = st.session_state.get(_KEPT, link.by_path({"plan": QLora()})) | given


def go(scenario: Scenario) -> None:
    """Make this the scenario of the visit, as one step that Back undoes. For callbacks: a lever, a cell, an example."""
    _keep(scenario)
    st.session_state[_TOUCHED] = True


def keep(path: str, value: Any) -> None:
    """Change one field in the course of a run, before its widget is drawn."""
    st.session_state[_KEPT] = st.session_state[_KEPT] | {path: value}


def put(path: str, value: Any, *, live: bool = False) -> None:
    """Change one field. For callbacks of widgets that are not bound.

    `live` is a value on the way to the one that is meant, as a slider passes it: the address waits for that one.
    """
    keep(path, value)
    st.session_state[_TOUCHED] = True
    st.session_state[_LIVE] = live


def touched() -> bool:
    """Whether a callback has changed the scenario since the page last began. For a fragment, which begins by itself."""
    return bool(st.session_state.get(_TOUCHED))


def passing() -> bool:
    """Whether this run is about a value on the way to the one that is meant."""
    return bool(st.session_state.get(_LIVE))


def kept(path: str) -> Any:
    """What a field holds at the moment, whether or not the chosen method uses it."""
    return st.session_state[_KEPT][path]


def bound(path: str) -> dict[str, Any]:
    """The key and callback that tie a widget to a field."""
    key = link.PATHS[path]
    if key not in st.session_state or st.session_state[key] != kept(path):
        st.session_state[key] = kept(path)
    return {"key": key, "on_change": _took, "args": (path, key)}


def _took(path: str, key: str) -> None:
    put(path, st.session_state[key])


def scenario() -> Scenario:
    """The scenario of this visit."""
    values = st.session_state[_KEPT]
    paths = link.by_path({"plan": METHODS[values["plan.method"]](), "hardware": Hardware()})
    return Scenario.model_validate(link.nested({"model": values["model"]} | {path: values[path] for path in paths}))


def notes() -> tuple[Problem, ...]:
    """What in the link that was opened could not be used."""
    return tuple(st.session_state.get(_NOTES, ()))


def query() -> dict[str, str]:
    """The keys and values that open this scenario on any page, in the reader's own language."""
    return _linked()[0] | beside()


def beside() -> dict[str, str]:
    """What the link carries beside the scenario."""
    return dict(st.session_state[_BESIDE])


def put_beside(values: dict[str, str]) -> None:
    """Change what the link carries beside the scenario. For callbacks."""
    st.session_state[_BESIDE] = values
    st.session_state[_TOUCHED] = True


def unlinkable() -> str:
    """Why the link cannot carry the whole scenario; empty where it can."""
    return _linked()[1]


def _linked() -> tuple[dict[str, str], str]:
    """The scenario's part of the link, and why it is not whole. Kept, because a large config.json takes long to pack."""
    session = st.session_state
    of, params, why = session.get(_LINKED, (None, {}, ""))
    if of is not session[_KEPT]:
        try:
            params, why = link.params(scenario()), ""
        except link.NotLinkable as refused:
            params, why = refused.rest, str(refused)
        session[_LINKED] = (session[_KEPT], params, why)
    return params, why


def publish() -> None:
    """Write the address. The only writer; call once a run, after the controls.

    The opening example leaves a bare address bare: who has changed nothing can still go back where he came from.
    """
    session = st.session_state
    if session.pop(_LIVE, False):
        return
    wanted = query() | ({_LANGUAGE: language()} if language() != _own_language() else {})
    given = st.query_params.to_dict()
    if _WRITTEN not in session and not given and scenario() == OPENING:
        wanted = {}
    if wanted != given:
        st.query_params.from_dict(wanted)
    session[_WRITTEN] = wanted


def _own_language() -> Language:
    return "ko" if (st.context.locale or "").lower().startswith("ko") else "en"


def language() -> Language:
    """The reader's language: chosen here, else the browser's."""
    chosen: Language = st.session_state.get(_LANGUAGE) or _own_language()
    return chosen


def on_phone() -> bool:
    """Whether the browser says that it is a phone's: what needs width is then put another way."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def other_language() -> None:
    """Read on in the other language. For a callback."""
    session = st.session_state
    session[_LANGUAGE] = next(other for other in LANGUAGES if other != language())
    session[_TOUCHED] = True


def t(key: str, **values: object) -> str:
    """The text of this key in the reader's language."""
    return texts.text(key, language(), **values)


def model_name() -> str:
    """What the model is called on the page."""
    model = kept("model")
    return (model.id or t("model.pasted")) if isinstance(model, ConfigModel) else str(model)


def said(sentence: object) -> str:
    """What calc says, in the reader's language, as text that Markdown leaves alone."""
    return plain(texts.said(str(sentence), language()))


def plain(text: object) -> str:
    """Words of a visitor or a server as text that Markdown leaves alone: no link, image or formula comes of them."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+-.!|~$:@&" else sign for sign in " ".join(str(text).split()))
