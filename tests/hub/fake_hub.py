"""A fake Hugging Face Hub on the loopback address: the standard library only, no network, any misbehaviour on demand.

It answers what `calc.hub` and the real `huggingface_hub` client ask: a repository's facts, its files (small ones
through /api/resolve-cache, large ones from a second server as the Hub's CDN does), search, and the tensors of sharded
weights. Gated, private, disabled, renamed and missing repositories answer with the Hub's own status and headers.
A `Fault` makes any address slow, endless, broken, limited or something else than a Hub.

    with FakeHub() as hub:
        hub.add("acme/tiny", {"config.json": {"model_type": "llama"}})
        hub.fault("/api/models/acme/tiny", Fault(status=500))

By hand, or for a browser test, with the cast of `populate`:

    python tests/hub/fake_hub.py --port 8731        # then HF_ENDPOINT=http://127.0.0.1:8731
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

BITS = {"F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "I8": 8, "U8": 8, "I32": 32, "I64": 64}
LARGE = (".safetensors", ".gguf", ".bin")
ALICE = "hf_AliceMayReadEverything0000000001"
"""A token whose account is on the list of every gated and private repository of `populate`."""
BOB = "hf_BobIsOnNoListAtAll00000000000002"
"""A valid token whose account is on no list."""


class Weights:
    """A safetensors file of any size: its header is real, its data are zeros made when read."""

    def __init__(self, tensors: Mapping[str, tuple[str, list[int]]]) -> None:
        self.header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        end = 0
        self.elements: dict[str, int] = {}
        for name, (dtype, shape) in tensors.items():
            start, end = end, end + math.prod(shape) * BITS[dtype] // 8
            self.header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
            self.elements[dtype] = self.elements.get(dtype, 0) + math.prod(shape)
        text = json.dumps(self.header).encode()
        self.head = struct.pack("<Q", len(text)) + text
        self.size = len(self.head) + end

    def read(self, start: int, stop: int) -> bytes:
        stop = min(stop, self.size)
        part = self.head[start:stop]
        return part + bytes(max(0, stop - start - len(part)))


class Plain:
    """A file kept as it is."""

    def __init__(self, content: bytes) -> None:
        self.content, self.size = content, len(content)

    def read(self, start: int, stop: int) -> bytes:
        return self.content[start:stop]


def sharded(tensors: Mapping[str, tuple[str, list[int]]], shards: int) -> dict[str, Any]:
    """The files of a model spread over shards, with their index."""
    files: dict[str, Any] = {}
    where: dict[str, str] = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = dict(list(tensors.items())[shard::shards])
        files[name] = Weights(part)
        where |= dict.fromkeys(part, name)
    files["model.safetensors.index.json"] = {"metadata": {"total_size": 1}, "weight_map": where}
    return files


@dataclass
class Fault:
    """What goes wrong at an address. Seconds for `delay` and `drip`; `times` None is for ever."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    """Silence before the answer."""
    drip: float = 0.0
    """Seconds between two bytes of the answer's body."""
    drip_headers: float = 0.0
    """Seconds between two bytes of the answer's headers."""
    endless: bytes = b""
    """Sent again and again, chunked, until the client hangs up."""
    drop: bool = False
    """Close the connection without an answer."""
    cut: int | None = None
    """Send only so many bytes of the body, then close."""
    methods: str = "GET HEAD"
    times: int | None = None


@dataclass
class Repo:
    id: str
    revisions: dict[str, dict[str, Weights | Plain]]
    private: bool = False
    gated: str | bool = False
    disabled: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def commit(self, revision: str) -> str:
        return hashlib.sha1(f"{self.id}@{revision}".encode()).hexdigest()

    def revision(self, asked: str) -> str | None:
        """The branch that `asked` names, by its name or its commit."""
        return next((name for name in self.revisions if asked in (name, self.commit(name))), None)


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]

    @property
    def token(self) -> str | None:
        return self.headers.get("authorization", "").removeprefix("Bearer ") or None


class FakeHub:
    """The server and what it holds; a context manager."""

    def __init__(self, port: int = 0) -> None:
        self.repos: dict[str, Repo] = {}
        self.moved: dict[str, str] = {}
        self.accounts: dict[str, set[str]] = {}
        self.seen: list[Seen] = []
        self.seen_by_cdn: list[Seen] = []
        self.sharded_metadata = True
        self.closing = threading.Event()
        self._faults: list[tuple[re.Pattern[str], Fault]] = []
        self._lock = threading.Lock()
        self._servers = [self._serve(port, cdn=False), self._serve(0, cdn=True)]

    def _serve(self, port: int, *, cdn: bool) -> ThreadingHTTPServer:
        handler = type("BoundAnswer", (Answer,), {"hub": self, "cdn": cdn})
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def cdn(self) -> str:
        return f"http://127.0.0.1:{self._servers[1].server_port}"

    def __enter__(self) -> FakeHub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closing.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def add(
        self,
        id: str,
        files: Mapping[str, Any] | None = None,
        *,
        branches: Mapping[str, Mapping[str, Any]] | None = None,
        private: bool = False,
        gated: str | bool = False,
        disabled: bool = False,
        **facts: Any,
    ) -> Repo:
        """A repository; `files` and `branches` hold text, bytes, `Weights`, or anything that JSON can say."""
        trees = {"main": files or {}, **(branches or {})}
        repo = Repo(
            id,
            {name: {path: _file(content) for path, content in tree.items()} for name, tree in trees.items()},
            private,
            gated,
            disabled,
            facts,
        )
        self.repos[id.lower()] = repo
        return repo

    def account(self, token: str, *readable: str) -> None:
        """A valid token, and the gated or private repositories that it may read."""
        self.accounts[token] = {id.lower() for id in readable}

    def rename(self, old: str, new: str) -> None:
        """Answer for the old name with a redirect to the new one."""
        self.moved[old.lower()] = new

    def fault(self, pattern: str, fault: Fault) -> None:
        """From now on, addresses (path and query; `cdn:` before those of the CDN) that hold `pattern` misbehave."""
        with self._lock:
            self._faults.append((re.compile(pattern), fault))

    def limit(self, pattern: str = ".", *, seconds: int = 55, bucket: str = "api") -> None:
        """429, as the Hub words it."""
        self.fault(
            pattern,
            Fault(
                status=429,
                body=b'{"error":"We had to rate limit you"}',
                headers={
                    "RateLimit": f'"{bucket}";r=0;t={seconds}',
                    "RateLimit-Policy": f'"fixed window";"{bucket}";q=500;w=300',
                },
            ),
        )

    def heal(self) -> None:
        """No faults from now on."""
        with self._lock:
            self._faults.clear()

    def take_fault(self, method: str, address: str) -> Fault | None:
        with self._lock:
            for pattern, fault in self._faults:
                if pattern.search(address) and method in fault.methods and fault.times != 0:
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None

    def facts(self, repo: Repo, revision: str) -> dict[str, Any]:
        """What /api/models/{id} says: an extract of config.json, never its dimensions."""
        files = repo.revisions[revision]
        stored: dict[str, int] = {}
        for path, content in files.items():
            if isinstance(content, Weights) and path.startswith("model"):
                for dtype, number in content.elements.items():
                    stored[dtype] = stored.get(dtype, 0) + number
        extract: dict[str, Any] = {}
        with suppress(KeyError, ValueError, AttributeError, TypeError, RecursionError):
            config = json.loads(files["config.json"].read(0, 1 << 20))
            extract = {key: config[key] for key in ("architectures", "model_type", "auto_map") if key in config}
        answer: dict[str, Any] = {
            "_id": repo.commit("")[:24],
            "id": repo.id,
            "modelId": repo.id,
            "author": repo.id.split("/")[0],
            "sha": repo.commit(revision),
            "lastModified": "2026-01-02T03:04:05.000Z",
            "createdAt": "2025-01-02T03:04:05.000Z",
            "private": repo.private,
            "gated": repo.gated,
            "disabled": repo.disabled,
            "downloads": 1000,
            "likes": 10,
            "tags": ["transformers", "text-generation"],
            "pipeline_tag": "text-generation",
            "library_name": "transformers",
            "config": extract,
            "siblings": [{"rfilename": path} for path in sorted(files)],
            "spaces": [],
        }
        if stored:
            answer["safetensors"] = {"parameters": stored, "total": sum(stored.values())}
        return answer | repo.facts


def _file(content: Any) -> Weights | Plain:
    if isinstance(content, Weights):
        return content
    if isinstance(content, str):
        content = content.encode()
    return Plain(content if isinstance(content, bytes) else json.dumps(content).encode())


class Answer(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    hub: FakeHub
    cdn: bool

    def log_message(self, *_: object) -> None:
        """Be quiet."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that hangs up is part of the game
            super().handle()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.query = parse_qs(url.query, keep_blank_values=True)
        seen = Seen(
            self.command, unquote(url.path), self.query, {name.lower(): value for name, value in self.headers.items()}
        )
        self.token = seen.token
        (self.hub.seen_by_cdn if self.cdn else self.hub.seen).append(seen)
        self.fault = self.hub.take_fault(self.command, ("cdn:" if self.cdn else "") + self.path) or Fault()
        self.hub.closing.wait(self.fault.delay)
        with suppress(BrokenPipeError, ConnectionResetError):
            if self.fault.drop:
                self.hang_up()
            elif self.fault.status is not None:
                self.send(self.fault.status, self.fault.body or b"", self.fault.headers)
            else:
                (self.from_cdn if self.cdn else self.route)(url.path)

    do_HEAD = do_GET  # noqa: N815 (named by http.server)

    def hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        fault = self.fault
        if fault.status is None and fault.body is not None and status < 300:
            body = fault.body
        head = {
            "Content-Length": str(len(body)),
            "X-Request-Id": "fake",
            "Set-Cookie": f"visit={len(self.hub.seen)}; Path=/",
            **(headers or {}),
            **fault.headers,
        }
        if fault.endless:
            head["Transfer-Encoding"] = "chunked"
            del head["Content-Length"]
        lines = f"HTTP/1.1 {status} Fake\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items()) + "\r\n"
        self.write(lines.encode("latin-1"), fault.drip_headers)
        if self.command == "HEAD":
            return
        chunk = b"%x\r\n%b\r\n" % (len(fault.endless), fault.endless)
        while fault.endless and not self.hub.closing.is_set():
            self.write(chunk, fault.drip)
        self.write(body[: fault.cut], fault.drip)
        if fault.cut is not None:
            self.hang_up()

    def write(self, data: bytes, pause: float) -> None:
        if not pause:
            self.wfile.write(data)
            return
        for byte in data:
            if self.hub.closing.wait(pause):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def send_json(self, value: Any) -> None:
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json; charset=utf-8"})

    def refuse(self, status: int, code: str | None, message: str) -> None:
        self.send(
            status,
            json.dumps({"error": message}).encode(),
            {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})},
        )

    def route(self, path: str) -> None:
        if path == "/api/models":
            return self.search()
        name = r"/([^/]+/[^/]+?|[^/]+?)"
        if found := re.fullmatch(rf"/api/models{name}/safetensors-metadata/(.+)", path):
            return self.for_reader(found[1], lambda repo: self.shard_headers(repo, unquote(found[2])), content=True)
        if found := re.fullmatch(rf"/api/resolve-cache/models{name}/([0-9a-f]{{40}})/(.+)", path):
            return self.for_reader(
                found[1], lambda repo: self.file(repo, found[2], unquote(found[3]), here=True), content=True
            )
        if found := re.fullmatch(rf"/api/models{name}(?:/revision/([^/]+))?", path):
            return self.for_reader(found[1], lambda repo: self.facts(repo, unquote(found[2] or "main")))
        if found := re.fullmatch(rf"{name}/resolve/([^/]+)/(.+)", path):
            return self.for_reader(
                found[1], lambda repo: self.file(repo, unquote(found[2]), unquote(found[3])), content=True
            )
        self.refuse(404, None, "Sorry, we can't find the page you are looking for.")

    def for_reader(self, id: str, then: Any, *, content: bool = False) -> None:
        """Find the repository if this visitor may read it; the facts of a gated one are public, its files are not."""
        hub, id = self.hub, unquote(id)
        if self.token is not None and self.token not in hub.accounts:
            return self.refuse(401, None, "Invalid credentials in Authorization header")
        if new := hub.moved.get(id.lower()):
            return self.send(307, b"Temporary Redirect", {"Location": self.path.replace(quote(id), quote(new), 1)})
        repo, readable = hub.repos.get(id.lower()), hub.accounts.get(self.token or "", set())
        if repo is None or (repo.private and repo.id.lower() not in readable):
            if self.token is None:
                return self.refuse(401, "RepoNotFound", "Invalid username or password.")
            return self.refuse(404, "RepoNotFound", "Repository not found")
        if repo.disabled:
            return self.refuse(403, None, "Access to this resource is disabled.")
        if content and repo.gated and repo.id.lower() not in readable:
            return self.refuse(403 if self.token else 401, "GatedRepo", f"Access to model {repo.id} is restricted.")
        then(repo)

    def facts(self, repo: Repo, asked: str) -> None:
        revision = repo.revision(asked)
        if revision is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {asked}")
        self.send_json(self.hub.facts(repo, revision))

    def file(self, repo: Repo, asked: str, path: str, *, here: bool = False) -> None:
        revision = repo.revision(asked)
        if revision is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {asked}")
        content, commit = repo.revisions[revision].get(path), repo.commit(revision)
        if content is None:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": commit, "ETag": f'"{commit[:32]}"', "X-Linked-Size": str(content.size)}
        if path.endswith(LARGE) or content.size > 10 << 20:
            return self.send(
                302, b"Found", headers | {"Location": f"{self.hub.cdn}/{repo.id}/{commit}/{quote(path)}?Signature=x"}
            )
        if not here:
            to = f"/api/resolve-cache/models/{repo.id}/{commit}/{quote(path)}"
            return self.send(307, b"Temporary Redirect", headers | {"Location": to})
        self.part(content, headers)

    def from_cdn(self, path: str) -> None:
        id, commit, name = re.fullmatch(r"/(.+)/([0-9a-f]{40})/(.+)", path).groups()  # type: ignore[union-attr]
        repo = self.hub.repos[id.lower()]
        self.part(repo.revisions[repo.revision(commit) or "main"][unquote(name)], {})

    def part(self, content: Weights | Plain, headers: dict[str, str]) -> None:
        if found := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            start, stop = int(found[1]), min(int(found[2]) + 1, content.size)
            return self.send(
                206, content.read(start, stop), headers | {"Content-Range": f"bytes {start}-{stop - 1}/{content.size}"}
            )
        self.send(200, content.read(0, content.size), headers)

    def shard_headers(self, repo: Repo, index: str) -> None:
        content = repo.revisions["main"].get(index)
        if not self.hub.sharded_metadata or not isinstance(content, Plain):
            return self.refuse(404, "EntryNotFound", "Entry not found")
        shards = set(json.loads(content.content)["weight_map"].values())
        headers = {shard: repo.revisions["main"][shard].header for shard in sorted(shards)}  # type: ignore[union-attr]
        self.send_json({"index": {"metadata": {}}, "headers": headers})

    def search(self) -> None:
        if self.token is not None and self.token not in self.hub.accounts:
            return self.refuse(401, None, "Invalid credentials in Authorization header")
        words = self.query.get("search", [""])[0].lower().split()
        readable = self.hub.accounts.get(self.token or "", set())
        rows = [
            self.hub.facts(repo, "main")
            for repo in self.hub.repos.values()
            if all(word in repo.id.lower() for word in words) and (not repo.private or repo.id.lower() in readable)
        ]
        rows.sort(key=lambda row: row["downloads"], reverse=True)
        wanted = {
            "_id",
            "id",
            "modelId",
            *self.query.get("expand", ["downloads", "likes", "tags", "pipeline_tag", "library_name"]),
        }
        limit = int(self.query.get("limit", ["1000"])[0])
        self.send_json([{key: value for key, value in row.items() if key in wanted} for row in rows[:limit]])


LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 172,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
"""A Llama of 123,712 parameters."""


def llama_tensors(config: Mapping[str, Any] = LLAMA) -> dict[str, tuple[str, list[int]]]:
    """The tensors of a Llama's checkpoint in bf16."""
    h, i, v = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = h // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {"model.embed_tokens": [v, h], "model.norm": [h], "lm_head": [v, h]}
    for layer in range(config["num_hidden_layers"]):
        block = f"model.layers.{layer}"
        shapes |= {
            f"{block}.self_attn.q_proj": [h, h],
            f"{block}.self_attn.k_proj": [kv, h],
            f"{block}.self_attn.v_proj": [kv, h],
            f"{block}.self_attn.o_proj": [h, h],
            f"{block}.mlp.gate_proj": [i, h],
            f"{block}.mlp.up_proj": [i, h],
            f"{block}.mlp.down_proj": [h, i],
            f"{block}.input_layernorm": [h],
            f"{block}.post_attention_layernorm": [h],
        }
    return {f"{name}.weight": ("BF16", shape) for name, shape in shapes.items()}


def populate(hub: FakeHub) -> FakeHub:
    """The cast that the tests and the browser meet: one repository for each thing that can happen, under acme/."""
    readme = {"README.md": "# A model", ".gitattributes": ""}
    lora = {
        "peft_type": "LORA",
        "base_model_name_or_path": "acme/tiny",
        "r": 16,
        "lora_alpha": 32,
        "use_dora": False,
        "target_modules": ["v_proj", "q_proj"],
        "modules_to_save": None,
    }
    hub.account(ALICE, "acme/gated", "acme/private")
    hub.account(BOB)

    hub.add(
        "acme/tiny",
        {"config.json": LLAMA, "model.safetensors": Weights(llama_tensors()), **readme},
        downloads=900_000,
        branches={
            "v1": {"config.json": LLAMA | {"num_hidden_layers": 1}},
            "refs/pr/7": {"config.json": LLAMA | {"num_hidden_layers": 7}},
        },
    )
    hub.add(
        "acme/sharded",
        {"config.json": LLAMA, **sharded(llama_tensors(), 3)},
        downloads=5_000,
        branches={"next": {"config.json": LLAMA, **sharded(llama_tensors(), 2)}},
    )
    hub.add(
        "acme/gated",
        {"config.json": LLAMA, "model.safetensors": Weights(llama_tensors())},
        gated="manual",
        downloads=70_000,
    )
    hub.add("acme/private", {"config.json": LLAMA}, private=True)
    hub.add("acme/disabled", {"config.json": LLAMA}, disabled=True)
    hub.add("acme/renamed", {"config.json": LLAMA})
    hub.rename("acme/old-name", "acme/renamed")
    hub.add("acme/no-config", {"pytorch_model.bin": b"weights", **readme})
    hub.add("acme/empty", readme)
    hub.add(
        "acme/gguf",
        {"tiny.Q4_K_M.gguf": b"GGUF", **readme},
        library_name="gguf",
        tags=["gguf", "base_model:acme/tiny", "base_model:quantized:acme/tiny"],
    )
    hub.add("acme/gguf-orphan", {"tiny.Q8_0.gguf": b"GGUF"}, tags=["gguf"])
    hub.add(
        "acme/adapter", {"adapter_config.json": lora, "adapter_model.safetensors": b"", **readme}, library_name="peft"
    )
    hub.add(
        "acme/adapter-of-gated",
        {"adapter_config.json": lora | {"base_model_name_or_path": "acme/gated"}},
        library_name="peft",
    )
    hub.add(
        "acme/adapter-local",
        {"adapter_config.json": lora | {"base_model_name_or_path": "/content/my-model"}},
        library_name="peft",
    )
    hub.add(
        "acme/adapter-carded",
        {"adapter_config.json": lora | {"base_model_name_or_path": "./out"}},
        library_name="peft",
        cardData={"base_model": "acme/tiny"},
    )
    hub.add("acme/adapter-loop", {"adapter_config.json": lora | {"base_model_name_or_path": "acme/adapter-loop"}})
    hub.add(
        "acme/diffusers",
        {"model_index.json": {"_class_name": "StableDiffusionPipeline"}, "unet/config.json": {}},
        library_name="diffusers",
        pipeline_tag="text-to-image",
    )
    hub.add("acme/unet", {"config.json": {"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.30"}})
    hub.add("acme/native", {"params.json": {"dim": 4096}, "consolidated.00.pth": b"", **readme})
    hub.add(
        "acme/remote-code",
        {
            "config.json": LLAMA | {"model_type": "acme", "auto_map": {"AutoModelForCausalLM": "m.Acme"}},
            "m.py": "raise SystemExit('never run')",
        },
    )
    hub.add("acme/quantised", {"config.json": LLAMA | {"quantization_config": {"quant_method": "gptq", "bits": 4}}})
    hub.add("acme/modelopt", {"config.json": LLAMA, "hf_quant_config.json": {"quantization": {"quant_algo": "NVFP4"}}})
    hub.add("acme/not-json", {"config.json": '{"model_type": "llama",\n "hidden_size": 64}\n trailing words'})
    hub.add("acme/html", {"config.json": "<!DOCTYPE html><title>Sign in</title>"})
    hub.add("acme/list", {"config.json": [1, 2, 3]})
    hub.add("acme/huge", {"config.json": b'{"x": "' + b"a" * (9 << 20) + b'"}'})
    for id in ("acme/slow", "acme/slow-headers", "acme/slow-config", "acme/broken", "acme/dropped", "acme/limited"):
        hub.add(id, {"config.json": LLAMA})
    hub.fault(r"^/api/models/acme/slow(/|$)", Fault(delay=3600))
    hub.fault(r"^/api/models/acme/slow-headers(/|$)", Fault(drip_headers=0.05))
    hub.fault(r"/acme/slow-config/.*config\.json", Fault(drip=0.05))
    hub.fault(r"^/api/models/acme/broken(/|$)", Fault(status=503))
    hub.fault(r"^/api/models/acme/dropped(/|$)", Fault(drop=True))
    hub.limit(r"^/api/models/acme/limited(/|$)", seconds=3)
    return hub


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake Hugging Face Hub on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    with populate(FakeHub(parser.parse_args().port)) as hub, suppress(KeyboardInterrupt):
        print(f"HF_ENDPOINT={hub.endpoint}", flush=True)
        hub.closing.wait()


if __name__ == "__main__":
    main()
