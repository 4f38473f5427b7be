"""One worker per flavour for all hostile tests: that it survives them one after the other is part of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.judging import Worker, worker


@pytest.fixture(scope="session")
def interpreting() -> Iterator[Worker]:
    """A worker that interprets kernels on the CPU."""
    with worker("interpret") as made:
        yield made


@pytest.fixture(scope="session")
def on_card() -> Iterator[Worker]:
    """A worker that compiles kernels for a card."""
    with worker("compile") as made:
        yield made
