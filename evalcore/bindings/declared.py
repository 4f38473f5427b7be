"""Owns building a Problem from what a person declared in words: a comment or a table of odyssey.toml. Runs nothing."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import PurePath

from evalcore.bindings.binding import Binding, Reader, Source, parse, stores
from evalcore.bindings.calls import HostMap, flat_module, global_names, host_map
from evalcore.bindings.kernelbench import size_constants
from evalcore.bindings.root import project_root
from evalcore.bindings.sizes import make_cases, name_sizes, wrapper_hints
from evalcore.jobs import Refusal
from evalcore.problem import (
    Case,
    CudaLaunch,
    Inputs,
    InputsKind,
    Problem,
    Program,
    ProgramKind,
    Tolerance,
)

_PLACE = re.compile(r"^(?P<path>[^\s()]+\.py)::?(?P<name>\w+)$")
_TORCH = "import torch\nimport torch.nn.functional as F\n"


@dataclass(slots=True, kw_only=True)
class Declaration:
    """What a person wrote, key by key; '' or empty where nothing was written."""

    where: str
    """For a person: 'the comment in line 12', 'odyssey.toml, table 2'."""
    line: int = 0
    reference: str = ""
    inputs: str = ""
    candidate: str = ""
    kernel: str = ""
    tolerance: tuple[float, float] | None = None
    """(atol, rtol)."""
    sizes: list[dict[str, int]] = field(default_factory=list)
    backward: bool = False
    grid: str = ""
    block: str = ""
    args: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    shared: str = "0"
    options: tuple[str, ...] = ()


@dataclass(slots=True)
class _Setting:
    """The pieces that a declaration is resolved against."""

    declared: Declaration
    path: str
    text: str
    read: Reader
    module: Source
    """The module in which reference and inputs are looked up."""
    hosts: HostMap
    """Its map."""
    names: list[str] = field(default_factory=list)
    """Input names in order, where they are known."""


def build(declared: Declaration, path: str, text: str, *, read: Reader, format: str) -> Binding | Refusal:
    """The binding that a declaration asks for, or a refusal that names the word which does not fit."""
    if not declared.reference:
        return _misfit(declared, "names no reference", "Add `reference=<function or torch expression>`.")
    found = _setting(declared, path, text, read)
    if isinstance(found, Refusal):
        return found
    inputs = _inputs(found)
    if isinstance(inputs, Refusal):
        return inputs
    candidate = _cuda_candidate(found) if path.endswith((".cu", ".cuh")) else _candidate(found)
    if isinstance(candidate, Refusal):
        return candidate
    program, kernels, wrapper = candidate
    settings = [dict(each.items()) for each in declared.sizes]
    constants = dict(inputs.constants)
    problem = Problem(
        id=f"{PurePath(path).name}::{wrapper}",
        format=format,
        reference=_reference(found),
        candidate=program,
        inputs=inputs,
        cases=make_cases(constants, settings) if constants else (Case(name="as given"),),
        tolerance=_tolerance(declared),
        kernels=kernels,
        project_root=project_root(path, read),
        backward=declared.backward,
        reference_line=declared.line,
        notes=(f"bound by {declared.where}",),
    )
    return Binding(
        problem=problem, kernels=_all_kernels(found, program, kernels), wrapper=wrapper, evidence=declared.where,
        line=declared.line,
    )  # fmt: skip


def _misfit(declared: Declaration, what: str, remedy: str) -> Refusal:
    return Refusal(code="bad_declaration", message=f"{declared.where} {what}", remedy=remedy)


def _setting(declared: Declaration, path: str, text: str, read: Reader) -> _Setting | Refusal:
    """Find the module of reference and inputs: a named file, the file itself, or plain torch for a .cu."""
    places = [match for word in (declared.reference, declared.inputs) if (match := _PLACE.match(word))]
    files = {match["path"] for match in places}
    if len(files) > 1:
        return _misfit(declared, "names two files", "Put reference and inputs into one file.")
    if files:
        name = files.pop()
        other = _near(name, path, read)
        if other is None:
            return _misfit(declared, f"names {name}, which is not there", "Give the path relative to this file.")
        module = parse(*other)
    elif path.endswith((".cu", ".cuh")):
        module = parse(str(PurePath(path).with_suffix(".py")), _TORCH)
    else:
        module = parse(path, text)
    if isinstance(module, Refusal):
        return module
    return _Setting(declared, path, text, read, module, host_map(module.tree))


def _near(name: str, path: str, read: Reader) -> tuple[str, str] | None:
    """(absolute path, text) of a file named relative to the kernel's file or to the project's root."""
    for folder in (PurePath(path).parent, PurePath(project_root(path, read))):
        full = str(folder / name)
        found = read(full)
        if found is not None:
            return full, found
    return None


def _word(value: str) -> str:
    """A function's name behind 'file.py:name' or plain."""
    match = _PLACE.match(value)
    return match["name"] if match else value


def _inputs(found: _Setting) -> Inputs | Refusal:
    declared = found.declared
    word = _word(declared.inputs)
    if not word:
        word = "get_inputs"
        if word not in found.hosts.functions:
            return _misfit(declared, "names no inputs", "Add `inputs=torch.randn(1024, 1024, device='cuda')`.")
    if word in found.hosts.functions:
        return _function_inputs(found, word)
    if word.isidentifier():
        return _misfit(declared, f"names inputs={word}, which is no function there", "Name a function or write a call.")
    return _written_inputs(found, word)


def _function_inputs(found: _Setting, name: str) -> Inputs:
    constants, batch = size_constants(found.module, name, "get_init_inputs")
    keys = returned_names(found.hosts.functions[name])
    found.names = keys or _parameters(found)
    if keys or (found.names and found.path.endswith((".cu", ".cuh"))):
        return Inputs(
            kind=InputsKind.STATEMENTS,
            statements=_unpacked(name, found.names, keyed=bool(keys)),
            names=tuple(found.names),
            constants=constants,
            batch_like=batch,
        )
    init = "get_init_inputs" if "get_init_inputs" in found.hosts.functions else None
    return Inputs(kind=InputsKind.GET_INPUTS, function=name, init_function=init, constants=constants, batch_like=batch)


def _unpacked(function: str, names: list[str], *, keyed: bool) -> str:
    """Statements that give the values of an inputs function their names."""
    if keyed:
        lines = [f"odyssey_inputs = {function}()"]
        return "\n".join([*lines, *(f'{name} = odyssey_inputs["{name}"]' for name in names)])
    return f"{', '.join(names)}, = {function}()" if len(names) == 1 else f"{', '.join(names)} = {function}()"


def returned_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The keys where a function returns a dict that is written out, in order."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
            return [key for key in keys if isinstance(key, str)]
        if (
            isinstance(node, ast.Return)
            and isinstance(node.value, ast.Call)
            and getattr(node.value.func, "id", "") == "dict"
        ):
            return [word.arg for word in node.value.keywords if word.arg]
    return []


def _parameters(found: _Setting) -> list[str]:
    """Parameter names of the reference function, else of the candidate: names for inputs that have none."""
    function = found.hosts.functions.get(_word(found.declared.reference))
    if function is None and found.module.path == found.path:
        wrapper = found.declared.candidate or _wrapper_near(found.hosts, found.declared)
        function = found.hosts.functions.get(wrapper)
    if function is None:
        return []
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg != "self"]


def _written_inputs(found: _Setting, text: str) -> Inputs | Refusal:
    """`x=torch.randn(M, N), torch.ones(N)` as statements with names."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError as error:
        return _misfit(
            found.declared, f"has inputs that are not Python ({error.msg})", "Write `inputs=x=torch.randn(8, 8)`."
        )
    assert isinstance(call, ast.Call)
    known = _parameters(found)
    names = [known[index] if index < len(known) else f"x{index}" for index in range(len(call.args))]
    pairs = [*zip(names, call.args, strict=False), *((word.arg, word.value) for word in call.keywords if word.arg)]
    found.names = [name for name, _value in pairs]
    first = found.declared.sizes[0] if found.declared.sizes else {}
    statements = [ast.parse(f"{name} = {value}").body[0] for name, value in first.items()]
    statements += [ast.parse(f"{name} = {ast.unparse(value)}").body[0] for name, value in pairs]
    taken = {name for each in flat_module(found.module.tree.body) for name in stores(each)} | set(found.names)
    candidate = _expression(found.declared.candidate)
    hints = wrapper_hints(candidate, found.hosts) if candidate is not None else {}
    sizes = name_sizes(statements, hints, taken - set(first))
    return Inputs(
        kind=InputsKind.STATEMENTS,
        statements=sizes.text,
        names=tuple(found.names),
        constants=tuple(sizes.constants.items()),
        batch_like=sizes.batch_like,
    )


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body if text else None
    except SyntaxError:
        return None


def _reference(found: _Setting) -> Program:
    """A function or class of the module, else an expression over the input names."""
    word = _word(found.declared.reference)
    path, text = found.module.path, found.module.text
    if word in found.hosts.functions:
        return Program(path=path, text=text, entry=word, kind=ProgramKind.FUNCTION)
    if word in found.hosts.classes:
        return Program(path=path, text=text, entry=word, kind=ProgramKind.MODULE)
    call = _called(word, found.names)
    if found.names:
        return Program(path=path, text=text, entry="", kind=ProgramKind.EXPRESSION, call=call)
    function = f"def odyssey_reference(*inputs):\n    return {call}\n"
    return Program(
        path=path, text=f"{text.rstrip()}\n\n\n{function}", entry="odyssey_reference", kind=ProgramKind.FUNCTION
    )


def _called(word: str, names: list[str]) -> str:
    """`torch.softmax` becomes a call with the inputs; an expression stays as it is written."""
    node = _expression(word)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return f"{word}({', '.join(names) if names else '*inputs'})"
    return word


def _candidate(found: _Setting) -> tuple[Program, tuple[str, ...], str] | Refusal:
    """The candidate in a Python file: the named function, class or expression, else the nearby kernel's wrapper."""
    own = parse(found.path, found.text)
    if isinstance(own, Refusal):
        return own
    hosts = found.hosts if found.module.path == found.path else host_map(own.tree)
    word = found.declared.candidate or _wrapper_near(hosts, found.declared)
    if not word:
        return _misfit(found.declared, "finds no function that launches a kernel", "Add `candidate=<function>`.")
    kind, entry, call = ProgramKind.FUNCTION, word, ""
    if word in hosts.classes:
        kind = ProgramKind.MODULE
    elif not word.isidentifier():
        kind, entry, call = ProgramKind.EXPRESSION, "", word
        if not found.names:
            return _misfit(
                found.declared, "has a candidate expression but unnamed inputs", "Name them: `inputs=x=...`."
            )
    node = _expression(word)
    reached = hosts.reach(node) if node is not None else set()
    if word.isidentifier() and word not in hosts.functions and word not in hosts.classes and word not in hosts.mentions:
        return _misfit(found.declared, f"names candidate={word}, which is not there", "Name a function of this file.")
    name = word if word.isidentifier() else _callee(node)
    program = Program(path=found.path, text=found.text, entry=entry, kind=kind, call=call)
    return program, hosts.launched(reached) if reached else (), name


def _callee(node: ast.expr | None) -> str:
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id
        node = node.func if isinstance(node, ast.Call) else node.value
    return "candidate"


def _wrapper_near(hosts: HostMap, declared: Declaration) -> str:
    """The function that launches the named kernel, or the first kernel at or below the declaration."""
    kernel = declared.kernel
    if not kernel:
        below = [each for each in hosts.kernels.values() if each.line >= declared.line]
        ordered = sorted(below or hosts.kernels.values(), key=lambda each: each.line)
        kernel = ordered[0].name if ordered else ""
    reference = _word(declared.reference)
    for name in hosts.functions:
        if name != reference and kernel in hosts.mentions.get(name, ()):
            return name
    return ""


def _cuda_candidate(found: _Setting) -> tuple[Program, tuple[str, ...], str] | Refusal:
    """The __global__ function of a .cu file with its launch."""
    declared = found.declared
    names = global_names(found.text)
    kernel = declared.kernel or declared.candidate or _global_below(found.text, declared.line, names)
    if kernel not in names:
        return _misfit(declared, f"finds no __global__ function {kernel}".rstrip(), "Add `kernel=<name>`.")
    missing = [word for word in ("grid", "block", "args", "outputs") if not getattr(declared, word)]
    if missing:
        remedy = "e.g. `grid=((n + 255) // 256,) block=(256,) args=(x, out, n) outputs=out`"
        return _misfit(declared, f"does not say {', '.join(missing)}", remedy)
    launch = CudaLaunch(
        grid=declared.grid, block=declared.block, args=declared.args, outputs=declared.outputs,
        shared_bytes=declared.shared, options=declared.options,
    )  # fmt: skip
    program = Program(path=found.path, text=found.text, entry=kernel, kind=ProgramKind.CUDA_KERNEL, launch=launch)
    return program, (kernel,), kernel


def _global_below(text: str, line: int, names: list[str]) -> str:
    """The first __global__ function below a line, else the first of the file."""
    below = global_names("\n".join(text.splitlines()[line:]))
    return next((name for name in below if name in names), names[0] if names else "")


def _all_kernels(found: _Setting, program: Program, launched: tuple[str, ...]) -> tuple[str, ...]:
    if program.kind is ProgramKind.CUDA_KERNEL:
        return launched
    own = parse(found.path, found.text)
    if isinstance(own, Refusal):
        return launched
    hosts = host_map(own.tree)
    node = _expression(program.call or program.entry)
    return hosts.in_order(hosts.reach(node) | set(launched)) if node is not None else launched


def _tolerance(declared: Declaration) -> Tolerance | None:
    if declared.tolerance is None:
        return None
    atol, rtol = declared.tolerance
    return Tolerance(atol=atol, rtol=rtol, origin="person")
