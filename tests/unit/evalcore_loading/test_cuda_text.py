"""CUDA text by scanning: kernels, host code blanked, positions of strings, host code as Python."""

from __future__ import annotations

import re
import textwrap

import pytest

from evalcore.gpu.cuda_text import device_only, kernels, launches
from evalcore.gpu.literals import Spelling, strings

EXTENSION = textwrap.dedent('''\
    #include <torch/extension.h>
    #define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
    #define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
    #define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)
    #define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
    namespace {
    constexpr int BLOCK = 256;
    constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
    struct Pair { float a; __device__ float sum() const { return a; } };
    __constant__ float table[4] = {1, 2, 3, 4};
    template <typename scalar_t, int B>
    __global__ void __launch_bounds__(256) scale(const scalar_t* __restrict__ x, scalar_t* y, int64_t n, float a) {
      int i = blockIdx.x * B + threadIdx.x;  // a { in a comment
      if (i < n) y[i] = x[i] * static_cast<scalar_t>(a);
    }
    }
    __device__ inline float twice(float x) { return 2 * x; }
    extern "C" __global__ void fill(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] = twice(1.0f); }
    static inline int rows(const torch::Tensor& t) { return t.size(0); }
    torch::Tensor run(torch::Tensor x, double a);
    std::vector<torch::Tensor> run_all(const torch::Tensor& x, c10::optional<torch::Tensor> bias, double a = 2.0) {
      CHECK_INPUT(x);
      const at::cuda::OptionalCUDAGuard guard(device_of(x));
      const auto sizes = x.sizes();
      int64_t m = sizes[0], n = x.numel();
      auto y = torch::empty_like(x), z = torch::zeros({m, 2}, x.options().dtype(torch::kInt32));
      const dim3 grid(CEIL_DIV(n, BLOCK)), block(BLOCK);
      if (x.scalar_type() == torch::kHalf) { TORCH_CHECK(false, "no half, ", n, " elements"); } else if (m > 100) m = -7 / 2;
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", ([&] {
        scale<scalar_t, BLOCK><<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n, static_cast<float>(a));
      }));
      for (int i = 0; i < rows(x); ++i) { m += i; }
      fill<<<1, 32>>>((float*)y.data_ptr() + 2, (int)m);
      C10_CUDA_KERNEL_LAUNCH_CHECK();
      return {y, z};
    }
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &run_all, "a { in a string"); }
''')


def test_kernels_with_their_parameters_and_templates() -> None:
    scale, fill = kernels(EXTENSION)
    assert scale.name == "scale" and scale.template == ("typename scalar_t", "int B")
    assert scale.parameters == ("const scalar_t* __restrict__ x", "scalar_t* y", "int64_t n", "float a")
    assert fill.name == "fill" and fill.template == () and EXTENSION[fill.offset :].startswith("fill(")
    assert launches(EXTENSION) == [("scale", "<scalar_t, BLOCK>"), ("fill", "")]


def test_host_code_becomes_spaces_and_device_code_stays() -> None:
    device = device_only(EXTENSION)
    assert len(device) == len(EXTENSION)
    assert [len(line) for line in device.split("\n")] == [len(line) for line in EXTENSION.split("\n")]
    for gone in ("rows(", "run(", "run_all", "PYBIND11"):
        assert gone not in device
    for stays in ("ceil_div", "struct Pair", "table[4]", "scale(", "twice(", "fill(", "#include", "#define CEIL_DIV"):
        assert stays in device


def test_strings_know_where_each_character_was_spelled() -> None:
    text = "é = 1\nsource = ('a\\tb' \"\"\"c\r\né\\n{\"\"\" r'\\n;')\n"
    (spelled,) = strings(text, re.compile(";"))
    assert spelled.value == "a\tbc\né\n{\\n;"
    place = spelled.place("f.py", 1, 4)
    assert (place.line, place.column) == (2, 21)
    place = spelled.place("f.py", 2, 1)
    assert (place.line, place.column) == (3, 1)
    place = spelled.place("f.py", 3, 1)
    assert (place.line, place.column) == (3, 4)


def test_a_text_made_at_run_time_is_found_by_its_lines() -> None:
    text = 'N = 3\nsource = f"""\nvoid k() {{\n    int wrong = {N} + nothing;\n}}\n"""\nother = "x = y;"\n'
    made = "\nvoid k() {\n    int wrong = 3 + nothing;\n}\n"
    assert Spelling("f.py", text).place(made, 3, 5) is None  # the line differs, so nothing is claimed
    place = Spelling("f.py", text).place("void f();\nx = y;\n", 2, 5)
    assert place is not None and (place.line, place.column) == (7, 14)


torch = pytest.importorskip("torch")


class Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def __call__(self, *args: object) -> None:
        self.calls.append(args)


def host(text: str, *names: str) -> tuple[dict, Recorder]:
    from evalcore.gpu import host_runtime
    from evalcore.gpu.cuda_host import translate

    source, exported = translate(text, "", names)
    recorder = Recorder()
    scope = {"rt": host_runtime, "torch": torch, "launch": recorder}
    exec(source, scope)
    return {name: scope[f"f_{function}"] for name, function in exported.items()}, recorder


def test_host_code_runs_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalcore.gpu import host_runtime

    monkeypatch.setattr(host_runtime, "is_cuda", lambda value: True)
    functions, recorder = host(EXTENSION)
    x = torch.ones(3, 100)
    y, z = functions["scaled"](x, None)
    assert y.shape == x.shape and z.shape == (3, 2) and z.dtype == torch.int32
    (name, templates, grid, block, shared, args), fill = recorder.calls
    assert (name, templates, tuple(grid), tuple(block), shared) == ("scale", ["float", "256"], (2, 1, 1), (256, 1, 1), 0)
    assert int(args[0]) == x.data_ptr() and args[2] == 300 and args[3] == 2.0
    assert fill[0] == "fill" and int(fill[5][0]) == y.data_ptr() + 8 and fill[5][1] == 3 + 0 + 1 + 2
    with pytest.raises(RuntimeError, match="no half, 300 elements"):
        functions["scaled"](x.half(), None)
    with pytest.raises(RuntimeError, match='"scale" not implemented for'):
        functions["scaled"](x.int(), None)
    with pytest.raises(RuntimeError, match="x must be contiguous"):
        functions["scaled"](x.t(), None)
    with pytest.raises(TypeError):
        functions["scaled"](3, None)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("7 / 2", 3), ("-7 / 2", -3), ("-7 % 3", -1), ("7 / 2.0f", 3.5), ("(int)3.9f", 3), ("(n + 63) / 64 * 64", 128),
        ("std::min<int64_t>(n, 10)", 10), ("n > 64 && n < 66 ? 1 : 2", 1), ("1 << 4 | 3", 19), ("0x10 + 1u", 17),
        ("static_cast<int>(4294967297LL)", 1), ("!n", False), ("int(2.5) + sizes", 67), ("sqrtf(16.0f)", 4.0),
    ],
)
def test_arithmetic_as_in_c(expression: str, wanted: object) -> None:
    functions, _ = host(
        f"double f(int64_t n) {{ const int sizes = n; auto r = {expression}; return r; }}\n"
        "PYBIND11_MODULE(x, m) { m.def(\"f\", &f); }"
    )
    assert functions["f"](65) == wanted


@pytest.mark.parametrize(
    "body",
    [
        "switch (n) { case 1: return x; } return x;", "auto f = [&](int i) { return i; }; return x;",
        "k<<<1, 2>>>(x.packed_accessor32<float, 2>()); return x;", "cudaMalloc(&p, 4); return x;",
        "thrust::sort(p, p + n); return x;", "for (auto& s : sizes) {} return x;", "return x.mystery();",
        "int* p = &n; return x;", "undefined_name; return x;",
    ],
)
def test_what_is_not_understood_whole_is_left_to_a_compiler(body: str) -> None:
    from evalcore.gpu.host_tokens import Unsupported

    with pytest.raises(Unsupported):
        host(f"__global__ void k(float* p) {{}}\ntorch::Tensor f(torch::Tensor x, int n) {{ {body} }}", "f")
