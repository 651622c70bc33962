"""What is kept for the backward pass: tensor by tensor at small sizes, byte by byte at real ones."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from recordings import contents, model, recipe, recorded, rows, saved

from calc.memory.step import Saved, run

FORMS = contents("forms")
SYMBOLIC = rows("forms")


def sizes(name: str) -> dict[str, int]:
    """The symbols of a recorded form, as numbers of elements."""
    c = model("forms", name, FORMS["layers"]).dims
    batch, length = FORMS["batch"], FORMS["length"]
    tokens, h, i, heads, few = (
        batch * length,
        c.hidden_size,
        c.intermediate_size,
        c.num_attention_heads,
        c.num_key_value_heads,
    )
    q, kv, vocab = heads * c.head_dim, few * c.head_dim, c.vocab_size
    per_token = {
        "h": h, "q": q, "kv": kv, "i": i, "2i": 2 * i, "(q+2kv)": q + 2 * kv, "H": heads, "K": few, "H*S": heads * length, "S": length,
        "V": vocab, "16": 16,
    }  # fmt: skip
    return {
        **{f"N*{symbol}": tokens * size for symbol, size in per_token.items()},
        "N": tokens, "S": length, "S*D": length * c.head_dim, "S*D/2": length * c.head_dim // 2, "S*16": length * 16,
        "B*H*ceil32(S)": batch * heads * -(-length // 32) * 32, "B*S*ceil16(S)": batch * length * -(-length // 16) * 16,
        "h*q": h * q, "h*kv": h * kv, "h*i": h * i, "h*(q+2kv)": h * (q + 2 * kv), "h*2i": h * 2 * i, "V*h": vocab * h, "h": h,
        "D": c.head_dim, "B*(S+1)": batch * (length + 1), "1": 1, "2": 2, "bytes": 1,
    }  # fmt: skip


def in_bytes(form: dict[str, int], name: str) -> int:
    """A recorded form: bytes per element, times elements."""
    known = sizes(name)
    return sum(size * known[symbol] for symbol, size in form.items())


@pytest.mark.parametrize("row", SYMBOLIC, ids=lambda r: f"{r['model']} {r['attention']} {r['precision']}")
def test_a_layer_saves_the_recorded_tensors(row: dict) -> None:
    """Dtype and elements of each tensor that one layer saves; what the first saves beyond it; what lies outside the layers."""
    step = run(
        model("forms", row["model"], FORMS["layers"]),
        recipe({"batch": FORMS["batch"], "length": FORMS["length"], **row}),
    )
    by_block: dict[int | None, list[Saved]] = {}
    for tensor in step.saved:
        by_block.setdefault(tensor.block, []).append(tensor)
    layer, first, outside = (sum(t.size for t in by_block[block]) for block in (1, 0, None))
    expected = (
        in_bytes(row["layer"], row["model"]),
        in_bytes(row["first layer extra"], row["model"]),
        in_bytes(row["outside"], row["model"]),
    )
    assert expected == (layer, first - layer, outside)
    known, theirs = sizes(row["model"]), Counter[tuple[str, int]]()
    for dtype, symbol, count in row["tensors"]:
        theirs[dtype, known[symbol]] += count
    assert theirs == Counter((t.dtype, elements(t)) for t in by_block[1])


def elements(t: Saved) -> int:
    """Elements of a saved storage."""
    width = {"fp32": 4, "bf16": 2, "i64": 8, "i32": 4, "bool": 1, "u8": 1}[t.dtype]
    whole = Fraction(t.size, width)
    assert whole.denominator == 1
    return int(whole)


@pytest.mark.parametrize("file", ["real_sizes", "steps", "blocks"])
def test_every_recorded_run_saves_the_same_bytes(file: str) -> None:
    """All layers and everything else together, both precisions and both attentions."""
    off = []
    for r in recorded(file):
        if r.row["saved bytes"] is not None and (found := saved(r.step())) != r.row["saved bytes"]:
            off.append((r.title, found - r.row["saved bytes"]))
    assert [] == off
