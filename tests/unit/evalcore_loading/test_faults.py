"""What goes wrong is told on the line and column where the person wrote it."""

from __future__ import annotations

import loading_problems as problems
import pytest

pytest.importorskip("triton")

SCALE = '''\
import torch
import triton
import triton.language as tl


class Holder:
    @staticmethod
    @triton.jit
    def inner(x, factor):
        return x * factor


@triton.jit
def twice(v):
    return v + v


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    """é🚀"""; y = twice(x) * factor  # é
    tl.store(out_ptr + i, y, mask=mask)


def scale(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), factor, BLOCK=64)
    return out
'''


def problem_of(text: str):
    return problems.expression("/nowhere/s.py", text, "scale(x, 3.0)", "x * 6.0", "x = torch.rand(100)", names=("x",))


def body_crash(old: str, new: str) -> list:
    assert old in SCALE
    problem = problem_of(SCALE.replace(old, new))
    crash = problems.crash_of(problem)
    return [crash.kind, crash.message, problems.marked(problem, crash) if crash.place else None]


CASES = [
    ("twice(x) * factor", "twice(xx) * factor", "compile", "NameError: name 'xx' is not defined", "xx"),
    ("return v + v", "return v + w", "compile", "NameError: name 'w' is not defined", "w"),
    ("mask=mask)\n    \"", "mask=i < n + 1)\n    \"", "out_of_bounds", "1 of 64 lanes lie outside `x_ptr` (100 elements)",
     "tl.load(x_ptr + i, mask=i < n + 1)"),
    ("y, mask=mask", "y", "out_of_bounds", "28 of 64 lanes lie outside `out_ptr` (100 elements)",
     "tl.store(out_ptr + i, y)"),
    ("out = torch.empty_like(x)", "out = torch.empty_like(x, dtyp=1)", "exception", "unexpected keyword argument", None),
    ("    return out\n", "    return out[\n", "compile", "SyntaxError: '[' was never closed", "["),
    ("    return out\n", "    raise ValueError('no', 7)\n", "exception", "ValueError: ('no', 7)", None),
    ("    return out\n", "    import sys; sys.exit(3)\n", "exit", "the program called exit(3)", "sys.exit(3)"),
    ("def scale(x", "def scala(x", "exception", "NameError", None),
    ("import torch\n", "import torch, not_there_at_all\n", "exception", "ModuleNotFoundError", None),
    ("y = twice(x)", "y = tl.inline_asm_elementwise('', '', [x], tl.float32, True, 1)", "cannot_interpret", "inline_asm",
     None),
]


@pytest.mark.parametrize(("old", "new", "kind", "words", "marked"), CASES)
def test_place_and_words(interpreted, old, new, kind, words, marked):
    got_kind, message, got_marked = interpreted(body_crash, old, new)
    assert got_kind == kind, message
    assert words in message
    if marked is not None:
        assert got_marked == marked


def body_secret() -> list:
    import os

    os.environ["MY_API_KEY"] = "s3cr3t-value"
    told = "    import os; raise ValueError(os.environ['MY_API_KEY'] + ' hf_' + 'a' * 30)\n"
    text = SCALE.replace("    return out\n", told)
    crash = problems.crash_of(problem_of(text))
    return [crash.message, crash.detail]


def test_secrets_are_taken_out(interpreted):
    message, detail = interpreted(body_secret)
    assert "s3cr3t" not in message + detail and "hf_a" not in message + detail and "***" in message


def body_own_paths() -> str:
    text = SCALE.replace("    return out\n", "    import evalcore.gpu.faults as f; raise ValueError(f.__file__)\n")
    return problems.crash_of(problem_of(text)).message


def test_our_own_paths_are_taken_out(interpreted):
    assert interpreted(body_own_paths) == "ValueError: evalcore/gpu/faults.py"


def body_compiled(old: str, new: str) -> list:
    """What Triton's compiler raises without a GPU, through a launch under the fake driver."""
    import sys

    from evalcore.gpu import compile_faults, fake_cuda, importing
    from evalcore.gpu.faults import locate
    from evalcore.problem import Program, ProgramKind
    from evalcore.static.compile import Signature, compile_all

    text = SCALE.replace(old, new)
    compile_faults.watch_compiler()
    fake_cuda.install()
    project = importing.begin("/nowhere/s.py", "/nowhere", ())
    module = importing.run_main(project, text)
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32"}
    sys.stdout = sys.stderr  # Triton prints the PTX of a failure
    program = Program(path="/nowhere/s.py", text=text, entry="scale", kind=ProgramKind.FUNCTION)
    try:
        compile_all(module.scale_kernel, Signature(types=types, constants={"BLOCK": 64}), 90)
    except BaseException as error:
        crash = locate(error, program)
        place = crash.place
        return [crash.kind, crash.message, text.split("\n")[place.line - 1][place.column - 1 : place.end_column - 1]]
    return ["none", "", ""]


COMPILED = [
    ("twice(x) * factor", "twice(xx) * factor", "NameError: xx is not defined", "xx"),
    ("return v + v", "return v + tl.lod(v)", "has no attribute 'lod'", "tl.lod"),
    ("return v + v", "return v + tl.arange(0, 3)", "arange's range must be a power of 2", "tl.arange(0, 3)"),
    ("    mask = i < n", "    mask = {a: 1 for a in [1]}", "unsupported AST node type: DictComp", "{a: 1 for a in [1]}"),
    ("    mask = i < n", "    mask = i < n; tl.static_assert(BLOCK == 3, 'no')", "static_assert",
     "tl.static_assert(BLOCK == 3, 'no')"),
    ("y = twice(x)", "y = tl.inline_asm_elementwise('bogus $0, $1;', '=r,r', [x], tl.float32, True, 1)", "ptxas:",
     None),
]


@pytest.mark.parametrize(("old", "new", "words", "marked"), COMPILED)
def test_compiler_errors_find_their_line(compiled, old, new, words, marked):
    kind, message, got = compiled(body_compiled, old, new)
    assert kind == "compile" and words in message, message
    if marked is not None:
        assert got == marked
    else:
        assert "inline_asm" in got


def test_out_of_resources_says_needed_and_limit():
    from triton.runtime.errors import OutOfResources

    from evalcore.gpu.faults import locate
    from evalcore.problem import Program, ProgramKind

    program = Program(path="/nowhere/s.py", text="", entry="f", kind=ProgramKind.FUNCTION)
    crash = locate(OutOfResources(300000, 232448, "shared memory"), program)
    assert crash.kind == "out_of_resources"
    assert "needs 300000 bytes" in crash.message and "has 232448 bytes" in crash.message


HOSTILE = {
    "a message that raises": "class E(Exception):\n    def __str__(self): raise ValueError('no')\n",
    "a message of megabytes": "class E(Exception):\n    def __str__(self): return 'x' * 10**7\n",
    "a base exception": "class E(BaseException): pass\n",
    "a name of ours": "class CannotInterpret(Exception): pass\nclass OutOfBounds(Exception): pass\nE = CannotInterpret\n",
    "a cause that is itself": "class E(Exception):\n    @property\n    def __cause__(self): return self\n",
    "a node that is none": "class CompilationError(Exception):\n    node = src = error_message = 3\nE = CompilationError\n",
    "a keyboard interrupt": "E = KeyboardInterrupt\n",
}


def body_hostile(definition: str) -> list:
    text = SCALE.replace("def scale(", f"{definition}\n\ndef scale(").replace("    return out\n", "    raise E()\n")
    crash = problems.crash_of(problem_of(text))
    return [crash.kind, len(crash.message), len(crash.detail)]


@pytest.mark.parametrize("definition", HOSTILE.values(), ids=HOSTILE)
def test_hostile_exceptions_are_told_all_the_same(interpreted, definition):
    kind, message, detail = interpreted(body_hostile, definition)
    assert kind in {"exception", "compile"} and message <= 2000 and detail <= 4096


def body_helper(folder: str) -> list:
    import os

    helper = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef twice(v):\n    return v + vv\n"
    text = SCALE.replace("@triton.jit\ndef twice(v):\n    return v + v\n", "").replace(
        "import torch\n", "import torch\nfrom helper import twice\n"
    )
    path = os.path.join(folder, "s.py")
    problem = problems.expression(
        path, text, "scale(x, 3.0)", "x * 6.0", "x = torch.rand(100)", names=("x",), project_root=folder,
        overlays=((os.path.join(folder, "helper.py"), helper),),
    )
    crash = problems.crash_of(problem)
    return [os.path.basename(crash.place.path), crash.place.line, crash.place.column, crash.message]


def test_an_error_in_a_kernel_of_another_file_is_placed_there(interpreted, tmp_path):
    assert interpreted(body_helper, str(tmp_path)) == ["helper.py", 6, 16, "NameError: name 'vv' is not defined"]
