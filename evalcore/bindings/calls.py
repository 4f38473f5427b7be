"""Owns which names of a module reach which kernels: jitted functions, CUDA text in strings, wrappers, classes, aliases.

A conservative picture by names alone: a function reaches what its body mentions, transitively. Never resolves imports.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from evalcore.bindings.binding import loads
from evalcore.names import dotted

_JIT = {"triton.jit", "jit", "triton.autotune", "autotune", "triton.heuristics", "heuristics", "gluon.jit", "tl.jit"}
_NATIVE_MAKERS = {
    "load_inline": ("cuda_sources", "cpp_sources", "cuda_src", "cuda_source", "sources"),
    "load": ("sources",),
    "_compile_kernel": ("kernel_source", "source"),
    "RawKernel": ("code",),
    "RawModule": ("code",),
}
RANDOM = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "normal", "randperm", "bernoulli", "normal_",
    "uniform_", "random_", "multinomial", "bernoulli_", "exponential_", "make_tensor", "standard_normal", "random",
}  # fmt: skip
"""Last part of the names of calls that draw data."""
_GLOBAL = re.compile(r"__global__[\s\w:<>*&,]{0,400}?\b(\w+)\s*\(")
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|__cluster_dims__\s*\([^()]*\)")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of the file."""

    name: str
    line: int
    language: str
    """'triton' or 'cuda'."""
    autotuned: bool = False


@dataclass(slots=True)
class HostMap:
    """What a module's names stand for. Built once a text by `host_map`."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    """Host functions at module level (also inside top-level `if` and `try`)."""
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    natives: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name bound to a compiled CUDA module or function -> names of the __global__ functions in its text."""
    mentions: dict[str, set[str]] = field(default_factory=dict)
    """Definition-like module-level name -> names that its definition mentions."""
    draws: set[str] = field(default_factory=set)
    """Functions that draw random data, directly or through others."""
    settings: frozenset[int] = frozenset()
    """Identities of the module-level statements, which are in the module whatever is sliced out of it."""
    launched_by_host: set[str] = field(default_factory=set)
    """Kernels that host code mentions itself, as opposed to helpers that only kernels call."""

    def reach(self, node: ast.AST, *, shadowed: frozenset[str] = frozenset()) -> set[str]:
        """Kernels that running `node` may launch. `shadowed` are local variables that hide module names."""
        return self.reach_names(set(loads(node) - shadowed))

    def reach_names(self, names: set[str]) -> set[str]:
        """Kernels behind a set of names, transitively."""
        found: set[str] = set()
        seen: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.kernels:
                found.add(name)
            found.update(kernel for kernel in self.natives.get(name, ()) if kernel in self.kernels)
            pending.extend(self.mentions.get(name, ()))
        return found

    def is_code(self, value: ast.expr) -> bool:
        """Whether a value stands for a function, class or kernel of the file (`LayerNorm.apply`), not for data (`b.T`)."""
        own = self.functions.keys() | self.classes.keys() | self.kernels.keys() | self.natives.keys()
        return native_kernels(value, {}) is not None or bool(loads(value) & own)

    def in_order(self, names: set[str]) -> tuple[str, ...]:
        """Kernel names in file order."""
        return tuple(sorted(names, key=lambda name: (self.kernels[name].line, name)))

    def launched(self, names: set[str]) -> tuple[str, ...]:
        """Those of `names` that host code launches itself."""
        direct = {name for name in names if name in self.launched_by_host or self.kernels[name].language == "cuda"}
        return self.in_order(direct or names)


def is_jit(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a Triton kernel or a helper of one."""
    return any(_decorator(each) in _JIT for each in node.decorator_list)


def _decorator(node: ast.expr) -> str:
    return dotted(node.func) if isinstance(node, ast.Call) else dotted(node)


def host_map(tree: ast.Module) -> HostMap:
    """The map of a whole module."""
    found = HostMap()
    strings = _module_strings(tree)
    found.settings = frozenset(id(statement) for statement in flat_module(tree.body))
    for statement in flat_module(tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _add_function(found, statement)
        elif isinstance(statement, ast.ClassDef):
            found.classes[statement.name] = statement
            found.mentions[statement.name] = set(loads(statement)) - {statement.name}
            _add_nested(found, statement)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            _add_assignment(found, statement, strings)
    for owner, names in found.mentions.items():
        if owner not in found.kernels:
            found.launched_by_host |= names & set(found.kernels)
    _loose_natives(found, tree, strings)
    _find_draws(found)
    return found


def draws_itself(node: ast.AST) -> bool:
    """Whether a tree holds a call that draws data."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return any((func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in RANDOM for func in calls)


def _find_draws(found: HostMap) -> None:
    found.draws = {name for name, node in found.functions.items() if draws_itself(node)}
    grown = True
    while grown:
        more = {name for name in found.functions if found.mentions.get(name, set()) & found.draws} - found.draws
        found.draws |= more
        grown = bool(more)


def flat_module(body: list[ast.stmt]) -> list[ast.stmt]:
    """Module-level statements, those inside top-level `if`, `try` and `with` included."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If):
            found += flat_module(statement.body) + flat_module(statement.orelse)
        elif isinstance(statement, ast.Try):
            for block in (statement.body, *(handler.body for handler in statement.handlers), statement.orelse):
                found += flat_module(block)
        elif isinstance(statement, ast.With):
            found += flat_module(statement.body)
        else:
            found.append(statement)
    return found


def _add_function(found: HostMap, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    found.mentions[node.name] = set(loads(node)) - {node.name}
    if is_jit(node):
        tuned = any(_decorator(each).endswith("autotune") for each in node.decorator_list)
        found.kernels[node.name] = Kernel(node.name, node.lineno, "triton", tuned)
        return
    found.functions[node.name] = node
    _add_nested(found, node)


def _add_nested(found: HostMap, owner: ast.AST) -> None:
    """Kernels defined inside a function or a class: known by their own name, reached through their owner."""
    for each in ast.walk(owner):
        if each is not owner and isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_jit(each):
            found.kernels.setdefault(each.name, Kernel(each.name, each.lineno, "triton"))
            found.mentions.setdefault(each.name, set(loads(each)) - {each.name})
            found.mentions[getattr(owner, "name", "")].add(each.name)
            found.launched_by_host.add(each.name)


def _add_assignment(found: HostMap, node: ast.Assign | ast.AnnAssign, strings: dict[str, str]) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or node.value is None:
        return
    name, value = targets[0].id, node.value
    native = native_kernels(value, strings)
    if native is not None:
        found.natives[name] = native
        for kernel in native:
            found.kernels.setdefault(kernel, Kernel(kernel, node.lineno, "cuda"))
        found.mentions[name] = set(loads(value))
    elif isinstance(value, ast.Call) and dotted(value.func) in _JIT and value.args:
        found.kernels[name] = Kernel(name, node.lineno, "triton")
        found.mentions[name] = set(loads(value))
    elif is_definition(value):
        found.mentions[name] = set(loads(value))


def is_definition(value: ast.expr) -> bool:
    """Whether `name = value` gives a function another name rather than computing data."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Lambda)):
        return bool(dotted(value)) or isinstance(value, ast.Lambda)
    if isinstance(value, ast.Call):
        name = dotted(value.func).rsplit(".", 1)[-1]
        return name in {"partial", "compile", "jit", "autotune", "heuristics", "script", "get_function", "custom_op"}
    return isinstance(value, ast.Subscript) and bool(dotted(value.value))


def native_kernels(value: ast.AST, strings: dict[str, str]) -> tuple[str, ...] | None:
    """Names of __global__ functions in the CUDA text of a load_inline, RawKernel or _compile_kernel call, else None."""
    if not isinstance(value, ast.Call):
        return None
    maker = dotted(value.func).rsplit(".", 1)[-1]
    if maker == "get_function" and isinstance(value.func, ast.Attribute):
        return native_kernels(value.func.value, strings)
    keys = _NATIVE_MAKERS.get(maker)
    if keys is None:
        return None
    texts = [string_value(word.value, strings) for word in value.keywords if word.arg in keys]
    texts += [string_value(each, strings) for each in value.args]
    found: list[str] = []
    for text in texts:
        found += [name for name in global_names(text) if name not in found]
    if not found and maker in {"load"}:
        return None
    return tuple(found)


def global_names(text: str) -> list[str]:
    """Names of __global__ functions with a body or a prototype in CUDA text, in order, comments left out."""
    names: list[str] = []
    for match in _GLOBAL.finditer(_BOUNDS.sub(" ", _COMMENTS.sub(" ", text))):
        if match.group(1) not in names:
            names.append(match.group(1))
    return names


def string_value(node: ast.expr, strings: dict[str, str]) -> str:
    """The text behind a string expression: a literal, a module-level name, a concatenation, a list, an f-string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        return strings.get(node.id, "")
    if isinstance(node, ast.BinOp):
        return string_value(node.left, strings) + string_value(node.right, strings)
    if isinstance(node, (ast.List, ast.Tuple)):
        return "\n".join(string_value(each, strings) for each in node.elts)
    if isinstance(node, ast.JoinedStr):
        return "".join(string_value(each, strings) for each in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return string_value(node.func.value, strings)
    return ""


def _module_strings(tree: ast.Module) -> dict[str, str]:
    strings: dict[str, str] = {}
    for statement in flat_module(tree.body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            text = string_value(statement.value, strings)
            if text:
                strings[statement.targets[0].id] = text
    return strings


def _loose_natives(found: HostMap, tree: ast.Module, strings: dict[str, str]) -> None:
    """CUDA modules that are built inside a function or a class: their kernels belong to whoever mentions them."""
    for owner in (*found.functions.values(), *found.classes.values()):
        for each in ast.walk(owner):
            if not isinstance(each, ast.Call):
                continue
            for kernel in native_kernels(each, strings) or ():
                found.kernels.setdefault(kernel, Kernel(kernel, each.lineno, "cuda"))
                found.mentions[owner.name].add(kernel)
                found.mentions.setdefault(kernel, set())
