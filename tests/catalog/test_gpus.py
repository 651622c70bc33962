"""The GPU table: capacities are what can be handed out, never what the name says."""

from __future__ import annotations

import pytest

from calc.catalog.gpus import GPUS, Gpu, driver_reserve
from calc.catalog.table import UnknownName
from calc.units import GIB, MIB, Bytes

every_gpu = pytest.mark.parametrize("gpu", GPUS.values(), ids=lambda gpu: gpu.id)


def test_the_table_holds_eighty_cards_of_five_vendors() -> None:
    """Every card of the survey is there, each under a stable id."""
    assert 80 == len(GPUS)
    assert {"NVIDIA", "AMD", "Intel", "Apple", "Google"} == {gpu.vendor for gpu in GPUS.values()}
    assert all(key == gpu.id for key, gpu in GPUS.items())


@pytest.mark.parametrize(
    ("card", "gib", "status"),
    [
        ("a100-sxm-80gb", 79.14, "measured"),
        ("h200-sxm", 139.72, "measured"),
        ("t4", 14.73, "measured"),
        ("a10", 21.848, "driver-reported"),
        ("mi100", 29.117, "not looked up"),
    ],
)
def test_a_capacity_is_what_cuda_hands_out(card: str, gib: float, status: str) -> None:
    """An "80 GB" A100 hands out 79.14 GiB, and a figure that nobody has looked up says so."""
    assert gib == pytest.approx(GPUS[card].capacity.gib, abs=0.001)
    assert status == GPUS[card].capacity_status


@every_gpu
def test_a_row_is_complete_and_plausible(gpu: Gpu) -> None:
    """Each row has a source, a capacity below the name's figure in GiB, and a source for whatever was measured."""
    assert gpu.source
    assert bool(gpu.usable_source) == (gpu.usable_gib is not None)
    assert 0 < gpu.capacity <= Bytes(int(gpu.marketing_gb * GIB))
    assert gpu.bandwidth_gbs > 100
    assert (gpu.driver_mib is None) == (gpu.driver_mib_status == "none")
    assert (gpu.bf16 is False) == (gpu.bf16_dense_tflops is None)


@pytest.mark.parametrize("gpu", [g for g in GPUS.values() if g.usable_gib and g.driver_mib], ids=lambda gpu: gpu.id)
def test_the_drivers_reserve_is_never_understated(gpu: Gpu) -> None:
    """Where both figures are known, what the driver lists less its reserve is not above what can be handed out."""
    assert gpu.driver_mib is not None
    listed = Bytes(gpu.driver_mib * MIB)
    assert listed - driver_reserve(listed) <= gpu.capacity <= listed


def test_an_unknown_card_is_an_error_that_names_the_nearest() -> None:
    """No silent fallback: a misspelt card names the cards that it could be."""
    with pytest.raises(UnknownName, match="did you mean a100-sxm-80gb") as caught:
        GPUS["a100-sxm-80"]
    assert "a100-sxm-80gb" in caught.value.near
