"""A lean text has the same lines, and everything that the asked kernels need."""

from __future__ import annotations

import ast

from benchmarks.latency import large_text
from server.lean import lean_text
from server.reading import Reader

TEXT = '''\
import triton

SIZE = 4


@triton.jit
def helper(x):
    return x


@triton.jit
def one(x):
    helper(x)


@triton.jit
def two(x):
    """helper of others

at the margin
"""
    return x


def launch(x):
    one[(SIZE,)](x)


class Other:
    pass


launch(3)
'''


def lean(text: str, *kernels: str) -> str:
    reader = Reader()
    reader.open("/w/k.py", "python", text)
    found = reader.lean("/w/k.py", kernels)
    assert found is not None
    return found


def test_what_a_kernel_needs_stays_on_its_line():
    short = lean(TEXT, "one")
    assert len(short.splitlines()) == len(TEXT.splitlines())
    kept = {number for number, line in enumerate(short.splitlines()) if line}
    lines = TEXT.splitlines()
    assert all(short.splitlines()[number] == lines[number] for number in kept)
    for name in ("import triton", "SIZE = 4", "def helper", "def one", "def launch", "launch(3)"):
        assert name in short
    assert "def two" not in short and "at the margin" not in short and "class Other" not in short
    ast.parse(short)


def test_one_kernel_of_a_hundred():
    text = large_text()
    short = lean(text, "kernel_50")
    ast.parse(short)
    assert len(short.splitlines()) == len(text.splitlines())
    assert short.count("@triton.jit") == 1 and "kernel_50[" in short
    assert len(short) < len(text) / 2


def test_pieces_that_are_no_definition_stay():
    pieces = [b"x = 1\n", b"# remark\n\n@jit\ndef f():\n    pass\n", b"if x:\n    def g():\n        pass\n"]
    assert lean_text(pieces, ["k"]) == b"x = 1\n\n\n\n\n\nif x:\n    def g():\n        pass\n"
