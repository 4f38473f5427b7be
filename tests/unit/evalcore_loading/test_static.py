"""Reading a cubin without a tool; occupancy by the guide's limits; the shim over Triton's compiler."""

from __future__ import annotations

import pytest

from evalcore.static.elf import kernel_resources
from evalcore.static.occupancy import limits, theoretical_occupancy

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

pytestmark = pytest.mark.skipif(triton is None, reason="needs triton")

if triton is not None:

    @triton.jit
    def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


def body_cubin() -> list:
    import os
    import subprocess

    from evalcore.static.compile import Signature, compile_all

    signature = Signature(
        types={"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, constants={"BLOCK": 4096},
        divisible=frozenset({"x_ptr"}), options={"num_warps": 8},
    )
    product = compile_all(total, signature, 90)
    (found,) = kernel_resources(product.module)
    tool = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "cuobjdump")
    told = ""
    if os.path.exists(tool):
        path = f"/tmp/odyssey-test-{os.getpid()}.cubin"
        with open(path, "wb") as handle:
            handle.write(product.module)
        told = subprocess.run([tool, "--dump-resource-usage", path], capture_output=True, text=True).stdout
        os.unlink(path)
    return [found.name, found.registers, found.stack_bytes, product.metadata["shared"], told]


def test_registers_agree_with_nvidias_tool(compiled):
    name, registers, stack, shared, told = compiled(body_cubin)
    assert name == "total" and registers > 8 and stack == 0 and shared > 0
    if told:
        assert f"REG:{registers} STACK:{stack}" in told


def test_not_an_elf():
    with pytest.raises(ValueError, match="ELF"):
        kernel_resources(b"nothing of the kind")


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "warps", "wanted"),
    [
        (90, 32, 0, 4, 1.0),
        (90, 255, 0, 4, 8 / 64),
        (90, 168, 0, 8, 8 / 64),
        (90, 32, 100_000, 8, 16 / 64),
        (80, 64, 16_384, 4, 32 / 64),
        (86, 40, 0, 8, 48 / 48),
        (90, 32, 232_448, 4, 4 / 64),
        (90, 32, 240_000, 4, 0.0),
    ],
)
def test_occupancy(arch, registers, shared, warps, wanted):
    assert theoretical_occupancy(arch, registers, shared, warps) == pytest.approx(wanted)


def test_what_is_unknown_stays_unknown():
    assert theoretical_occupancy(12, 32, 0, 4) is None and limits(12) is None
    assert theoretical_occupancy(90, None, 0, 4) is None
