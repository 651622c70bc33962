"""What people paste is understood or named; nothing else gets into a URL."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given
from hypothesis import strategies as st

from calc import hub
from calc.hub import HubFailure, Reference, parse_reference

SHA = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("  Qwen/Qwen3-8B\n", Reference("Qwen/Qwen3-8B")),
        ('"Qwen/Qwen3-8B",', Reference("Qwen/Qwen3-8B")),
        ("`Qwen/Qwen3-8B`", Reference("Qwen/Qwen3-8B")),
        ("“Qwen/Qwen3-8B”", Reference("Qwen/Qwen3-8B")),
        ("Qwen/Qwen3-8B/", Reference("Qwen/Qwen3-8B")),
        ("Qwen/Qwen3-8B.", Reference("Qwen/Qwen3-8B")),
        ("\ufeffQwen/\u200bQwen3-8B\u00a0", Reference("Qwen/Qwen3-8B")),
        ("Ｑｗｅｎ／Ｑｗｅｎ３－８Ｂ", Reference("Qwen/Qwen3-8B")),
        ("gpt2", Reference("gpt2")),
        ("01-ai/Yi-6B", Reference("01-ai/Yi-6B")),
        ("EleutherAI/gpt-neo-1.3B", Reference("EleutherAI/gpt-neo-1.3B")),
        ("models/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("Qwen/Qwen3-8B@v1.0", Reference("Qwen/Qwen3-8B", "v1.0")),
        ("Qwen/Qwen3-8B@refs/pr/3", Reference("Qwen/Qwen3-8B", "refs/pr/3")),
        ("Qwen/Qwen3-8B/tree/main", Reference("Qwen/Qwen3-8B", "main")),
        ("https://huggingface.co/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("http://www.huggingface.co/Qwen/Qwen3-8B/", Reference("Qwen/Qwen3-8B")),
        ("HTTPS://HuggingFace.co/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("huggingface.co/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("hf.co/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("https://hf-mirror.com/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("https://huggingface.co/Qwen/Qwen3-8B?library=transformers#use", Reference("Qwen/Qwen3-8B")),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree/main", Reference("Qwen/Qwen3-8B", "main")),
        ("https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json", Reference("Qwen/Qwen3-8B", "main")),
        ("https://huggingface.co/Qwen/Qwen3-8B/blob/main/README.md", Reference("Qwen/Qwen3-8B", "main")),
        ("https://huggingface.co/Qwen/Qwen3-8B/resolve/v2/config.json?download=true", Reference("Qwen/Qwen3-8B", "v2")),
        (f"https://huggingface.co/Qwen/Qwen3-8B/raw/{SHA}/config.json", Reference("Qwen/Qwen3-8B", SHA)),
        (f"https://huggingface.co/Qwen/Qwen3-8B/commit/{SHA}", Reference("Qwen/Qwen3-8B", SHA)),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree/refs%2Fpr%2F4", Reference("Qwen/Qwen3-8B", "refs/pr/4")),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree/refs/pr/4/sub", Reference("Qwen/Qwen3-8B", "refs/pr/4", "sub")),
        ("https://huggingface.co/o/m/tree/main/checkpoint-500", Reference("o/m", "main", "checkpoint-500")),
        ("https://huggingface.co/o/m/blob/main/a/b/config.json", Reference("o/m", "main", "a/b")),
        ("https://huggingface.co/Qwen/Qwen3-8B/discussions/12", Reference("Qwen/Qwen3-8B")),
        ("https://huggingface.co/gpt2/blob/main/config.json", Reference("gpt2", "main")),
        ("https://huggingface.co/api/models/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("https://huggingface.co/Qwen/Qwen3-8B.git", Reference("Qwen/Qwen3-8B")),
        ("git@hf.co:Qwen/Qwen3-8B.git", Reference("Qwen/Qwen3-8B")),
        ("git clone https://huggingface.co/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("hf.co/bartowski/Some-7B-GGUF:Q4_K_M", Reference("bartowski/Some-7B-GGUF")),
        ("ollama run hf.co/bartowski/Some-7B-GGUF:Q4_K_M", Reference("bartowski/Some-7B-GGUF")),
        ("hf://Qwen/Qwen3-8B@main/config.json", Reference("Qwen/Qwen3-8B", "main")),
        ("hf download Qwen/Qwen3-8B --local-dir ./here", Reference("Qwen/Qwen3-8B")),
        ("--model_name_or_path=Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ('AutoModel.from_pretrained("Qwen/Qwen3-8B", dtype="auto")', Reference("Qwen/Qwen3-8B")),
        ("[Qwen/Qwen3-8B](https://huggingface.co/Qwen/Qwen3-8B)", Reference("Qwen/Qwen3-8B")),
        (f"~/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/{SHA}/", Reference("Qwen/Qwen3-8B", SHA)),
        (r"C:\hub\models--Qwen--Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        # Host names are compared exactly, but a pasted link is never requested: a port or a user name does no harm.
        ("https://huggingface.co:443/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
        ("https://user:secret@huggingface.co/Qwen/Qwen3-8B", Reference("Qwen/Qwen3-8B")),
    ],
)
def test_what_people_paste_for_a_model_is_understood(text: str, expected: Reference) -> None:
    assert expected == parse_reference(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        (" \n\t\u200b", "empty"),
        ('""', "empty"),
        ("Llama 3 8B", "not_an_id"),
        ("a/b/c", "not_an_id"),
        ("acme/..", "not_an_id"),
        ("acme/x--y", "not_an_id"),
        ("acme/x.git", "not_an_id"),
        ("acme/café", "not_an_id"),
        ("acme/<script>", "not_an_id"),
        ("acme/" + "x" * 97, "not_an_id"),
        ("x" * 3000, "not_an_id"),
        ("compare Qwen/Qwen3-8B and Qwen/Qwen3-4B", "not_an_id"),
        ("https://huggingface.co/acme%2F..%2Fx/y", "not_an_id"),
        ("https://[broken/x/y", "not_an_id"),
        (TOKEN, "access_token"),
        (f"https://huggingface.co/acme/x?token={TOKEN}", "access_token"),
        (f"https://user:{TOKEN}@huggingface.co/acme/x", "access_token"),
        (f"hf download acme/x --token {TOKEN}", "access_token"),
        ('{"model_type": "llama"}', "config_text"),
        ("./out/checkpoint-500", "local_path"),
        ("../model", "local_path"),
        ("/home/me/my model", "local_path"),
        ("~/models/llama", "local_path"),
        (r"C:\models\llama", "local_path"),
        ("D:/models/llama", "local_path"),
        (r"\\server\share", "local_path"),
        (r"models\llama", "local_path"),
        ("file:///home/me/config.json", "local_path"),
        ("config.json", "local_path"),
        ("model.safetensors", "local_path"),
        ("https://github.com/meta-llama/llama3", "other_site"),
        ("github.com/meta-llama/llama3", "other_site"),
        ("www.kaggle.com/models/x/y", "other_site"),
        ("ollama.com/llama3", "other_site"),
        ("https://modelscope.cn/models/Qwen/Qwen3-8B", "other_site"),
        ("s3://bucket/model", "other_site"),
        ("https://huggingface.co.evil.example/acme/x", "other_site"),
        ("https://huggingface.co@evil.example/acme/x", "other_site"),
        ("https://evil.example/huggingface.co/acme/x", "other_site"),
        ("https://evil.example#@huggingface.co/acme/x", "other_site"),
        ("javascript://huggingface.co/acme/x", "other_site"),
        ("https://huggingface.co/datasets/acme/data", "not_a_model"),
        ("datasets/acme/data", "not_a_model"),
        ("https://huggingface.co/spaces/acme/demo", "not_a_model"),
        ("spaces/acme/demo", "not_a_model"),
        ("hf://datasets/acme/data", "not_a_model"),
        ("https://huggingface.co/papers/2106.09685", "not_a_model"),
        ("https://huggingface.co/docs/peft", "not_a_model"),
        ("https://huggingface.co/models?search=llama", "not_a_model"),
        ("https://huggingface.co/", "not_a_model"),
        ("llama3:8b", "ollama_tag"),
        ("acme/llama3:free", "ollama_tag"),
        ("acme/x@../../etc", "bad_revision"),
        ("https://huggingface.co/acme/x/tree/..%2F..%2Fpwn", "bad_revision"),
        ("https://huggingface.co/acme/x/tree/-rf", "bad_revision"),
        ("https://huggingface.co/acme/x/tree/a%00b", "bad_revision"),
    ],
)
def test_what_is_no_model_is_named_for_what_it_is(text: str, code: str) -> None:
    answer = parse_reference(text)
    assert isinstance(answer, HubFailure), answer
    assert code == answer.code
    assert TOKEN not in repr(answer)


@given(st.text(max_size=300) | st.from_regex(r"[a-z:/@.%~\\]{1,60}", fullmatch=True))
def test_any_text_is_a_safe_reference_or_a_failure(text: str) -> None:
    """Whatever is pasted, an id is one that the real client accepts and nothing of the text reaches a sentence."""
    answer = parse_reference(text)
    if isinstance(answer, Reference):
        validate_repo_id(answer.id)
        assert re.fullmatch(r"[A-Za-z0-9._/-]*", answer.revision)
        assert ".." not in answer.revision
    else:
        assert hub.SENTENCES[answer.code] == answer.message


@given(st.text("aZ0_-./", max_size=12) | st.from_regex(r"[\w.-]{90,100}", fullmatch=True))
def test_an_id_is_what_the_client_takes_for_one(text: str) -> None:
    """The same rule as huggingface_hub's, but for the empty id and for ids that end in a line feed."""
    try:
        validate_repo_id(text)
        theirs = True
    except HFValidationError:
        theirs = False
    assert theirs == hub._is_id(text)


def test_every_failure_has_one_sentence() -> None:
    """A code without a sentence cannot exist, and a sentence is one: it ends once."""
    assert set(get_args(hub.FailureCode)) == set(hub.SENTENCES)
    for sentence in hub.SENTENCES.values():
        assert sentence.endswith(".")
        assert not re.search(r"[.!?] ", sentence), sentence
