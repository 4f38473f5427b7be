"""What holds for every suite: tests that need a card are skipped where there is none."""

from __future__ import annotations

import glob
import shutil

import pytest


def has_card() -> bool:
    """Whether an NVIDIA card is here, without loading torch."""
    return bool(glob.glob("/dev/nvidia[0-9]*")) or shutil.which("nvidia-smi") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked gpu on a machine without a card."""
    if has_card():
        return
    skip = pytest.mark.skip(reason="no NVIDIA card on this machine")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)
