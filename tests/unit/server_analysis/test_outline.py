"""What the outline sees: kernels of all kinds and places, launches, wrappers, and spans that fit the bytes."""

from __future__ import annotations

import pickle
import random
import time

import pytest

from server.analysis.check import analyse, analyse_parsed
from server.analysis.outline import Outline, Parsed, outline


def seen(text: str, path: str = "kernel.py") -> Outline:
    return analyse(path, text).outline


def names(text: str, path: str = "kernel.py") -> list[str]:
    return [kernel.qualname for kernel in seen(text, path).kernels]


def cut(text: str, span: object) -> str:
    return text.encode()[span.start : span.end].decode()  # type: ignore[attr-defined]


KERNEL = """\
@triton.autotune(configs=[], key=["n"])
@triton.heuristics({"EVEN": lambda args: True})
@triton.jit
def add(x_ptr, y_ptr: tl.tensor, n, BLOCK: tl.constexpr = 128, EVEN: "tl.constexpr" = True):
    pass
"""


def test_a_kernel_with_all_decorators() -> None:
    kernel = seen(KERNEL).kernels[0]
    assert [each.kind for each in kernel.decorators] == ["autotune", "heuristics", "jit"]
    assert [each.name for each in kernel.params] == ["x_ptr", "y_ptr", "n", "BLOCK", "EVEN"]
    assert [each.constexpr for each in kernel.params][:4] == [False, False, False, True]
    assert kernel.params[3].default == "128"
    assert cut(KERNEL, kernel.span) == KERNEL.rstrip("\n")
    assert cut(KERNEL, kernel.name_span) == "add"
    assert cut(KERNEL, kernel.signature_span).startswith("def add(") and cut(KERNEL, kernel.signature_span).endswith(
        ":"
    )


def test_nested_kernels_and_kernels_in_classes() -> None:
    text = """
class Model:
    @staticmethod
    @triton.jit
    def inner(x):
        pass

    def forward(self, x):
        @triton.jit
        def local(y):
            pass
        self.inner[(1,)](x)
        local[(2,)](x)


def factory():
    @triton.jit
    def made(x):
        pass
    return made
"""
    assert names(text) == ["Model.inner", "Model.forward.local", "factory.made"]
    wrappers = seen(text).wrappers
    assert [(each.qualname, each.kernels) for each in wrappers] == [("Model.forward", ("inner", "local"))]


def test_unusual_decorators() -> None:
    text = (
        "@library(\n    'x', (1, 2))\n@triton.jit(\n    do_not_specialize=['n'])\n# a comment\n@other\ndef k(x): pass\n"
    )
    kernel = seen(text).kernels[0]
    assert [each.kind for each in kernel.decorators] == ["other", "jit", "other"]
    assert cut(text, kernel.span) == text.rstrip("\n")


def test_launches_in_all_forms() -> None:
    text = (
        KERNEL
        + """
def run(x, y):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    add[grid](x, y, x.numel(), BLOCK=256)
    add[(1, 2)](x, y, 3)
    compiled = add.warmup(x, y, 3, grid=(1,))
    compiled[(4,)](x, y)

add[1,](1, 2, 3)
"""
    )
    launches = seen(text).kernels[0].launches
    assert [(each.owner, each.grid) for each in launches] == [
        ("run", "grid"),
        ("run", "(1, 2)"),
        ("run", ""),
        ("", "1"),
    ]
    assert launches[0].args == ("x", "y", "x.numel()")
    assert launches[0].keywords == (("BLOCK", "256"),)
    assert cut(text, launches[0].span) == "add[grid](x, y, x.numel(), BLOCK=256)"


def test_imports() -> None:
    text = "import torch, triton.language as tl\nfrom .ops import softmax\nif x:\n    import numpy as np\n"
    assert seen(text).imports == ("torch", "triton.language", ".ops", "numpy")


CUDA = """\
#include <torch/extension.h>
#define CDIV(a, b) (((a) + (b) - 1) / (b))
namespace ops {

template <typename scalar_t, int N>
__global__ void __launch_bounds__(CDIV(256, N), 2)
scale_kernel(const scalar_t* __restrict__ x, scalar_t* out, size_t n = 0) {
    // __global__ void commented(int x) {}
    if (n) { out[0] = x[0]; }
}

extern "C" __global__ void plain(float* x) { x[0] = '}'; }

static __device__ float helper(float v) { return v; }

void launch(float* x) {
    scale_kernel<float, 4><<<dim3(1), 256, 0, stream>>>(x, x, 1);
    plain<<<1, 1>>>(x);
}

}  // namespace ops
"""


def test_cuda_file_with_templates_macros_and_bounds() -> None:
    found = seen(CUDA, "k.cu")
    assert [each.name for each in found.kernels] == ["scale_kernel", "plain"]
    scale, plain = found.kernels
    assert cut(CUDA, scale.span).startswith("template <typename scalar_t")
    assert cut(CUDA, scale.span).endswith("out[0] = x[0]; }\n}")
    assert cut(CUDA, plain.span).startswith('extern "C" __global__')
    assert [each.name for each in scale.params] == ["x", "out", "n"]
    assert [(each.owner, each.args) for each in scale.launches] == [("launch", ("x", "x", "1"))]
    assert found.wrappers[0].kernels == ("scale_kernel", "plain")
    assert found.imports == ("torch/extension.h",)


def test_half_typed_cuda() -> None:
    text = "__global__ void one(float* x) {\n    x[0] = 1;\n\n"
    text += "__global__ void two(float* y) { y[0] = 2; }\n\n__global__ void three(floa"
    found = seen(text, "k.cu").kernels
    assert [each.name for each in found] == ["one", "two", "three"]
    assert [each.complete for each in found] == [False, True, False]


INLINE = '''\
name = "🚀 日本"; source = {prefix}"""
__global__ void gelu(const float* x, float* out, int n) {{
    printf("%d\\n", n);
    out[0] = x[0];
}}
void run(torch::Tensor x) {{ gelu<<<1, 256>>>(x, x, 1); }}
{end}
module = load_inline(name="m", cpp_sources="", cuda_sources=source, functions=["run"])
'''


@pytest.mark.parametrize("prefix", ["", "r", "f", "rf", "R"])
def test_cuda_in_a_python_string_keeps_its_place(prefix: str) -> None:
    text = INLINE.format(prefix=prefix, end='"""')
    if "f" in prefix:
        text = text.replace("{", "{{").replace("}", "}}").replace("printf", "{fast}printf")
    kernel = seen(text).kernels[0]
    assert (kernel.name, kernel.language) == ("gelu", "cuda")
    assert cut(text, kernel.name_span) == "gelu"
    assert cut(text, kernel.params[0].span) == "x"
    assert kernel.origin is not None
    assert (kernel.origin.variable, kernel.origin.maker, kernel.origin.terminated) == ("source", "load_inline", True)
    assert kernel.origin.prefix == prefix.lower()
    assert kernel.launches and kernel.launches[0].owner == "run"


def test_cuda_in_an_unterminated_string() -> None:
    found = seen(INLINE.format(prefix="r", end="") + "\n@triton.jit\ndef after(x):\n    pass\n").kernels
    assert [each.name for each in found] == ["gelu", "after"]
    assert found[0].origin is not None and not found[0].origin.terminated


@pytest.mark.parametrize(
    "call", ["cp.RawKernel({}, 'k')", "torch.cuda._compile_kernel({}, 'k')", "cp.RawModule(code={})"]
)
def test_cuda_passed_directly(call: str) -> None:
    text = "k = " + call.format("r'''extern \"C\" __global__ void k(float* x) {}'''") + "\n"
    kernel = seen(text).kernels[0]
    assert kernel.name == "k"
    assert kernel.origin is not None and kernel.origin.maker == call.split("(")[0].split(".")[-1]


@pytest.mark.parametrize(
    "text", ["", "\n", "\ufeff", "\r\n\r", "'''", '"""', "\x00", "\udcff", "(", "\\", "{" * 3000, "(" * 5000]
)
def test_texts_that_are_no_programs(text: str) -> None:
    for path in ("a.py", "a.cu", "a.ipynb", "a"):
        assert analyse(path, text).outline.kernels == ()


def test_line_ends_bom_and_wide_characters() -> None:
    for end in ("\n", "\r\n", "\r"):
        text = "\ufeff" + ("# 日本 🚀\n" + KERNEL).replace("\n", end)
        kernel = seen(text).kernels[0]
        assert cut(text, kernel.name_span) == "add"
        assert len(kernel.decorators) == 3


def test_line_separators_that_editors_do_not_count() -> None:
    text = 's = "a\u2028b\x0cc"\n' + KERNEL
    assert cut(text, seen(text).kernels[0].name_span) == "add"


def test_edits_give_what_a_fresh_reading_gives() -> None:
    """A few hundred random edits of all kinds: the kept form never drifts from the text."""
    chance = random.Random(7)
    text = KERNEL + "\n\nx = 1\n\n" + INLINE.format(prefix="r", end='"""') + "\n" + KERNEL.replace("add", "sub")
    pieces = [
        "x",
        "(",
        '"',
        '"""',
        "'''",
        "\n",
        "\n\n",
        "@triton.jit\n",
        "def f(x):\n    pass\n",
        "#",
        "é🚀",
        "{",
        "}",
        "/*",
        "\\",
    ]
    parsed = Parsed("k.py", text)
    for _step in range(300):
        data = parsed.data
        start = chance.randrange(len(data) + 1)
        stop = min(len(data), start + chance.choice([0, 0, 0, 1, 7, 40]))
        while start < len(data) and data[start] & 0xC0 == 0x80:
            start += 1
        while stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop += 1
        parsed.edit(start, max(start, stop), chance.choice(pieces))
        whole = parsed.data.decode()
        assert outline(parsed) == outline(Parsed("k.py", whole)), whole
        assert analyse_parsed(parsed).findings == analyse("k.py", whole).findings
        if len(whole) > 3000:
            parsed.replace(text)


def test_cuda_edits_give_what_a_fresh_reading_gives() -> None:
    chance = random.Random(11)
    parsed = Parsed("k.cu", CUDA)
    pieces = [
        "x",
        "(",
        '"',
        "{",
        "}",
        ";",
        "\n",
        "/*",
        "*/",
        "//",
        "__global__ void f(int a) {}\n",
        "#define A 1\n",
        'R"(',
    ]
    for _step in range(200):
        start = chance.randrange(len(parsed.data) + 1)
        parsed.edit(start, min(len(parsed.data), start + chance.choice([0, 0, 1, 9])), chance.choice(pieces))
        assert outline(parsed) == outline(Parsed("k.cu", parsed.data.decode())), parsed.data.decode()
        if len(parsed.data) > 3000:
            parsed.replace(CUDA)


def test_replace_is_an_edit() -> None:
    parsed = Parsed("k.py", KERNEL)
    parsed.replace(KERNEL.replace("add", "plus"))
    assert [each.name for each in outline(parsed).kernels] == ["plus"]
    parsed.replace("")
    assert outline(parsed).kernels == ()


def test_an_edit_reads_only_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    from server.analysis import outline as module

    text = "\n\n".join(KERNEL.replace("add", f"add_{index}") for index in range(50))
    parsed = Parsed("k.py", text)
    analyse_parsed(parsed)
    count = 0
    real = module.read_piece

    def counted(data: bytes) -> object:
        nonlocal count
        count += 1
        return real(data)

    monkeypatch.setattr(module, "read_piece", counted)
    place = parsed.data.index(b"add_25")
    parsed.edit(place, place, "x")
    assert any(each.name == "xadd_25" for each in analyse_parsed(parsed).outline.kernels)
    assert count == 1


@pytest.mark.parametrize(
    "body",
    [
        "x = " + " + ".join(["a"] * 4000),
        "x = " + "f(" * 2000 + ")" * 2000,
        "x = a" + ".b" * 4000,
        "x = " + "[" * 900 + "]" * 900,
        "if x:\n" + "\n".join("    " * (depth + 2) + "if x:" for depth in range(150)),
        "tl.store(x + " + " + ".join(["tl.arange(0, 8)"] * 2000) + ", 1)",
    ],
    ids=["sum", "calls", "attributes", "lists", "blocks", "offsets"],
)
def test_deep_nesting_is_no_exception(body: str) -> None:
    found = analyse("k.py", f"@triton.jit\ndef k(x, a):\n    {body}\n\n\n@triton.jit\ndef after(x):\n    pass\n")
    assert "after" in [each.name for each in found.outline.kernels]


QUOTES = ["x = 1\n" * 80_000, "x = " + "1 + " * 50_000 + "1\n", '"' * 400_000, "'" * 299_997, "(" * 300_000]
BRACES = ["__global__ void k(int a) {}\n" * 5_000, "__global__ " * 30_000, "/*" * 200_000, "{" * 300_000]


@pytest.mark.parametrize(("path", "text"), [*(("a.py", each) for each in QUOTES), *(("a.cu", each) for each in BRACES)])
def test_large_texts_are_read_in_bounded_time(path: str, text: str) -> None:
    """Half a megabyte of plain lines, of one line, of quotes, of CUDA: nothing is quadratic."""
    begin = time.process_time()
    analyse(path, text)
    assert time.process_time() - begin < 15


def test_findings_can_cross_a_process() -> None:
    found = analyse("k.py", "@triton.jit\ndef k(x):\n    i = tl.arange(0, 96)\n").findings
    assert pickle.loads(pickle.dumps(found)) == found
