"""Owns reading a Triton kernel's text: which parameters are pointers, sizes, flags or dtypes, and how it is launched.

Guesses for the front end only. Never runs the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_ADDRESSED = {"load", "store", "make_block_ptr", "make_tensor_descriptor", "prefetch"}
_FLOAT_NAME = re.compile(
    r"eps|scale|alpha|beta|lr|momentum|prob|^p$|slope|temperature|decay|inv_|_inv|theta|dropout|rate"
)
_FLAG_NAME = re.compile(
    r"^(?:IS|HAS|USE|DO|NEEDS|APPLY|WITH|ENABLE|STORE|LOAD)_|CAUSAL|BIAS|EVEN|TRANS|FLAG|MASK|INTERLEAVED"
)
_DTYPE_NAME = re.compile(r"dtype|DTYPE|_TYPE$|^TYPE|out_ty|acc_ty", re.IGNORECASE)
_TENSOR_ATTRIBUTES = {"dtype", "type", "to", "shape", "element_ty", "cast"}


@dataclass(slots=True)
class Parameter:
    """One parameter as the text uses it."""

    name: str
    constexpr: bool
    role: str = "scalar"
    """'pointer' | 'scalar' | 'float' | 'size' | 'flag' | 'dtype' | 'word' | 'unknown'."""
    default: Any = None
    has_default: bool = False


@dataclass(slots=True)
class KernelSyntax:
    """A kernel's parameters and the names that it stores, calls and reads."""

    name: str
    parameters: list[Parameter]
    stored: set[str] = field(default_factory=set)
    """Names that the body binds somewhere."""
    called: set[str] = field(default_factory=set)
    """Plain names that the body calls."""


def read(node: ast.FunctionDef) -> KernelSyntax:
    """What the text of one kernel shows."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(arguments) - len(node.args.defaults)) + list(node.args.defaults)
    parameters = []
    for argument, default in zip(arguments, defaults, strict=True):
        annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        parameter = Parameter(argument.arg, "constexpr" in annotation)
        if default is not None and isinstance(default, ast.Constant):
            parameter.default, parameter.has_default = default.value, True
        parameters.append(parameter)
    syntax = KernelSyntax(node.name, parameters)
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            syntax.stored.add(part.id)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            syntax.called.add(part.func.id)
    _give_roles(node, syntax)
    return syntax


def _give_roles(node: ast.FunctionDef, syntax: KernelSyntax) -> None:
    pointers = _pointers(node, {one.name for one in syntax.parameters if not one.constexpr})
    uses = _Uses(node)
    for parameter in syntax.parameters:
        name = parameter.name
        if uses.unknown(name) or name in syntax.called:
            parameter.role = "unknown"
        elif parameter.constexpr:
            parameter.role = _constexpr_role(name, uses)
        elif name in pointers or re.search(r"_ptrs?$|^ptr|_pointer$", name):
            parameter.role = "pointer"
        elif _FLOAT_NAME.search(name.lower()) and name not in uses.counted:
            parameter.role = "float"


def _constexpr_role(name: str, uses: _Uses) -> str:
    if name in uses.dtypes or _DTYPE_NAME.search(name):
        return "dtype"
    if name in uses.words:
        return "word"
    if name in uses.tested and name not in uses.counted:
        return "flag"
    return "flag" if _FLAG_NAME.search(name) and name not in uses.counted else "size"


class _Uses:
    """How names are used in a kernel's body."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.tested: set[str] = set()
        """Stand alone, or negated, as a condition."""
        self.counted: set[str] = set()
        """Stand in arithmetic, ranges, shapes or order comparisons."""
        self.dtypes: set[str] = set()
        self.words: set[str] = set()
        """Are compared with a string."""
        self._strange: set[str] = set()
        for part in ast.walk(node):
            self._look(part)

    def unknown(self, name: str) -> bool:
        """True for a parameter that no simple value can stand for: a descriptor, a tuple, a function."""
        return name in self._strange

    def _look(self, part: ast.AST) -> None:
        if isinstance(part, (ast.If, ast.IfExp, ast.While)):
            self._condition(part.test)
        elif isinstance(part, ast.BinOp):
            self.counted |= _names(part.left) | _names(part.right)
        elif isinstance(part, ast.Compare):
            self._compare(part)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            if part.attr not in _TENSOR_ATTRIBUTES:
                self._strange.add(part.value.id)
        elif isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
            if not _is_view(part.slice):
                self._strange.add(part.value.id)
        elif isinstance(part, ast.Call):
            self._call(part)

    def _condition(self, test: ast.expr) -> None:
        if isinstance(test, ast.BoolOp):
            for value in test.values:
                self._condition(value)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._condition(test.operand)
        elif isinstance(test, ast.Name):
            self.tested.add(test.id)

    def _compare(self, part: ast.Compare) -> None:
        sides = [part.left, *part.comparators]
        for side in sides:
            if isinstance(side, ast.Name):
                others = [one for one in sides if one is not side]
                if any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in others):
                    self.words.add(side.id)
                elif not any(isinstance(one, ast.Constant) and one.value is None for one in others):
                    self.counted.add(side.id)

    def _call(self, part: ast.Call) -> None:
        attribute = part.func.attr if isinstance(part.func, ast.Attribute) else ""
        name = part.func.id if isinstance(part.func, ast.Name) else ""
        if attribute in {"to", "cast"}:
            self.dtypes |= {arg.id for arg in part.args[-1:] if isinstance(arg, ast.Name)}
        for keyword in part.keywords:
            if keyword.arg in {"dtype", "out_dtype"} and isinstance(keyword.value, ast.Name):
                self.dtypes.add(keyword.value.id)
        if attribute in {"arange", "zeros", "full", "reshape", "view", "cdiv", "static_range", "range", "broadcast_to"}:
            self.counted |= {found for arg in part.args for found in _names(arg)}
        if name in {"range", "min", "max"}:
            self.counted |= {found for arg in part.args for found in _names(arg)}


def _is_view(index: ast.expr) -> bool:
    """True for x[:, None] and x[None, :], which keep a tensor a tensor."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and p.value is None) for p in parts)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


# ------------------------------------------------------------------------------------------------------------- pointers


def _pointers(node: ast.FunctionDef, parameters: set[str]) -> set[str]:
    """Parameters that addresses start from."""
    definitions: dict[str, list[ast.expr]] = {}
    scaled: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Name):
                    definitions.setdefault(target.id, []).append(part.value)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            definitions.setdefault(part.target.id, []).append(part.value)
        elif isinstance(part, ast.BinOp) and not isinstance(part.op, (ast.Add, ast.Sub)):
            scaled |= _names(part.left) | _names(part.right)
        elif isinstance(part, ast.Compare):
            scaled |= _names(part)
    found: set[str] = set()
    for address in _addresses(node):
        origin = next((one for one in _origins(address, definitions, set()) if one in parameters - scaled), None)
        if origin is not None:
            found.add(origin)
    return found


def _addresses(node: ast.FunctionDef) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
            continue
        if part.func.attr in _ADDRESSED or part.func.attr.startswith("atomic_"):
            yield from part.args[:1]
            yield from (one.value for one in part.keywords if one.arg in {"base", "pointer"})


def _origins(node: ast.expr, definitions: Mapping[str, list[ast.expr]], seen: set[str]) -> Iterator[str]:
    """Names that an address is a sum of, leftmost first, through local variables."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _origins(node.left, definitions, seen)
        yield from _origins(node.right, definitions, seen)
    elif isinstance(node, ast.Name):
        if node.id not in seen:
            seen = seen | {node.id}
            yield node.id
            for value in definitions.get(node.id, ()):
                yield from _origins(value, definitions, seen)
    elif isinstance(node, ast.Subscript):
        yield from _origins(node.value, definitions, seen)
    elif isinstance(node, ast.Call) and node.args:
        yield from _origins(node.args[0], definitions, seen)
        if isinstance(node.func, ast.Attribute):
            yield from _origins(node.func.value, definitions, seen)
    elif isinstance(node, ast.IfExp):
        yield from _origins(node.body, definitions, seen)


# ------------------------------------------------------------------------------------------------------------- launches


@dataclass(frozen=True, slots=True)
class Launch:
    """One `kernel[grid](...)` in the text: values that the text itself shows."""

    kernel: str
    values: dict[str, Any]
    """Parameter -> a constant that the call site fixes."""
    literal_floats: frozenset[str]
    """Parameters that get a float."""


def launches(tree: ast.Module, parameters: Mapping[str, list[str]], namespace: Mapping[str, Any]) -> list[Launch]:
    """Launches of the kernels in `parameters` (name -> parameter names), constants resolved through the text."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Module)):
            continue
        local = _single_constants(function, namespace) if isinstance(function, ast.FunctionDef) else {}
        for part in _own_nodes(function):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Subscript):
                target = part.func.value
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                if name in parameters:
                    found.append(_launch(part, name, parameters[name], {**namespace, **local}))
    return found


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions inside it."""
    queue = list(ast.iter_child_nodes(function))
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            queue.extend(ast.iter_child_nodes(node))


def _single_constants(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Local names that are bound once, to a constant."""
    counts: dict[str, int] = {}
    values: dict[str, Any] = {}
    for part in _own_nodes(function):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            counts[part.id] = counts.get(part.id, 0) + 1
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            value = constant(part.value, namespace)
            if value is not UNKNOWN:
                values[part.targets[0].id] = value
    parameters = {one.arg for one in [*function.args.args, *function.args.kwonlyargs]}
    return {name: value for name, value in values.items() if counts.get(name) == 1 and name not in parameters}


UNKNOWN = object()


def _launch(call: ast.Call, kernel: str, names: list[str], namespace: Mapping[str, Any]) -> Launch:
    given = dict(zip(names, call.args, strict=False)) if not any(isinstance(a, ast.Starred) for a in call.args) else {}
    given.update({one.arg: one.value for one in call.keywords if one.arg in names})
    values: dict[str, Any] = {}
    floats: set[str] = set()
    for name, node in given.items():
        value = constant(node, namespace)
        if isinstance(value, float):
            floats.add(name)
        if value is not UNKNOWN:
            values[name] = value
    return Launch(kernel, values, frozenset(floats))


def constant(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """The value of a literal, a known name or arithmetic over those; UNKNOWN for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        value = namespace.get(node.id, UNKNOWN)
        return value if isinstance(value, (int, float, str, bool, type(None))) else UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand, namespace)
        return -value if isinstance(value, (int, float)) else UNKNOWN
    if isinstance(node, ast.BinOp):
        left, right = constant(node.left, namespace), constant(node.right, namespace)
        if type(left) is int and type(right) is int:
            return _arithmetic(node.op, left, right)
    return UNKNOWN


def _arithmetic(op: ast.operator, left: int, right: int) -> Any:
    if isinstance(op, ast.Mult):
        return left * right
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.FloorDiv) and right:
        return left // right
    if isinstance(op, ast.Pow) and 0 <= right <= 31:
        return left**right
    return UNKNOWN
