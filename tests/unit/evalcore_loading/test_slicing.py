"""The slice keeps what is needed, where it stood, and drops what only runs."""

from __future__ import annotations

import ast
import textwrap

import pytest

from evalcore.slicing import bound_names, module_dependencies, override_constants, slice_module

TUTORIAL = textwrap.dedent('''\
    """A module."""
    import torch
    import triton
    try:
        import apex
        HAS_APEX = True
    except ModuleNotFoundError:
        HAS_APEX = False
        print("no apex")
    DEVICE = triton.runtime.driver.active.get_active_torch_device()
    torch.backends.cuda.matmul.allow_tf32 = True
    configs = [1]
    if HAS_APEX: configs += [2]; print("é", configs)
    for i in range(3):
        configs.append(i)
    @triton.autotune(configs)
    @triton.jit
    def kernel(x):
        return x
    def add(x, y):
        out = torch.empty_like(x, device=DEVICE)
        kernel[(1,)](x)
        return out
    x = torch.rand(98432, device=DEVICE)
    y = [
        x,  # ü
    ]
    out = add(x, y)
    assert torch.allclose(out, x), f"{out}"
    torch.testing.assert_close(out, x)
    configs = []
    for N in [1, 2]:
        configs.append(N)
    @triton.testing.perf_report(configs)
    def benchmark(size):
        return add(size, size)
    benchmark.run(print_data=True)
    if __name__ == "__main__":
        add(x, y)
''')


def kept(text: str, names: list[str] | None, **options: bool) -> list[str]:
    return [ast.unparse(node).split("\n")[0] for node in ast.parse(slice_module(text, names, **options)).body]


def test_a_wrapper_brings_its_kernel_its_constants_and_their_augmentations() -> None:
    lines = kept(TUTORIAL, ["add"])
    assert "def add(x, y):" in lines and "@triton.autotune(configs)" in lines
    assert "configs = [1]" in lines and "for i in range(3):" in lines and "if HAS_APEX:" in lines
    assert any(line.startswith("DEVICE") for line in lines)
    assert "torch.backends.cuda.matmul.allow_tf32 = True" in lines


def test_benchmarks_asserts_and_module_level_tensors_go() -> None:
    text = slice_module(TUTORIAL, ["add"])
    assert "rand" not in text and "assert" not in text and "benchmark" not in text and "__main__" not in text
    assert "configs = []" not in text and "[1, 2]" not in text
    assert 'print("no apex")' not in text


def test_a_local_name_of_a_function_is_not_the_global_of_that_name() -> None:
    assert "x = torch.rand" not in slice_module(TUTORIAL, ["add"])


def test_lines_and_columns_stay() -> None:
    sliced = slice_module(TUTORIAL, ["add"])
    before, after = TUTORIAL.split("\n"), sliced.split("\n")
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert len(old) == len(new)
        assert all(o == n or n in " 0" for o, n in zip(old, new, strict=True))


def test_keep_none_keeps_every_definition() -> None:
    lines = kept(TUTORIAL, None)
    assert "def benchmark(size):" in "\n".join(lines) or any("perf_report" in line for line in lines)


def test_gentle_drops_only_checks_and_runs() -> None:
    text = slice_module(TUTORIAL, gentle=True)
    assert "torch.rand" in text and "out = add" in text
    assert "benchmark.run" not in text and "assert" not in text and "__main__" not in text


def test_lean_drops_imports_that_nothing_needs() -> None:
    text = slice_module("import os\nimport torch\nfrom x import *\ndef f():\n    return torch.ones(1)\n", ["f"], lean=True)
    assert "import torch" in text and "import os" not in text and "from x import *" in text


@pytest.mark.parametrize(
    "text",
    [
        "a = 1; b = 2; print(a)\ndef f(): return b\n",
        "if True: print(1)\nelse: pass\ndef f(): return 1\n",
        "try:\n    run()\nfinally:\n    print(2)\ndef f(): return 1\n",
        "for i in x: f(i)\ndef f(): return 1\n",
        "with a() as b:\n    NAME = b\ndef f(): return NAME\n",
        "\ufeffdef f(): return 1\n",
        "def f(): return 1\r\nprint(f())\r\n",
        "match 1:\n    case 1:\n        print(1)\ndef f(): return 1\n",
    ],
)
def test_the_slice_still_compiles(text: str) -> None:
    compile(slice_module(text, ["f"]), "f.py", "exec")
    compile(slice_module(text, None), "f.py", "exec")


def test_what_an_with_or_a_guard_binds_is_kept() -> None:
    assert "with a() as b:" in slice_module("with a() as b:\n    NAME = b\ndef f(): return NAME\n", ["f"])
    text = slice_module("import os\nif os.name == 'nt':\n    N = 1\nelse:\n    N = 2\ndef f(): return N\n", ["f"])
    assert "N = 1" in text and "N = 2" in text


def test_a_syntax_error_passes_through() -> None:
    with pytest.raises(SyntaxError):
        slice_module("def f(:\n", None)
    with pytest.raises(SyntaxError):
        slice_module("x = 1\0", None)


def test_constants_are_rewritten_where_they_stand() -> None:
    text = "M = 2 ** 12\nN, K = 16, 8 * 4\nA = B = 3\nC: int = 5\nD = f(2)\ndef g():\n    M = 1\n"
    made = override_constants(text, {"M": 7, "K": 9, "B": 1, "C": 2, "D": 4})
    assert made == "M = 7\nN, K = 16, 9\nA = B = 1\nC: int = 2\nD = f(2)\ndef g():\n    M = 1\n"
    assert override_constants("M = (", {"M": 1}) == "M = ("


def test_bound_names() -> None:
    assert {"add", "x", "configs", "HAS_APEX", "torch"} <= bound_names(TUTORIAL)


def test_dependencies_follow_relative_and_absolute_imports(tmp_path) -> None:
    package = tmp_path / "kern"
    (package / "sub").mkdir(parents=True)
    for name in ("__init__", "a", "b", "sub/__init__", "sub/c"):
        (package / f"{name}.py").write_text("")
    (package / "a.py").write_text("from . import b\nfrom .sub.c import x\nimport numpy\n")
    (package / "b.py").write_text("import kern.a\n")
    (tmp_path / "helper.py").write_text("import os\n")
    text = "from kern.a import f\nimport helper, torch\n"
    found = module_dependencies(text, str(tmp_path / "main.py"), str(tmp_path))
    names = {path[len(str(tmp_path)) + 1 :] for path in found}
    assert names == {"kern/__init__.py", "kern/a.py", "kern/b.py", "kern/sub/__init__.py", "kern/sub/c.py", "helper.py"}
