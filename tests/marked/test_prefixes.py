"""Half-typed text is the normal case: every prefix of each example is analysed without an exception."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.analysis.check import analyse, analyse_parsed
from server.analysis.outline import Parsed

EXAMPLES = sorted(Path(__file__).resolve().parents[2].joinpath("examples").glob("*.*"))
STEP = 37
"""Every 37th byte: a step that meets each kind of place in a line."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_prefix_is_analysed(path: Path) -> None:
    data = path.read_bytes()
    for end in range(0, len(data), STEP):
        analyse(str(path), data[:end].decode("utf-8", "ignore"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_single_prefix_is_analysed(path: Path) -> None:
    data = path.read_bytes()
    for end in range(len(data)):
        analyse(str(path), data[:end].decode("utf-8", "ignore"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_typing_a_file_gives_what_reading_it_gives(path: Path) -> None:
    text = path.read_text("utf-8")
    parsed = Parsed(str(path), "")
    for start in range(0, len(text), 211):
        part = text[start : start + 211]
        end = len(parsed.data)
        parsed.edit(end, end, part)
        analyse_parsed(parsed)
    typed, read = analyse_parsed(parsed), analyse(str(path), text)
    assert typed.outline == read.outline
    assert typed.findings == read.findings


@pytest.mark.parametrize(
    "broken", ["def k(x, n:", "    x = tl.load(", '    s = """', "    y = [1, (2,", "@triton.jit", "    if x ="]
)
def test_a_broken_line_spoils_no_other_kernel(broken: str) -> None:
    good = "@triton.jit\ndef {name}(x):\n    i = tl.arange(0, 96)\n\n\n"
    text = good.format(name="before") + broken + "\n\n\n" + good.format(name="after")
    found = analyse("k.py", text)
    names = [kernel.name for kernel in found.outline.kernels]
    assert "before" in names and "after" in names
    assert not found.outline.parses or broken == "@triton.jit"
