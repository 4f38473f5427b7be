"""The cache of measured roofs and the reported peaks; measuring needs a card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evalcore.facts import Ceilings
from evalcore.gpu.ceilings import cache_key, cached, peak_gb_per_s, store
from evalcore.gpu.nvml import CardFacts

FACTS = CardFacts(
    index=0,
    uuid="GPU-1",
    driver="580.1",
    max_sm_clock_mhz=1980,
    max_memory_clock_mhz=3000,
    memory_bus_bits=6144,
    power_limit_w=700.0,
)
ROOFS = Ceilings(
    card="a card",
    uuid="GPU-1",
    copy_gb_per_s=100.0,
    tflops=(("float16", 5.0),),
    peak_tflops=(("float16", 9.0),),
    detail={"streams_gb_per_s": {"copy": 100.0}, "notes": []},
)


def test_what_was_stored_comes_back_whole(tmp_path: Path) -> None:
    store(ROOFS, FACTS, str(tmp_path / "new folder"))
    assert cached(FACTS, str(tmp_path / "new folder")) == ROOFS


def test_another_driver_limit_or_clock_is_another_card(tmp_path: Path) -> None:
    store(ROOFS, FACTS, str(tmp_path))
    for other in (
        replace(FACTS, driver="590.1"),
        replace(FACTS, power_limit_w=400.0),
        replace(FACTS, uuid="GPU-2"),
        replace(FACTS, max_sm_clock_mhz=1200),
    ):
        assert cache_key(other) != cache_key(FACTS)
        assert cached(other, str(tmp_path)) is None


def test_a_broken_file_is_no_answer(tmp_path: Path) -> None:
    store(ROOFS, FACTS, str(tmp_path))
    (file,) = tmp_path.iterdir()
    file.write_text('{"card": "a card"')
    assert cached(FACTS, str(tmp_path)) is None
    file.write_text('{"card": 5}')
    assert cached(FACTS, str(tmp_path)) is None


def test_a_card_without_a_name_is_not_cached(tmp_path: Path) -> None:
    nameless = replace(FACTS, uuid=None)
    store(ROOFS, nameless, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store(ROOFS, FACTS, str(tmp_path / "file"))
    assert cached(FACTS, str(tmp_path / "file")) is None


def test_the_reported_peak() -> None:
    assert peak_gb_per_s(FACTS) == 3000e6 * 2 * 6144 / 8 / 1e9
    assert peak_gb_per_s(replace(FACTS, memory_bus_bits=None)) is None
