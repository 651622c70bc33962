"""The Hugging Face Hub: a model's config.json and what the Hub knows about the repository.

The only file that talks to the Hub. Whatever is pasted and whatever a server does, the answer is a value, within
`TIME_LIMIT` seconds: what was asked for, or a `HubFailure` whose one sentence says what to do. Nothing is ever
executed or written to disk.

A visitor's token goes to the Hub and nowhere else: it is sent only to the endpoint's own origin, is not logged, shown
or remembered, and answers obtained with it are not kept. Without one, no token is sent at all: the operator's
(HF_TOKEN, a login file) is never lent to visitors.

Source: huggingface_hub 2.4, read and measured; https://huggingface.co/docs/hub/rate-limits.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import math
import re
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar
from urllib.parse import quote, unquote, urlsplit

from calc.units import MIB, Bytes, readable

if TYPE_CHECKING:
    import httpx2

_LOG = logging.getLogger(__name__)
T = TypeVar("T")

TIME_LIMIT = 10.0
"""Seconds that a whole call may take, whatever the server does."""
CONFIG_LIMIT = 8 * MIB
"""Bytes of a config.json: the largest known, nvidia/MiniMax-M3-NVFP4's, has 3,087,083."""
HEADERS_LIMIT = 32 * MIB
"""Bytes of all the safetensors headers of a repository; DeepSeek-V3's 91,991 tensors take about 11 MiB."""
SHARD_LIMIT = 64
"""Shards that are asked one by one where the Hub does not answer for all of them at once."""
FIRST_BYTES = 128 << 10
"""Bytes of a safetensors file that are asked for first: the whole header of most files."""
DEPTH_LIMIT = 64
"""Brackets within brackets in a config.json; real ones stay below 10."""
REDIRECT_LIMIT = 5
ADAPTER_LIMIT = 3
"""Adapters on adapters that are followed to their base."""
CALLS_AT_ONCE = 16
REMEMBERED_SECONDS = 600.0
REMEMBERED_ANSWERS = 256
REMEMBERED_BYTES = 128 << 10
"""A larger config.json is fetched again rather than kept."""
REMEMBERED_TENSORS = 2000
"""A longer list of tensors is fetched again rather than kept."""
LONGEST_WAIT = 900
"""Seconds: a longer wait is not believed, the Hub counts requests over 300 s."""
UNTOLD_WAIT = 10
"""Seconds without questions after a 429 that does not say how long."""

HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co", "hf-mirror.com"})
"""Hosts in pasted links that mean the Hub. A pasted link is never requested; only its two names are used."""
STORAGE_HOSTS = ("huggingface.co", "hf.co")
"""The Hub's domains, its content delivery network included: where a redirect may lead, besides the endpoint's own
host."""

FailureCode = Literal[
    "empty", "not_an_id", "access_token", "config_text", "local_path", "other_site", "not_a_model", "ollama_tag",
    "bad_revision", "bad_token", "invalid_token", "forbidden", "gated", "not_granted", "not_found",
    "not_found_with_token", "disabled", "no_revision", "no_config", "no_model", "gguf_only", "gguf_of",
    "adapter_without_base", "diffusers", "native_format", "not_json", "bad_config", "too_large", "no_safetensors",
    "too_many_shards", "bad_safetensors", "search_too_short", "rate_limited", "timeout", "interrupted",
    "no_network", "bad_certificate", "server_error", "not_a_hub", "strange_redirect", "offline", "busy",
    "unexpected",
]  # fmt: skip

SENTENCES: Mapping[FailureCode, str] = {
    "empty": "Type a model's id as the Hub writes it, such as Qwen/Qwen3-8B, or paste its link.",
    "not_an_id": "This is not a model's id; type it as the Hub writes it, such as Qwen/Qwen3-8B, or paste the link "
    "of its page.",
    "access_token": "This holds an access token; put it into the token field only, and if others could have seen it, "
    "replace it at https://huggingface.co/settings/tokens.",
    "config_text": "This is the content of a config.json, not a model's id; paste it into the custom model's form.",
    "local_path": "This is a path on your machine, which cannot be read from here; paste the content of its "
    "config.json instead.",
    "other_site": "This link leads to another site; find the model at https://huggingface.co/models and paste its "
    "link.",
    "not_a_model": "This link does not lead to a model but to another page of the Hub; paste the link of the model's "
    "own page.",
    "ollama_tag": "This is an Ollama or provider tag, whose quantised copy cannot be fine-tuned; enter the original "
    "model's id on the Hub, such as Qwen/Qwen3-8B.",
    "bad_revision": "A revision is a branch, tag or commit in letters, digits, dots, dashes and slashes; copy it again "
    "from the repository's files page, or leave it empty.",
    "bad_token": "An access token is hf_ followed by letters and digits; copy it again from "
    "https://huggingface.co/settings/tokens.",
    "invalid_token": "The Hub does not accept this access token; make a new one at "
    "https://huggingface.co/settings/tokens, or leave the field empty for public models.",
    "forbidden": "This access token may not read {repository}; give it that right at "
    "https://huggingface.co/settings/tokens.",
    "gated": "{repository} is gated: accept its licence at https://huggingface.co/{repository} and enter an access "
    "token of that account.",
    "not_granted": "{repository} is gated and this token's account is not on its list: ask for access at "
    "https://huggingface.co/{repository} and try again once it is granted.",
    "not_found": "{repository} does not exist on the Hub or is private: check the spelling, or enter an access token "
    "that may read it.",
    "not_found_with_token": "{repository} does not exist on the Hub, or is private and this access token may not "
    "read it: check the spelling and the token's rights.",
    "disabled": "{repository} was disabled by the Hub and cannot be read; choose another model.",
    "no_revision": "{repository} has no revision {revision}: choose a branch, tag or commit of "
    "https://huggingface.co/{repository}/commits/main, or leave the revision empty.",
    "no_config": "{repository} has no config.json, so its shape is not known: enter the model it was made from, or "
    "paste a config.json into the custom model's form.",
    "no_model": "{repository} holds no model files; enter a repository that has weights and a config.json.",
    "gguf_only": "{repository} holds only GGUF files, which are made for running and not for training: enter the "
    "original model.",
    "gguf_of": "{repository} holds only GGUF files, which are made for running and not for training: enter the model "
    "they were made from, {base_model}.",
    "adapter_without_base": "{repository} holds only an adapter and does not name its base on the Hub: enter the "
    "base model's id.",
    "diffusers": "{repository} is an image or video model (diffusers), which is not modelled here: enter a language "
    "model.",
    "native_format": "{repository} holds weights in their maker's own format and no config.json: enter the variant "
    "in Transformers format, often named -hf.",
    "not_json": "{file} of {repository} is not valid JSON: tell its owner, or paste a corrected copy into the custom "
    "model's form.",
    "bad_config": "{file} of {repository} does not describe a model: tell its owner, or enter the model it was made "
    "from.",
    "too_large": "{file} of {repository} is larger than {limit}, more than any model needs: enter another repository.",
    "no_safetensors": "{repository} has no weights in safetensors format, so its tensors cannot be listed: enter a "
    "repository that has.",
    "too_many_shards": "{repository} has more than {limit} weight files to ask one by one: leave the revision empty "
    "to read the main branch in one request.",
    "bad_safetensors": "{file} of {repository} is not a valid safetensors file: tell its owner, or enter another "
    "repository.",
    "search_too_short": "Type at least two letters of the model's name.",
    "rate_limited": "The Hub has had too many requests from this server: try again {wait}, or pick a model of the "
    "built-in catalogue.",
    "timeout": "The Hub did not answer in time: try again, or pick a model of the built-in catalogue.",
    "interrupted": "The connection to the Hub broke off: try again, or pick a model of the built-in catalogue.",
    "no_network": "The Hub cannot be reached from this server: check its network, or pick a model of the built-in "
    "catalogue.",
    "bad_certificate": "The Hub's certificate could not be verified from this server: its operator should check the "
    "clock and the proxy; until then pick a model of the built-in catalogue.",
    "server_error": "The Hub failed to answer (HTTP {status}): try again in a minute, or pick a model of the "
    "built-in catalogue.",
    "not_a_hub": "What answers in the Hub's place is not the Hub, perhaps a proxy's sign-in page: the operator "
    "should check HF_ENDPOINT and the network; until then pick a model of the built-in catalogue.",
    "strange_redirect": "The Hub sent us to an address that is not its own, which was not followed: try again later, "
    "or pick a model of the built-in catalogue.",
    "offline": "This server works offline (HF_HUB_OFFLINE): pick a model of the built-in catalogue, or paste a "
    "config.json.",
    "busy": "Too many repositories are being read at this moment: try again in a few seconds.",
    "unexpected": "The Hub's answer could not be understood: try again, or paste the model's config.json into the "
    "custom model's form.",
}
"""The one sentence of each failure. Whatever fills a gap was checked first (an id, a revision, a number): never a
server's words."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Elements that the root's safetensors files hold in one number format, such as BF16."""

    dtype: str
    elements: int


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """What the Hub says about a repository. Texts are the repository owner's: show them as plain text only."""

    gated: Literal["no", "auto", "manual"] = "no"
    private: bool = False
    library: str = ""
    """The library that it says it is for: transformers, peft, gguf, diffusers."""
    task: str = ""
    tags: tuple[str, ...] = ()
    base_models: tuple[str, ...] = ()
    """Ids of the models that it was made from, the card's first."""
    stored: tuple[Stored, ...] = ()
    """What is stored, by number format. Not always what is trained: tied heads may be stored twice, packed 4-bit
    counts half."""
    stored_total: int | None = None
    """Sum of `stored`, or None where the Hub does not know (no safetensors)."""
    quantization: str = ""
    """How the stored weights are quantised, such as "gptq 4-bit"; empty when they are not."""
    remote_code: bool = False
    """It carries its own modelling code, which is never run here."""
    architectures: tuple[str, ...] = ()
    model_type: str = ""
    last_modified: str = ""
    """ISO 8601."""
    downloads: int | None = None
    """Of the last 30 days."""
    likes: int | None = None
    files: frozenset[str] = frozenset()
    """Paths of its files at this revision."""


@dataclass(frozen=True, slots=True)
class HubFailure:
    """Why the Hub could not answer, and what to do about it."""

    code: FailureCode
    message: str
    """One sentence."""
    repository: str = ""
    revision: str = ""
    base_model: str = ""
    adapter: str = ""
    """The adapter that led to `repository`."""
    wait_seconds: int | None = None
    """How long the Hub asks to wait."""
    status: int | None = None
    """The HTTP status."""
    facts: RepositoryFacts | None = field(default=None, repr=False)
    """What the Hub says about the repository all the same: a gated one's facts are public."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a pasted text points at."""

    id: str
    """organisation/name, or a bare name as of the first models."""
    revision: str = ""
    """Branch, tag or commit; empty is the main branch."""
    folder: str = ""
    """The folder of the repository that a link led into; empty is its root."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """A PEFT adapter that led to its base model."""

    id: str
    kind: str
    """PEFT's type: LORA, ..."""
    rank: int | None
    alpha: float | None
    target_modules: tuple[str, ...] | str
    """Names, or one regular expression."""
    modules_to_save: tuple[str, ...] = ()
    use_dora: bool = False


@dataclass(frozen=True, slots=True)
class Repository:
    """A model's config.json with what the Hub knows about it."""

    id: str
    """The repository that `config` was read from: its present name, and the base's when an adapter was asked for."""
    revision: str
    """As asked: main when nothing was."""
    commit: str
    """The 40-digit commit that was read."""
    config: dict[str, Any]
    """The content of config.json: data of a stranger, to be checked key by key. A quantisation that only
    hf_quant_config.json declares stands in it as if it were declared there."""
    facts: RepositoryFacts
    notes: tuple[str, ...] = ()
    """What a visitor should know, a sentence each."""
    adapter: Adapter | None = None
    tensors: StoredTensors | None = field(default=None, repr=False)
    """Every tensor that the repository stores, where they were asked for and could be had."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One model that a search found."""

    id: str
    downloads: int | None = None
    likes: int | None = None
    gated: bool = False
    task: str = ""
    library: str = ""
    stored_total: int | None = None


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a safetensors file, from the file's header."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """As safetensors writes it: BF16, F8_E4M3, ..."""
    size: Bytes

    @property
    def elements(self) -> int:
        """Elements as stored: several packed 4-bit weights may share one."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class StoredTensors:
    """Every tensor that a repository stores."""

    id: str
    commit: str
    tensors: tuple[StoredTensor, ...]


class _Failed(Exception):
    """A failure on its way to becoming a value."""

    def __init__(self, failure: HubFailure) -> None:
        super().__init__(failure.code)
        self.failure = failure


def _failure(code: FailureCode, *, file: str = "config.json", limit: str = "", **about: Any) -> HubFailure:
    seconds = about.get("wait_seconds")
    wait = f"in {seconds} s" if seconds is not None else "in a few minutes"
    known = {name: value for name, value in about.items() if value}
    gaps = {"repository": "The repository", "revision": "main", "base_model": "its base", "status": "none"} | known
    return HubFailure(code, SENTENCES[code].format(file=file, limit=limit, wait=wait, **gaps), **about)


def _fail(code: FailureCode, **about: Any) -> NoReturn:
    raise _Failed(_failure(code, **about))


# ------------------------------------------------------------------------------------------------ what people paste

_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_ID = re.compile(rf"(?:{_NAME}/)?{_NAME}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{1,200}")
_TOKEN_INSIDE = re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CACHE_FOLDER = re.compile(r"models--([^/\\\s]+)(?:[/\\]snapshots[/\\]([0-9a-f]{40}))?")
_SHOWN_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\.safetensors")

_SEPARATORS = re.compile(r"[\s\"'()\[\]=,;`]+")

_VIEWS = frozenset({"tree", "blob", "resolve", "raw", "edit", "commit", "commits", "revision"})
"""Parts of a link that a revision follows."""
_TABS = frozenset({"discussions", "settings", "community", "blame", "safetensors-metadata"})
_OTHER_KINDS = frozenset({"datasets", "spaces", "kernels", "buckets", "collections", "papers"})
_SITE_PAGES = frozenset(
    {"models", "docs", "blog", "organizations", "tasks", "learn", "chat", "pricing", "posts", "new", "join", "login"}
    | {"settings", "search", "enterprise", "inference", "api", "notifications"}
)
_OTHER_SITES = frozenset({"github.com", "ollama.com", "modelscope.cn", "kaggle.com", "civitai.com"})
"""Told from an organisation's name where only one name follows."""
_FILES = (".json", ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".zip", ".yaml", ".yml")


def parse_reference(text: str) -> Reference | HubFailure:
    """What a pasted text points at: an id, a link to any page of a model, a git or hf:// address, a cache folder, a
    command.

    Pure: nothing is asked. Host names are compared exactly, ids and revisions are checked against the Hub's own
    rules, so the answer is safe in a URL and in a sentence. Anything else is a failure that says what was pasted.
    """
    kept = (
        c for c in unicodedata.normalize("NFKC", text) if c.isspace() or unicodedata.category(c) not in ("Cf", "Cc")
    )
    shown = "".join(kept).strip().strip("\"'`<>,;“”‘’").strip()
    if not shown:
        return _failure("empty")
    if shown[0] == "{":
        return _failure("config_text")
    if _TOKEN_INSIDE.search(shown):
        return _failure("access_token")
    if len(shown) > 2000:
        return _failure("not_an_id")
    if folder := _CACHE_FOLDER.search(shown):
        return _checked(folder[1].replace("--", "/"), folder[2] or "")
    if shown[0] in "./~\\" or re.match(r"[A-Za-z]:[\\/]", shown):
        return _failure("local_path")
    if _SEPARATORS.search(shown) and not re.fullmatch(r"[a-z+]+://\S+", shown, re.IGNORECASE):
        return _only_id_of_a_command(shown)
    if ssh := re.fullmatch(r"git@([^:/]+):(.+)", shown):
        shown = f"ssh://{ssh[1]}/{ssh[2]}"
    if shown.lower().startswith("hf://"):
        return _from_path(shown[5:].split("/"), link=True)
    if "://" in shown:
        return _from_link(shown)
    if "\\" in shown:
        return _failure("local_path")
    first, *rest = shown.split("/")
    if first.lower() in HUB_HOSTS:
        return _from_link("https://" + shown)
    if (
        rest
        and re.fullmatch(r"[\w-]+(\.[\w-]+)*\.(com|cn|ai|org|net|io|dev)", first)
        and (len(rest) > 1 or first in _OTHER_SITES)
    ):
        return _failure("other_site")
    if not rest and first.lower().endswith(_FILES):
        return _failure("local_path")
    name, _, revision = shown.partition("@")
    if ":" in name:
        return _failure("ollama_tag")
    return _from_path(name.split("/"), link=False, revision=revision)


def _only_id_of_a_command(text: str) -> Reference | HubFailure:
    """from_pretrained("org/name"), hf download org/name, git clone https://...: the one thing in it that can be a
    model."""
    words = [word for word in _SEPARATORS.split(text) if "/" in word]
    found = {reference for word in words if isinstance(reference := parse_reference(word), Reference)}
    return found.pop() if len(found) == 1 else _failure("not_an_id")


def _from_link(link: str) -> Reference | HubFailure:
    try:
        url = urlsplit(link)
        host = (url.hostname or "").lower()
    except ValueError:
        return _failure("not_an_id")
    if url.scheme.lower() == "file":
        return _failure("local_path")
    if url.scheme.lower() not in ("http", "https", "ssh", "git", "git+https") or host not in HUB_HOSTS:
        return _failure("other_site")
    return _from_path([unquote(part) for part in url.path.split("/")], link=True)


def _from_path(parts: list[str], *, link: bool, revision: str = "") -> Reference | HubFailure:
    """An id followed by what the Hub's pages put after it. A link's tail may be any page; a typed one must be known."""
    parts = [part for part in parts if part]
    if parts[:2] == ["api", "models"]:
        parts = parts[2:]
    elif parts[:1] == ["models"] and len(parts) > 2:
        parts = parts[1:]
    if not parts or (parts[0] in _OTHER_KINDS and len(parts) > 1) or (link and parts[0] in _SITE_PAGES | _OTHER_KINDS):
        return _failure("not_a_model")
    length = 1 if len(parts) > 1 and parts[1] in _VIEWS | _TABS else 2
    name, tail = "/".join(parts[:length]), parts[length:]
    if link:
        name, _, revision = name.partition("@")  # as hf:// addresses write it
        name = name.partition(":")[0].removesuffix(".git")  # hf.co/org/name:Q4_K_M, as Ollama writes it
    folder: list[str] = []
    if len(tail) > 1 and tail[0] in _VIEWS:
        # A branch's own slashes are %2F in the Hub's links, but for its two reserved kinds: refs/pr/1,
        # refs/convert/parquet.
        length = 3 if tail[1] == "refs" else 1
        revision, inside = "/".join(tail[1 : 1 + length]), tail[1 + length :]
        folder = inside if tail[0] == "tree" else inside[:-1]
    elif tail and not link:
        return _failure("not_an_id")
    return _checked(name.rstrip("."), revision, "/".join(folder))


def _checked(id: str, revision: str, folder: str = "") -> Reference | HubFailure:
    if not _is_id(id):
        return _failure("not_an_id")
    if revision and not _is_revision(revision):
        return _failure("bad_revision")
    return Reference(id, revision, folder)


def _is_id(text: str) -> bool:
    return bool(_ID.fullmatch(text)) and "--" not in text and ".." not in text and not text.endswith(".git")


def _is_revision(text: str) -> bool:
    # The client puts a revision into paths unchecked: '../..' in one wrote outside its cache folder.
    return bool(_REVISION.fullmatch(text)) and ".." not in text and "//" not in text


# ------------------------------------------------------------------------------------------------ reading what
# strangers wrote


def _read_json(raw: bytes, *, file: str, repository: str) -> tuple[Any, tuple[str, ...]]:
    """The JSON value of `raw` and notes on what is odd about it, or the failure that it is not a sane one."""
    notes: dict[str, None] = {}

    def number_as_text(text: str) -> str:
        notes[f"{file} holds a number that is not finite or beyond 64 bits; it is kept as text."] = None
        return text

    def integer(text: str) -> int | str:
        # Length first: turning very long digits into a number takes quadratic time.
        return value if len(text) <= 20 and abs(value := int(text)) < 1 << 63 else number_as_text(text)

    def real(text: str) -> float | str:
        return value if math.isfinite(value := float(text)) else number_as_text(text)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) < len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in value if keys.count(key) > 1)
            shown = twice if _SHOWN_KEY.fullmatch(twice) else "a key"
            notes[f"{file} states {shown} twice; the last value counts, as it does in Transformers."] = None
        return value

    try:
        value = json.loads(
            raw.decode("utf-8-sig"),
            parse_int=integer,
            parse_float=real,
            parse_constant=number_as_text,
            object_pairs_hook=pairs,
        )
    except (ValueError, RecursionError):
        _fail("not_json", file=file, repository=repository)
    level, depth = [value], 0
    while level:
        depth += 1
        for item in level:
            if isinstance(item, str) and not item.isascii():
                try:
                    item.encode()
                except UnicodeEncodeError:  # half a character: nothing that shows or sends it would survive
                    _fail("not_json", file=file, repository=repository)
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in ((*item.keys(), *item.values()) if isinstance(item, dict) else item)
        ]
        if depth > DEPTH_LIMIT:
            _fail("bad_config", file=file, repository=repository)
    return value, tuple(notes)


def _text(value: Any, limit: int = 100) -> str:
    """A stranger's text, printable and short, or nothing."""
    return "".join(c for c in value[:limit] if c.isprintable()) if isinstance(value, str) else ""


def _texts(value: Any, limit: int = 100, *, most: int = 200) -> tuple[str, ...]:
    return tuple(text for item in value[:most] if (text := _text(item, limit))) if isinstance(value, list) else ()


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _model_id(value: Any) -> str:
    """An id on the Hub in a stranger's text, or nothing."""
    reference = parse_reference(value) if isinstance(value, str) else None
    return reference.id if isinstance(reference, Reference) and "/" in reference.id else ""


def _facts(answer: dict[str, Any]) -> RepositoryFacts:
    tags = _texts(answer.get("tags"), 200)
    named = _mapping(answer.get("cardData")).get("base_model")
    tagged = [tag.rpartition(":")[2] for tag in tags if tag.startswith("base_model:")]
    bases = [_model_id(name) for name in (*(named if isinstance(named, list) else [named]), *tagged)]
    weights = _mapping(answer.get("safetensors"))
    stored = tuple(
        Stored(_text(dtype, 20), elements)
        for dtype, number in _mapping(weights.get("parameters")).items()
        if (elements := _count(number)) is not None
    )
    gated = answer.get("gated")
    extract = _mapping(answer.get("config"))
    siblings = answer.get("siblings")
    return RepositoryFacts(
        gated="manual" if gated == "manual" else "auto" if gated else "no",
        private=answer.get("private") is True,
        library=_text(answer.get("library_name")),
        task=_text(answer.get("pipeline_tag")),
        tags=tags,
        base_models=tuple(dict.fromkeys(id for id in bases if id)),
        stored=stored,
        stored_total=_count(weights.get("total")),
        quantization=_quantization(extract),
        remote_code=bool(extract.get("auto_map")),
        architectures=_texts(extract.get("architectures")),
        model_type=_text(extract.get("model_type")),
        last_modified=_text(answer.get("lastModified")),
        downloads=_count(answer.get("downloads")),
        likes=_count(answer.get("likes")),
        files=frozenset(_text(_mapping(file).get("rfilename"), 500) for file in siblings or ()) - {""}
        if isinstance(siblings, list)
        else frozenset(),
    )


def _quantization(config: dict[str, Any]) -> str:
    """How a config.json says that the stored weights are quantised, such as "gptq 4-bit"."""
    for holder in (config, _mapping(config.get("text_config"))):
        how = holder.get("quantization_config")
        if isinstance(how, dict) and how:
            method = _text(how.get("quant_method") or how.get("quant_algo"), 40) or "unnamed method"
            bits = _count(how.get("bits")) or (
                4 if how.get("load_in_4bit") is True or how.get("_load_in_4bit") is True else None
            )
            bits = bits or (8 if how.get("load_in_8bit") is True or how.get("_load_in_8bit") is True else None)
            return f"{method} {bits}-bit" if bits else method
    return ""


# ------------------------------------------------------------------------------------------------ talking to the Hub


class _Connection:
    """One visitor's call: an HTTP session of its own, so no cookie or header of another visitor is in it.

    The client's own calls cannot be bounded: `hf_hub_download` retries up to 6 times with waits of its own (a 429
    with t=55 takes nearly 5 minutes), writes answers for one visitor's token into a cache that serves everyone, and
    has no size limit; `model_info` and `list_models` read bodies of any length, byte by byte if the server likes. So
    this uses the client's session (the operator's proxy and certificates), its addresses and its reading of errors,
    and does the reading itself.
    """

    def __init__(self, session: httpx2.AsyncClient, endpoint: str, token: str | None) -> None:
        self.session, self.endpoint, self.token = session, endpoint, token

    async def get(
        self,
        address: str,
        *,
        limit: int,
        file: str,
        repository: str = "",
        part: tuple[int, int] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The body at an address of the Hub: at most `limit` bytes, or only the bytes of `part`."""
        from huggingface_hub import hf_raise_for_status

        url: Any = address
        for _ in range(REDIRECT_LIMIT + 1):
            async with self.session.stream(
                "GET", url, params=query, headers=self._headers(str(url), part), follow_redirects=False
            ) as response:
                if response.has_redirect_location:
                    url, query = self._allowed(response), None
                    continue
                hf_raise_for_status(response)
                if response.status_code not in (200, 206):
                    _fail("server_error", status=response.status_code)
                if response.headers.get("content-encoding", "identity") != "identity":
                    _fail("not_a_hub")  # it was told to send plain bytes; unpacking could grow without bound
                wanted = limit if part is None else part[1] - part[0]
                declared = response.headers.get("content-length", "")
                if part is None and declared.isdigit() and int(declared) > limit:
                    _fail("too_large", file=file, repository=repository, limit=readable(limit))
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > wanted:
                        if part is None:
                            _fail("too_large", file=file, repository=repository, limit=readable(limit))
                        break  # a server that ignores Range sends the whole file
                if part is not None and part[0] and response.status_code == 200:
                    _fail("not_a_hub")
                return bytes(body[:wanted])
        _fail("strange_redirect")

    def _headers(self, url: str, part: tuple[int, int] | None) -> dict[str, str]:
        # Written here and not by the client's build_hf_headers, which may ask the Hub about coding agents first
        # (telemetry).
        headers = {"user-agent": "plimsoll", "accept-encoding": "identity"}
        if self.token and _origin(url) == _origin(self.endpoint):
            headers["authorization"] = f"Bearer {self.token}"
        if part:
            headers["range"] = f"bytes={part[0]}-{part[1] - 1}"
        return headers

    def _allowed(self, response: httpx2.Response) -> str:
        """Where a redirect leads, if that is the Hub: else a hostile answer could make this server ask its own
        network."""
        if response.next_request is None:
            _fail("strange_redirect")
        target, here = urlsplit(str(response.next_request.url)), urlsplit(self.endpoint)
        host = (target.hostname or "").lower()
        at_home = host == here.hostname and target.scheme in ("https", here.scheme)
        at_the_hub = target.scheme == "https" and any(
            host == name or host.endswith("." + name) for name in STORAGE_HOSTS
        )
        if not (at_home or at_the_hub):
            _fail("strange_redirect")
        return target.geturl()

    async def json(
        self, address: str, *, limit: int, file: str, repository: str = "", query: Mapping[str, Any] | None = None
    ) -> Any:
        """What the Hub's own interface answers."""
        raw = await self.get(address, limit=limit, file=file, repository=repository, query=query)
        try:
            return _read_json(raw, file=file, repository=repository)[0]
        except _Failed:
            _fail("not_a_hub")

    async def file(self, repository: str, commit: str, path: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """A small JSON file of a repository and notes on what is odd in it."""
        raw = await self.get(
            self.address(repository, commit, path), limit=CONFIG_LIMIT, file=path, repository=repository
        )
        if raw.lstrip()[:1] == b"<":
            _fail("not_a_hub" if b"<html" in raw[:2000].lower() else "not_json", file=path, repository=repository)
        value, notes = _read_json(raw, file=path, repository=repository)
        if not isinstance(value, dict):
            _fail("bad_config", file=path, repository=repository)
        return value, notes

    def address(self, repository: str, commit: str, path: str) -> str:
        """Where a file lies."""
        from huggingface_hub import hf_hub_url

        return hf_hub_url(repository, path, revision=commit, endpoint=self.endpoint)


def _is_web_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _why(error: Exception, about: Reference, token: str | None) -> HubFailure:
    """The failure that an exception of the client or of the network stands for. Its own text is never used: it may
    hold the token."""
    import httpx2
    from huggingface_hub import errors
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    repository = about.id
    match error:
        case _Failed():
            return error.failure
        case errors.GatedRepoError():  # before RepositoryNotFoundError, which it is too
            return _failure("not_granted" if token else "gated", repository=repository)
        case errors.RevisionNotFoundError():
            return _failure("no_revision", repository=repository, revision=about.revision)
        case errors.RemoteEntryNotFoundError():
            return _failure("no_config", repository=repository)
        case errors.DisabledRepoError():
            return _failure("disabled", repository=repository)
        case errors.RepositoryNotFoundError():
            return _failure("not_found_with_token" if token else "not_found", repository=repository)
        case errors.HfHubHTTPError():
            status = error.response.status_code
            if status == 429:
                limits = parse_ratelimit_headers(error.response.headers)
                after = error.response.headers.get("retry-after", "")
                seconds = limits.reset_in_seconds if limits else int(after) if re.fullmatch(r"\d{1,6}", after) else None
                return _failure(
                    "rate_limited", wait_seconds=None if seconds is None else min(max(seconds, 1), LONGEST_WAIT)
                )
            if status == 401:
                return _failure("invalid_token") if token else _failure("not_found", repository=repository)
            if status == 403 and token:
                return _failure("forbidden", repository=repository)
            if status == 404:
                return _failure("not_a_hub", status=status)
            return _failure("server_error", status=status)
        case errors.OfflineModeIsEnabled():
            return _failure("offline")
        case TimeoutError() | httpx2.TimeoutException():
            return _failure("timeout")
        case httpx2.ConnectError():
            return _failure("bad_certificate" if "CERTIFICATE_VERIFY_FAILED" in str(error) else "no_network")
        case httpx2.ProxyError() | httpx2.UnsupportedProtocol():
            return _failure("no_network")
        case httpx2.HTTPError() | OSError():
            return _failure("interrupted")
    _LOG.warning("unexpected %s", type(error).__name__)  # nothing more of it: texts and tracebacks may hold the token
    return _failure("unexpected")


_SLOTS = threading.BoundedSemaphore(CALLS_AT_ONCE)


def _bounded(
    work: Callable[[_Connection], Awaitable[T]], about: Reference, token: str | None, endpoint: str | None
) -> T | HubFailure:
    """Run `work` with a connection of its own; its answer or its failure, within `TIME_LIMIT` seconds.

    Timeouts of an HTTP client are per read: a server that sends a byte a second never meets them, nor does a name
    that resolves slowly. So the work runs in a thread of its own, on an event loop that cancels it shortly before the
    limit wherever it stands; the caller leaves at the limit in any case, and `CALLS_AT_ONCE` bounds the threads that
    a stuck resolver could keep.
    """
    ends = time.monotonic() + TIME_LIMIT
    answers: list[T | HubFailure] = []

    async def within_limit() -> T:
        from huggingface_hub import constants, get_async_session

        home = (endpoint or constants.ENDPOINT).rstrip("/")
        if not _is_web_address(home):
            _fail("not_a_hub")
        left = ends - time.monotonic() - 0.02 * TIME_LIMIT
        async with asyncio.timeout(left), get_async_session() as session:
            session.timeout = left
            # The client's response hook reads and unpacks the bodies of errors; the headers say all that is needed.
            session.event_hooks = {"request": session.event_hooks["request"], "response": []}
            return await work(_Connection(session, home, token))

    def run() -> None:
        try:
            answers.append(asyncio.run(within_limit()))
        except Exception as error:
            answers.append(_why(error, about, token))
        finally:
            _SLOTS.release()

    if not _SLOTS.acquire(timeout=TIME_LIMIT / 2):
        return _failure("busy")
    thread = threading.Thread(target=run, name="hub", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        _SLOTS.release()
        return _failure("busy")
    thread.join(max(0.0, ends - time.monotonic()))
    return answers[0] if answers else _failure("timeout")


class _Memory:
    """Answers that needed no token, kept for a while; and until when the Hub asked this server to wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, Any]] = OrderedDict()
        self._wait_until: dict[str | None, float] = {}

    def recall(self, key: tuple[Any, ...]) -> Any:
        """A copy of what was kept, or None."""
        with self._lock:
            until, answer = self._answers.get(key, (0.0, None))
            if until < time.monotonic():
                self._answers.pop(key, None)
                return None
        return copy.deepcopy(answer)

    def keep(self, key: tuple[Any, ...], answer: Any) -> None:
        with self._lock:
            self._answers[key] = time.monotonic() + REMEMBERED_SECONDS, copy.deepcopy(answer)
            while len(self._answers) > REMEMBERED_ANSWERS:
                self._answers.popitem(last=False)

    def wait(self, endpoint: str | None, failure: HubFailure) -> None:
        with self._lock:
            self._wait_until[endpoint] = time.monotonic() + (failure.wait_seconds or UNTOLD_WAIT)

    def still_waiting(self, endpoint: str | None) -> HubFailure | None:
        with self._lock:
            left = self._wait_until.get(endpoint, 0.0) - time.monotonic()
        return _failure("rate_limited", wait_seconds=math.ceil(left)) if left > 0 else None

    def clear(self) -> None:
        with self._lock:
            self._answers.clear()
            self._wait_until.clear()


_MEMORY = _Memory()


def forget() -> None:
    """Drop every remembered answer, and the Hub's requests to wait."""
    _MEMORY.clear()


def _usable(token: str | None) -> str | HubFailure | None:
    # Checked first because the client puts an ill-formed token into the text of its exception.
    token = (token or "").strip()
    return _failure("bad_token") if token and not _TOKEN.fullmatch(token) else token or None


def _ask(
    kind: str,
    what: tuple[Any, ...],
    work: Callable[[_Connection], Awaitable[T]],
    about: Reference,
    token: str | None,
    endpoint: str | None,
    small: Callable[[T], bool] = lambda _: True,
) -> T | HubFailure:
    """`_bounded`, remembering answers that needed no token. With a token nothing is looked up and nothing is kept."""
    checked = _usable(token)
    if isinstance(checked, HubFailure):
        return checked
    if checked:
        return _bounded(work, about, checked, endpoint)
    key = (kind, endpoint, *what)
    known: T | None = _MEMORY.recall(key)
    if known is not None:
        return known
    if waiting := _MEMORY.still_waiting(endpoint):
        return waiting
    answer = _bounded(work, about, None, endpoint)
    if not isinstance(answer, HubFailure):
        if small(answer):
            _MEMORY.keep(key, answer)
    elif answer.code == "rate_limited":
        _MEMORY.wait(endpoint, answer)
    return answer


def _reference(text: str, revision: str | None) -> Reference | HubFailure:
    reference = parse_reference(text)
    revision = (revision or "").strip()
    if isinstance(reference, HubFailure) or not revision:
        return reference
    return replace(reference, revision=revision) if _is_revision(revision) else _failure("bad_revision")


# ------------------------------------------------------------------------------------------------ questions


def repository(
    text: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    needs_tensors: Callable[[Mapping[str, Any], str], bool] | None = None,
) -> Repository | HubFailure:
    """A model's config.json and what the Hub knows about it, for whatever a visitor pasted.

    `revision` is a branch, tag or commit and goes before one in a link; `token` is the visitor's own; `endpoint` is
    the operator's choice of Hub, never a visitor's. An adapter's base is followed. `needs_tensors` is asked with the
    config and the id whether the stored tensors are wanted too, as `safetensors_shapes` lists them; what keeps them
    away becomes a note. Never raises, never takes longer than `TIME_LIMIT`.
    """
    reference = _reference(text, revision)
    if isinstance(reference, HubFailure):
        return reference

    async def read(hub: _Connection) -> Repository:
        found = await _repository(hub, reference, ())
        if needs_tensors is None or not needs_tensors(found.config, found.id):
            return found
        own = Reference(found.id, "" if found.revision == "main" else found.revision)
        try:
            return replace(found, tensors=await _shapes(hub, own))
        except Exception as error:
            stopped = error if isinstance(error, _Failed) else _Failed(_why(error, own, hub.token))
            return replace(found, notes=(*found.notes, stopped.failure.message))

    return _ask(
        "repository" if needs_tensors is None else "repository with tensors",
        (reference,),
        read,
        reference,
        token,
        endpoint,
        lambda answer: (
            len(json.dumps(answer.config)) <= REMEMBERED_BYTES
            and (answer.tensors is None or len(answer.tensors.tensors) <= REMEMBERED_TENSORS)
        ),
    )


async def _known(hub: _Connection, reference: Reference) -> tuple[str, str, RepositoryFacts, tuple[str, ...]]:
    """Present id, commit, facts, and a note if the repository has another name by now."""
    revision = reference.revision or "main"
    address = f"{hub.endpoint}/api/models/{reference.id}" + (
        f"/revision/{quote(revision, safe='')}" if reference.revision else ""
    )
    answer = await hub.json(address, limit=CONFIG_LIMIT, file="The description", repository=reference.id)
    id, commit = _mapping(answer).get("id"), _mapping(answer).get("sha")
    if not isinstance(id, str) or not _is_id(id):
        _fail("not_a_hub")
    renamed = id.lower() != reference.id.lower()
    notes = (f"{reference.id} is called {id} now.",) if renamed else ()
    return id, commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else revision, _facts(answer), notes


async def _repository(hub: _Connection, reference: Reference, adapters: tuple[str, ...]) -> Repository:
    try:
        return await _read_repository(hub, reference, adapters)
    except _Failed:
        raise
    except Exception as error:
        # Explained here, where it is known which repository of a chain of adapters it is about.
        raise _Failed(_why(error, reference, hub.token)) from None


async def _read_repository(hub: _Connection, reference: Reference, adapters: tuple[str, ...]) -> Repository:
    id, commit, facts, notes = await _known(hub, reference)
    files = facts.files
    if reference.folder:
        notes += ("The link points into a folder of the repository; the config.json of its root was read.",)
    if files and "config.json" not in files:
        if "adapter_config.json" in files:
            return await _base_of(hub, id, commit, facts, notes, adapters)
        raise _Failed(replace(_without_config(id, facts), facts=facts))
    try:
        config, odd = await hub.file(id, commit, "config.json")
    except Exception as error:
        raise _Failed(replace(_why(error, replace(reference, id=id), hub.token), facts=facts)) from None
    notes += odd
    if "_class_name" in config and "model_type" not in config:
        raise _Failed(replace(_failure("diffusers", repository=id), facts=facts))
    quantization = _quantization(config)
    if not quantization and "hf_quant_config.json" in files:
        try:
            how, _ = await hub.file(id, commit, "hf_quant_config.json")
        except Exception:  # that it is there is what matters; the config.json in hand is worth more than its details
            how = {}
        declared = _mapping(how.get("quantization"))
        quantization = _text(declared.get("quant_algo"), 40) or "unnamed method"
        if declared and "quantization_config" not in config:  # where readers of config.json look for it
            config = {**config, "quantization_config": {"quant_method": "modelopt", **declared}}
    if quantization:
        notes += (
            f"The stored weights are quantised ({quantization}); training all of them needs the unquantised model.",
        )
    if config.get("auto_map"):
        notes += ("The repository carries its own modelling code; it is never run here, only config.json is read.",)
    if "adapter_config.json" in files:
        notes += ("The repository also holds an adapter; the weights it stores may be the adapter's alone.",)
    facts = replace(
        facts,
        quantization=quantization,
        remote_code=bool(config.get("auto_map")),
        architectures=_texts(config.get("architectures")),
        model_type=_text(config.get("model_type")),
    )
    return Repository(id, reference.revision or "main", commit, config, facts, notes)


def _without_config(id: str, facts: RepositoryFacts) -> HubFailure:
    """What a repository without config.json is."""
    endings = {file.rpartition(".")[2].lower() for file in facts.files}
    if "model_index.json" in facts.files:
        return _failure("diffusers", repository=id)
    if "gguf" in endings:
        base = facts.base_models[0] if facts.base_models else ""
        return _failure("gguf_of" if base else "gguf_only", repository=id, base_model=base)
    if any(file == "params.json" or file.startswith("consolidated.") for file in facts.files) or "nemo" in endings:
        return _failure("native_format", repository=id)
    weights = {"safetensors", "bin", "pt", "pth", "ckpt", "h5", "msgpack", "onnx", "json", "npz", "keras"}
    return _failure("no_config" if endings & weights else "no_model", repository=id)


async def _base_of(
    hub: _Connection, id: str, commit: str, facts: RepositoryFacts, notes: tuple[str, ...], adapters: tuple[str, ...]
) -> Repository:
    """The repository of the model that an adapter belongs to."""
    try:
        given, odd = await hub.file(id, commit, "adapter_config.json")
    except Exception as error:
        raise _Failed(replace(_why(error, Reference(id), hub.token), facts=facts)) from None
    named = _model_id(given.get("base_model_name_or_path")) or next(iter(facts.base_models), "")
    chain = (*adapters, id.lower())
    if not named or named.lower() in chain or len(chain) > ADAPTER_LIMIT:
        raise _Failed(replace(_failure("adapter_without_base", repository=id), facts=facts))
    at = given.get("revision")
    try:
        base = await _repository(hub, Reference(named, at if isinstance(at, str) and _is_revision(at) else ""), chain)
    except _Failed as stopped:
        why = stopped.failure
        about_base = why.repository and not why.adapter
        message = f"{id} is an adapter for {named}, and {why.message}" if about_base else why.message
        raise _Failed(replace(why, message=message, adapter=id)) from None
    targets = given.get("target_modules")
    alpha = given.get("lora_alpha")
    adapter = Adapter(
        id,
        _text(given.get("peft_type"), 40),
        _count(given.get("r")),
        float(alpha) if isinstance(alpha, int | float) and not isinstance(alpha, bool) else None,
        _text(targets, 2000) if isinstance(targets, str) else tuple(sorted(_texts(targets, most=2000))),
        _texts(given.get("modules_to_save")),
        given.get("use_dora") is True,
    )
    found = f"{id} holds only an adapter; this is its base, {base.id}."
    return replace(base, notes=(*notes, *odd, found, *base.notes), adapter=adapter)


def search(
    text: str, *, limit: int = 10, token: str | None = None, endpoint: str | None = None
) -> tuple[SearchHit, ...] | HubFailure:
    """Models whose id holds the words of `text`, most downloaded first; at most `limit` (1 to 50).

    Every letter typed may ask: answers without a token are remembered for ten minutes, because all visitors share
    this server's 500 requests in five minutes. A pasted link is searched by its id; an access token is refused, not
    sent.
    """
    reference = parse_reference(text)
    if isinstance(reference, HubFailure):
        if reference.code in ("access_token", "config_text"):
            return reference
        words = " ".join(re.findall(r"[\w./-]+", text[:200]))[:96]
    else:
        words = reference.id
    if len(words) < 2:
        return _failure("search_too_short")
    limit = min(max(limit, 1), 50)
    what = (words.lower(), limit)
    return _ask("search", what, lambda hub: _search(hub, words, limit), Reference(""), token, endpoint)


async def _search(hub: _Connection, words: str, limit: int) -> tuple[SearchHit, ...]:
    query = {
        "search": words,
        "sort": "downloads",
        "limit": limit,
        "expand": ["downloads", "likes", "gated", "pipeline_tag", "library_name", "safetensors"],
    }
    rows = await hub.json(f"{hub.endpoint}/api/models", limit=CONFIG_LIMIT, file="The search", query=query)
    if not isinstance(rows, list):
        _fail("not_a_hub")
    return tuple(
        SearchHit(
            row["id"],
            _count(row.get("downloads")),
            _count(row.get("likes")),
            bool(row.get("gated")),
            _text(row.get("pipeline_tag")),
            _text(row.get("library_name")),
            _count(_mapping(row.get("safetensors")).get("total")),
        )
        for row in map(_mapping, rows[:limit])
        if isinstance(row.get("id"), str) and _is_id(row["id"])
    )


def safetensors_shapes(
    text: str, *, revision: str | None = None, token: str | None = None, endpoint: str | None = None
) -> StoredTensors | HubFailure:
    """Every stored tensor's name, shape, dtype and bytes, from the headers of the safetensors files alone.

    One request for the facts and one for all shards of the main branch; another revision's shards are asked one by
    one, at most `SHARD_LIMIT`. Headers are capped at `HEADERS_LIMIT` bytes together.
    """
    reference = _reference(text, revision)
    if isinstance(reference, HubFailure):
        return reference
    return _ask(
        "shapes",
        (reference,),
        lambda hub: _shapes(hub, reference),
        reference,
        token,
        endpoint,
        lambda answer: len(answer.tensors) <= REMEMBERED_TENSORS,
    )


_INDEX = "model.safetensors.index.json"


async def _shapes(hub: _Connection, reference: Reference) -> StoredTensors:
    from huggingface_hub.errors import HfHubHTTPError

    id, commit, facts, _ = await _known(hub, reference)
    if _INDEX in facts.files:
        headers: dict[str, Any] | None = None
        if reference.revision in ("", "main"):
            address = f"{hub.endpoint}/api/models/{id}/safetensors-metadata/{_INDEX}"
            try:
                answer = await hub.json(address, limit=HEADERS_LIMIT, file="The list of tensors", repository=id)
                headers = _mapping(_mapping(answer).get("headers"))
            except HfHubHTTPError as error:
                if error.response.status_code != 404:  # a mirror may not have it
                    raise
        if headers is None:
            index, _ = await hub.file(id, commit, _INDEX)
            shards = sorted({shard for shard in _mapping(index.get("weight_map")).values() if isinstance(shard, str)})
            if not all(_SHARD.fullmatch(shard) for shard in shards):
                _fail("bad_safetensors", file=_INDEX, repository=id)
            if len(shards) > SHARD_LIMIT:
                _fail("too_many_shards", repository=id, limit=str(SHARD_LIMIT))
            turn = asyncio.Semaphore(8)
            cap = HEADERS_LIMIT // max(len(shards), 1)
            headers = dict(
                zip(
                    shards, await asyncio.gather(*(_header(hub, id, commit, s, cap, turn) for s in shards)), strict=True
                )
            )
    elif "model.safetensors" in facts.files:
        headers = {
            "model.safetensors": await _header(
                hub, id, commit, "model.safetensors", HEADERS_LIMIT, asyncio.Semaphore(1)
            )
        }
    else:
        _fail("no_safetensors", repository=id)
    tensors = {
        tensor.name: tensor for file, header in headers.items() for tensor in _tensors(header, file=file, repository=id)
    }
    if not tensors:
        _fail("bad_safetensors", file="The weights", repository=id)
    return StoredTensors(id, commit, tuple(tensors.values()))


async def _header(hub: _Connection, id: str, commit: str, file: str, cap: int, turn: asyncio.Semaphore) -> Any:
    """The header of one safetensors file: eight bytes of length, then JSON."""
    async with turn:
        address = hub.address(id, commit, file)
        start = await hub.get(address, limit=FIRST_BYTES, file=file, repository=id, part=(0, FIRST_BYTES))
        length = int.from_bytes(start[:8], "little")
        if len(start) < 8 or length > cap:
            _fail("bad_safetensors", file=_shown(file), repository=id)
        if 8 + length > len(start):
            start += await hub.get(address, limit=length, file=file, repository=id, part=(len(start), 8 + length))
    try:
        return _read_json(start[8 : 8 + length], file=file, repository=id)[0]
    except _Failed:
        _fail("bad_safetensors", file=_shown(file), repository=id)


def _shown(file: str) -> str:
    return file if _SHARD.fullmatch(file) else "A weight file"


def _tensors(header: Any, *, file: str, repository: str) -> list[StoredTensor]:
    if not isinstance(header, dict):
        _fail("bad_safetensors", file=_shown(file), repository=repository)
    tensors = []
    for name, about in header.items():
        if name == "__metadata__":
            continue
        about = _mapping(about)
        dtype, shape, span = _text(about.get("dtype"), 20), about.get("shape"), about.get("data_offsets")
        if (
            not dtype
            or len(name) > 500
            or not isinstance(shape, list)
            or len(shape) > 16
            or not isinstance(span, list)
            or len(span) != 2
            or any(_count(number) is None for number in (*shape, *span))
            or span[0] > span[1]
        ):
            _fail("bad_safetensors", file=_shown(file), repository=repository)
        tensors.append(StoredTensor(name, tuple(shape), dtype, Bytes(span[1] - span[0])))
    return tensors
