"""FLOPs from the model's own parameters, hours as a range, money at a typed price."""

from __future__ import annotations

import pytest

from calc.catalog.gpus import GPUS
from calc.catalog.models import MODELS
from calc.catalog.sources import SOURCES
from calc.catalog.throughput import PRICES, PUBLISHED, UTILISATIONS, prices, utilisation
from calc.memory.estimate import built
from calc.memory.recipes import recipe
from calc.memory.step import run
from calc.planner.cost import NoPeak, Range, Work, cost, flops_per_token, run_time, work
from calc.scenario import FullFineTuning, Lora, LoraAdapter

A100 = GPUS["a100-sxm-80gb"]


def model_work(name: str, plan: FullFineTuning | Lora) -> Work:
    architecture = built(MODELS[name].config)
    return work(architecture.dims, run(architecture, recipe(plan, A100)).parameters)


SMALL = {"micro_batch_size": 1, "seq_len": 8}
LLAMA = "meta-llama/Meta-Llama-3-8B"


def test_llama_3_8b_multiplies_a_token_with_seven_and_a_half_billion_parameters() -> None:
    """Everything but the embedding table and the norms."""
    assert 8_030_261_248 - 128_256 * 4096 - 65 * 4096 == model_work(LLAMA, FullFineTuning(**SMALL)).matmul_parameters


def test_a_tied_table_counts_as_the_head() -> None:
    """Looked up once, multiplied once."""
    tied = model_work("Qwen/Qwen2.5-0.5B", FullFineTuning(**SMALL))
    assert 494_032_768 > tied.matmul_parameters > 494_032_768 - 200_000


def test_of_a_mixture_only_the_experts_of_a_token_count() -> None:
    """Mixtral 8x7B: 2 of 8 experts, 12.9 B of 46.7 B parameters, less the embedding."""
    P = model_work("mistralai/Mixtral-8x7B-v0.1", FullFineTuning(**SMALL)).matmul_parameters
    assert P == pytest.approx(12.88e9 - 32_000 * 4096, rel=1e-3)


def test_six_eight_four_and_six_times_the_parameters() -> None:
    """Full, checkpointed, adapters, adapters checkpointed, when attention is nothing."""
    plain = Work(matmul_parameters=1000, adapter_parameters=0, attention_width=0, windows=(None,))
    counted = [
        flops_per_token(plain, family=family, checkpointed=again, seq_len=128).total
        for family in ("full", "lora")
        for again in (False, True)
    ]
    assert [6000.0, 8000.0, 4000.0, 6000.0] == counted


def test_adapters_train_their_own_weights_in_full() -> None:
    """4P for the frozen base and 6 for each adapter parameter: 0.67 of full, not a twentieth."""
    found = model_work(LLAMA, Lora(**SMALL, lora=LoraAdapter(rank=16)))
    flops = flops_per_token(found, family="lora", checkpointed=False, seq_len=2048)
    assert 41_943_040 == found.adapter_parameters
    assert 4 * found.matmul_parameters + 6 * 41_943_040 == flops.weights


def test_attention_grows_with_what_a_token_sees() -> None:
    """Causal: (s + 1) / 2 tokens on average; a window caps it; full attention sees all."""
    one = Work(matmul_parameters=0, adapter_parameters=0, attention_width=64, windows=(None,))
    assert 3 * 4 * 64 * 4.5 == flops_per_token(one, family="full", checkpointed=False, seq_len=8).attention
    assert 3 * 4 * 64 * 8 == flops_per_token(one, family="full", checkpointed=False, seq_len=8, causal=False).attention
    windowed = Work(matmul_parameters=0, adapter_parameters=0, attention_width=64, windows=(2,))
    assert (
        3 * 4 * 64 * (1 + 2 * 7) / 8
        == flops_per_token(windowed, family="full", checkpointed=False, seq_len=8).attention
    )


def test_alpaca_on_an_a100_takes_three_and_a_half_hours() -> None:
    """52,002 samples of 256 tokens, 3 epochs, Llama 3 8B with LoRA at 30 %: 3.6 hours, and always a range."""
    flops = flops_per_token(model_work(LLAMA, Lora(**SMALL)), family="lora", checkpointed=False, seq_len=256)
    time = run_time(flops, tokens=52_002 * 256 * 3, gpu=A100, num_gpus=1, family="lora")
    assert 3.6 == pytest.approx(time.hours.expected, rel=0.03)
    assert time.hours.low < time.hours.expected < time.hours.high
    assert time.sources
    money = cost(time, price_per_gpu_hour=1.5, num_gpus=1)
    assert (time.hours.low * 1.5, time.hours.high * 1.5) == (money.low, money.high)


def test_more_cards_take_less_time_and_a_typed_share_is_used() -> None:
    """Time divides; the published range steps aside for a visitor's own."""
    flops = flops_per_token(model_work(LLAMA, FullFineTuning(**SMALL)), family="full", checkpointed=True, seq_len=2048)
    one, eight = (run_time(flops, tokens=1e9, gpu=A100, num_gpus=n, family="full") for n in (1, 8))
    assert one.hours.expected == pytest.approx(8 * eight.hours.expected)
    typed = run_time(flops, tokens=1e9, gpu=A100, num_gpus=8, family="full", share_of_peak=Range(0.4, 0.4, 0.4))
    assert typed.hours.low == typed.hours.high
    assert () == typed.sources


def test_a_card_without_a_published_peak_is_refused() -> None:
    """No figure is made up."""
    silent = [gpu for gpu in GPUS.values() if gpu.bf16_dense_tflops is None and gpu.fp16_dense_tflops is None]
    flops = flops_per_token(Work(1, 0, 0, ()), family="full", checkpointed=False, seq_len=1)
    for gpu in silent:
        with pytest.raises(NoPeak, match="no published 16-bit throughput"):
            run_time(flops, tokens=1, gpu=gpu, num_gpus=1, family="full")


def test_every_figure_has_its_source_and_every_range_its_rows() -> None:
    """Utilisations lie within what was published; prices name cards of the GPU table and a date."""
    assert all(row.source in SOURCES for row in [*PUBLISHED.values(), *PRICES.values()])
    assert all(name in GPUS for row in PRICES.values() for name in row.gpus)
    assert all(row.low <= row.high and row.date for row in PRICES.values())
    for row in UTILISATIONS.values():
        assert row.low < row.expected < row.high
        if row.rows:
            shares = [PUBLISHED[name].utilisation for name in row.rows]
            assert all(PUBLISHED[name].family == row.family for name in row.rows)
            assert row.low <= min(shares) + 0.02
            assert row.high >= max(shares) - 0.05
    assert "other-lora" == utilisation(GPUS["t4"], "lora").id
    assert ["h100-sxm"] == [row.id for row in prices(GPUS["h100-sxm"])]
