"""How arguments are handed to the driver, and which instance of a kernel a launch compiles; the driver itself is faked."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from test_nvrtc import needs_nvrtc

torch = pytest.importorskip("torch")

from evalcore.gpu import cuda_host
from evalcore.gpu.cuda_driver import LaunchFault, _marshal, parameter_kind
from evalcore.gpu.nvrtc import build


@pytest.mark.parametrize(
    ("declaration", "kind"),
    [
        ("const float* __restrict__ x", "pointer"), ("float x[]", "pointer"), ("void **p", "pointer"),
        ("int n", ctypes.c_int32), ("const int n", ctypes.c_int32), ("unsigned n", ctypes.c_uint32),
        ("unsigned long long n", ctypes.c_uint64), ("std::size_t n", ctypes.c_uint64), ("long", ctypes.c_int64),
        ("float", ctypes.c_float), ("double a = 1.0", ctypes.c_double), ("bool flag", ctypes.c_bool),
        ("at::Half a", torch.float16), ("__nv_bfloat16 a", torch.bfloat16), ("Params p", None), ("float4 v", None),
    ],
)
def test_how_a_parameter_is_passed(declaration: str, kind: Any) -> None:
    assert parameter_kind(declaration) == kind


def test_values_become_what_c_would_make_of_them() -> None:
    assert _marshal(3.9, ctypes.c_int32, "int n").value == 3
    assert _marshal(2**32 + 1, ctypes.c_int32, "int n").value == 1
    assert _marshal(1, ctypes.c_float, "float a").value == 1.0
    assert _marshal(1.5, torch.float16, "half a").value == 0x3E00
    assert _marshal(1234, "pointer", "float* p").value == 1234
    for value, kind in ((torch.ones(1), ctypes.c_int32), (1, None), (torch.ones(1), "pointer")):
        with pytest.raises(LaunchFault):
            _marshal(value, kind, "x")


TEXT = """
#include <torch/types.h>
template <typename scalar_t, int N> __global__ void scale(scalar_t* x, scalar_t a, int64_t n) { if (n) x[0] = a * N; }
__global__ void plain(float* p) { *p = 1; }
"""


class FakeModule:
    launches: list[tuple[str, tuple[str, ...], Any, list[Any]]] = []

    def __init__(self, cubin: bytes) -> None:
        assert cubin[:4] == b"\x7fELF"
        self.cubin = cubin

    def function(self, lowered: str, parameters: tuple[str, ...]) -> Any:
        assert lowered.encode() in self.cubin

        class Function:
            @staticmethod
            def launch(shape: Any, args: list[Any]) -> None:
                FakeModule.launches.append((lowered, parameters, shape, args))

        return Function()


@needs_nvrtc
def test_a_launch_compiles_the_instance_that_it_needs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_host, "CudaModule", FakeModule)
    FakeModule.launches.clear()
    built = build(TEXT, path="/nowhere/k.cu", arch=90)
    host = "void run(torch::Tensor x) { scale<float, 2><<<dim3(3, 2), 64, 128>>>(x.data_ptr<float>(), 2, x.numel()); }"
    for_half = host.replace("run", "run_half").replace("float", "at::Half")
    plain = "void go(torch::Tensor x) { plain<<<1, 32>>>(x.data_ptr<float>()); }"
    text = f"{TEXT}\n{host}\n{for_half}\n{plain}\n"
    request = cuda_host.Request(
        name="m", cuda=text, cpp="", functions=("run", "run_half", "go"), path="", arch=90, options=(), built=built
    )
    module = cuda_host.interpret(request)
    assert module is not None
    x = torch.zeros(8)
    module.run(x)
    module.run(x)
    module.run_half(x.half())
    module.go(x)
    first, again, half, bare = FakeModule.launches
    assert first[0] == again[0] != half[0] and "scale" in first[0] and "plain" in bare[0]
    assert first[1] == ("float* x", "float a", "int64_t n") and half[1][1] == "at::Half a"
    assert (first[2].grid, first[2].block, first[2].shared_bytes) == ((3, 2, 1), (64, 1, 1), 128)
    assert int(first[3][0]) == x.data_ptr() and first[3][1:] == [2, 8]
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Half"):
        module.run(x.half())


@needs_nvrtc
def test_a_kernel_that_takes_a_struct_is_left_to_the_real_builder() -> None:
    text = "struct P { int a; };\n__global__ void k(P p) {}\nvoid run(torch::Tensor x) { x.numel(); }\n"
    built = build(text, path="/nowhere/k.cu", arch=90)
    assert built.compiled.cubin is not None
    request = cuda_host.Request(
        name="m", cuda=text, cpp="", functions=("run",), path="", arch=90, options=(), built=built
    )
    assert cuda_host.interpret(request) is None
