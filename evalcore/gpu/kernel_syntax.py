"""Owns reading a Triton kernel's text: which parameters are pointers, sizes, flags or dtypes, and how it is launched.

Guesses for the front end only. Never runs the text.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from evalcore.gpu.kernel_addresses import Addresses

_POINTER_NAME = re.compile(r"_ptrs?$|^ptr|_pointer$")
_INDEX_NAME = re.compile(r"indices|index|idx|_ids\b|_ids_|seqlens|offsets|table|labels|mapping|perm")
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
    """'pointer' | 'index' (to integers that places hang on) | 'scalar' | 'float' | 'size' | 'flag' | 'dtype' | 'word' |
    'unknown'."""
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
    addresses = Addresses(node, {one.name for one in syntax.parameters if not one.constexpr})
    uses = _Uses(node)
    for parameter in syntax.parameters:
        name = parameter.name
        if uses.unknown(name) or name in syntax.called:
            parameter.role = "unknown"
        elif parameter.constexpr:
            parameter.role = _constexpr_role(name, uses)
        elif name in addresses.pointers or _POINTER_NAME.search(name):
            parameter.role = "index" if name in addresses.indices or _INDEX_NAME.search(name.lower()) else "pointer"
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
                elif not _against_none(others):
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


def _against_none(nodes: list[ast.expr]) -> bool:
    return any(isinstance(one, ast.Constant) and one.value is None for one in nodes)


def _is_view(index: ast.expr) -> bool:
    """True for x[:, None] and x[None, :], which keep a tensor a tensor."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and p.value is None) for p in parts)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
