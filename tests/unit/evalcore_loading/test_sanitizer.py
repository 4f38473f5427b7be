"""Out of bounds before memory is touched; races said; honest kernels left alone."""

from __future__ import annotations

import pytest

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    torch = triton = tl = None

if triton is not None:

    @triton.jit
    def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0)
        count = tl.load(out_ptr + x, mask=i < n)
        tl.store(out_ptr + x, count + 1, mask=i < n)

    @triton.jit
    def histogram_atomic(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0)
        tl.atomic_add(out_ptr + x, 1, mask=i < n)

    @triton.jit
    def overlap(out_ptr, SAME: tl.constexpr):
        i = tl.arange(0, 8)
        pid = tl.program_id(0)
        tl.store(out_ptr + pid * 4 + i, 0 * i if SAME else pid + 0 * i)

    @triton.jit
    def shift(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0)
        tl.store(x_ptr + i, x, mask=i < n)

    @triton.jit
    def copy(x_ptr, out_ptr, n, offset, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i + offset, mask=i < n), mask=i < n)

    @triton.jit
    def gather_table(table_ptr, out_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        x_ptr = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
        tl.store(out_ptr + tl.program_id(0) * BLOCK + i, tl.load(x_ptr + i))

    @triton.jit
    def describe(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
        x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
        out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
        row, col = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
        out.store([row, col], x.load([row, col]) + 1)

    @triton.jit
    def recast(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        words = x_ptr.to(tl.pointer_type(tl.int32))
        tl.store(out_ptr + i, tl.load(words + i, mask=i < n), mask=i < n)


def start():
    from evalcore.gpu import interpreter, sanitizer

    interpreter.install()
    interpreter.forget()
    return interpreter, sanitizer


def out_of_bounds(call) -> str:
    try:
        call()
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        assert type(error).__name__ == "OutOfBounds", repr(error)
        return str(error)
    raise AssertionError("nothing was out of bounds")


def races(interpreter) -> list[str]:
    return [flag.message for flag in interpreter.notes() if flag.code == "race"]


def body_races() -> None:
    interpreter, _ = start()
    x = torch.randint(0, 4, (64,), dtype=torch.int32)
    for kernel, racy in ((histogram, True), (histogram_atomic, False)):
        interpreter.forget()
        kernel[(4,)](x, torch.zeros(4, dtype=torch.int32), 64, BLOCK=16)
        assert bool(races(interpreter)) is racy, (kernel, races(interpreter))
    interpreter.forget()
    overlap[(4,)](torch.zeros(64, dtype=torch.int32), SAME=True)
    assert races(interpreter) == []
    overlap[(4,)](torch.zeros(64, dtype=torch.int32), SAME=False)
    (message,) = races(interpreter)
    assert "programs (0, 0, 0) and (1, 0, 0)" in message and "`out_ptr`" in message and "12 places" in message


def body_read_write() -> None:
    interpreter, _ = start()
    x = torch.arange(64)
    shift[(4,)](x, 64, BLOCK=16)  # learns that x is stored to
    interpreter.forget()
    shift[(4,)](torch.arange(64), 64, BLOCK=16)
    (message,) = races(interpreter)
    assert "reads on line" in message and "writes on line" in message


def body_grids_of_two_dimensions() -> None:
    interpreter, _ = start()
    x, out = torch.rand(64, 64), torch.zeros(64, 64)
    describe[(2, 2)](x, out, 64, 64, BLOCK=32)
    assert torch.equal(out, x + 1) and races(interpreter) == []


def body_bounds() -> None:
    start()
    x, out = torch.rand(100), torch.zeros(100)
    message = out_of_bounds(lambda: copy[(7,)](x, out, 101, 0, BLOCK=16))
    assert "load out of bounds in program (6, 0, 0) of copy: 1 of 16 lanes lie outside `x_ptr` (100 elements)" in message
    message = out_of_bounds(lambda: copy[(7,)](x, out, 100, -3, BLOCK=16))
    assert "3 of 16 lanes" in message and "12 bytes before its start" in message
    # into another argument's memory is out of bounds too
    whole = torch.rand(200)
    message = out_of_bounds(lambda: copy[(1,)](whole, torch.zeros(10), 16, 0, BLOCK=16))
    assert "store" in message and "`out_ptr` (10 elements)" in message


def body_views_and_guards() -> None:
    _, sanitizer = start()
    raw = torch.zeros(300)
    inner = raw[100:200]
    copy[(1,)](inner, torch.zeros(16), 16, 95, BLOCK=16)  # a view: its storage is its own
    sanitizer.guard([inner])
    message = out_of_bounds(lambda: copy[(1,)](inner, torch.zeros(16), 16, 95, BLOCK=16))
    assert "11 of 16 lanes" in message
    copy[(1,)](inner[10:], torch.zeros(16), 16, -10, BLOCK=16)  # a view of an input may reach back into it


def body_tables_of_pointers() -> None:
    start()
    a, b = torch.rand(16), torch.rand(16)
    table = torch.tensor([a.data_ptr(), b.data_ptr()])
    out = torch.zeros(32)
    gather_table[(2,)](table, out, BLOCK=16)
    assert torch.equal(out, torch.cat([a, b]))


def body_casts_keep_their_argument() -> None:
    start()
    x, out = torch.rand(16), torch.zeros(32, dtype=torch.int32)
    recast[(1,)](x, out, 16, BLOCK=32)
    assert torch.equal(out[:16], x.view(torch.int32))
    assert "`x_ptr`" in out_of_bounds(lambda: recast[(1,)](x, out, 17, BLOCK=32))


@pytest.mark.parametrize(
    "body",
    [
        body_races, body_read_write, body_bounds, body_views_and_guards, body_tables_of_pointers,
        body_casts_keep_their_argument,
        pytest.param(
            body_grids_of_two_dimensions,
            marks=pytest.mark.skipif(not hasattr(tl, "make_tensor_descriptor"), reason="older Triton has none"),
        ),
    ],
)
def test_sanitizer(interpreted, body):
    interpreted(body)


def body_a_store_that_changes_nothing() -> None:
    interpreter, _ = start()
    x = torch.ones(64)
    shift[(4,)](x, 64, BLOCK=16)
    interpreter.forget()
    shift[(4,)](torch.zeros(64), 64, BLOCK=16)  # every value is moved onto its equal
    assert races(interpreter) == []


def test_a_store_that_changes_nothing_is_no_race(interpreted):
    interpreted(body_a_store_that_changes_nothing)
