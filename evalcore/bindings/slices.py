"""Owns splitting a comparison into inputs, reference and candidate by following where values come from. Runs nothing.

Works on a straight list of statements (`scopes`). A variable's *version* is the index of the statement that last bound
or changed it; -1 is a name of the module or of Python.
"""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from evalcore.bindings.binding import loads, stores
from evalcore.bindings.calls import HostMap, draws_itself
from evalcore.bindings.constants import assigned, evaluate, is_size
from evalcore.bindings.effects import changed, kills, last_name, makes_module, only_looks, ordered_loads
from evalcore.names import dotted

_FRESH = {
    "empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros",
    "new_ones", "new_full", "empty_strided",
}  # fmt: skip
_MAKING = {"tensor", "arange", "linspace", "eye", "from_numpy", "load", "as_tensor", "cat", "stack", "tril", "triu"}
_META = {
    "shape", "dtype", "device", "ndim", "size", "stride", "numel", "dim", "element_size", "nelement", "is_contiguous",
    "itemsize",
}  # fmt: skip
_PURE_CALLS = {
    "int", "float", "bool", "len", "min", "max", "tuple", "list", "range", "cdiv", "next_power_of_2", "sqrt", "getattr",
    "hasattr", "isinstance", "str", "abs", "sum", "prod", "device", "dict",
}  # fmt: skip
_BUILTINS = frozenset(dir(builtins))
Ref = tuple[str, int]
"""A variable and its version."""
_Inside = Callable[[str, int, bool], bool]
"""(name, version, needed by a launch) -> whether that version is computed inside the side rather than given to it."""


@dataclass(slots=True)
class Side:
    """One side of a comparison as code."""

    statements: list[int] = field(default_factory=list)
    """Indices of the statements that compute it from the inputs."""
    result: ast.expr = field(default_factory=lambda: ast.Constant(None))
    inputs: list[Ref] = field(default_factory=list)


@dataclass(slots=True)
class Split:
    """A comparison taken apart."""

    candidate: Side
    reference: Side
    inputs: list[Ref]
    """In the order in which the candidate uses them, then what only the reference needs."""
    input_statements: list[int]
    kernels: set[str]
    backward: bool


class Flow:
    """Where values come from in one straight list of statements."""

    def __init__(self, statements: list[ast.stmt], hosts: HostMap, module_names: Iterable[str]) -> None:
        self.statements = statements
        """In order; module-level ones are the module's own nodes, by which `is_environment` knows them."""
        self._hosts = hosts
        self._module = frozenset(module_names) | _BUILTINS | {"__file__", "__name__"}
        self._binds = [stores(each) for each in statements]
        self._changes = [changed(each) - {"self"} for each in statements]
        self._places: dict[str, list[int]] = {}
        """Name -> the statements that bind or change it, in order."""
        self._tainted: set[int] = set()
        self._outputs: dict[int, set[str]] = {}
        self._taint()

    def version(self, name: str, before: int) -> int:
        """The statement before `before` that last bound or changed `name`, or -1."""
        known = self._places.get(name, ())
        place = bisect_left(known, before)
        return known[place - 1] if place else -1

    def _reach(self, node: ast.AST, before: int) -> set[str]:
        """Kernels that an expression reaches by module names that are not hidden by local variables."""
        return self._hosts.reach_names({name for name in loads(node) if self.version(name, before) < 0})

    def _taint(self) -> None:
        for index, statement in enumerate(self.statements):
            launches = bool(self._reach(statement, index))
            if launches and isinstance(statement, ast.Expr):
                self._outputs[index] = self._written(statement, index)
            if launches or any(self._from_candidate(name, index) for name in loads(statement) | self._changes[index]):
                self._tainted.add(index)
            for name in self._binds[index]:
                self._places.setdefault(name, []).append(index)
            for name in self._outputs.get(index, self._changes[index]) - self._binds[index]:
                if name in self._places:  # `torch.backends... = True` makes no new torch
                    self._places[name].append(index)

    def _from_candidate(self, name: str, before: int) -> bool:
        return self.version(name, before) in self._tainted

    def _written(self, statement: ast.Expr, index: int) -> set[str]:
        """Variables that a bare launch fills: those freshly allocated, or all its tensors where none is.

        A wrapper whose result is dropped is a warm-up, unless its name ends in `_`: then it works in place.
        """
        call = statement.value if isinstance(statement.value, ast.Call) else None
        name = last_name(call.func) if call is not None else ""
        if call is None or only_looks(call):
            return set()
        names = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
        names = {each for each in names if self.version(each, index) >= 0}
        fresh = {each for each in names if self._is_fresh(self.version(each, index))}
        in_place = call is not None and (isinstance(call.func, ast.Subscript) or name.endswith("_"))
        if fresh or not in_place:
            return fresh
        return {each for each in names if not self.is_plain(self.version(each, index))}

    def _is_fresh(self, index: int) -> bool:
        if index < 0:
            return False
        _name, value = assigned(self.statements[index])
        return isinstance(value, ast.Call) and last_name(value.func) in _FRESH

    def reach(self, index: int) -> set[str]:
        """Kernels that one statement reaches."""
        return self._reach(self.statements[index], index)

    def reaches(self, expression: ast.expr) -> bool:
        """Whether an expression's own names reach a kernel."""
        return bool(self._reach(expression, len(self.statements)))

    def value(self, node: ast.expr | None) -> int:
        """The number of a size statement."""
        return int(evaluate(node, {}))

    def is_plain(self, index: int) -> bool:
        """Whether a version holds no tensor: literals, shapes, dtypes, lambdas."""
        if index < 0:
            return True
        if isinstance(self.statements[index], (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        name, value = assigned(self.statements[index])
        if value is None:
            value = getattr(self.statements[index], "value", None)
            if not isinstance(self.statements[index], ast.Assign) or value is None:
                return False
        return self._plain_value(value, index)

    def _plain_value(self, value: ast.expr, index: int) -> bool:
        if isinstance(value, (ast.Constant, ast.Lambda)):
            return True
        if isinstance(value, ast.Name):
            return self.is_plain(self.version(value.id, index))
        if isinstance(value, ast.Attribute):
            return value.attr in _META or bool(dotted(value)) and self._root_is_module(value, index)
        if isinstance(value, ast.Call):
            return self._plain_call(value, index)
        if isinstance(value, ast.Subscript):
            return self._plain_value(value.value, index)
        parts = [each for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)]
        return bool(parts) and all(self._plain_value(each, index) for each in parts)

    def _plain_call(self, value: ast.Call, index: int) -> bool:
        if isinstance(value.func, ast.Attribute) and value.func.attr in _META:
            return True
        arguments = [*value.args, *(word.value for word in value.keywords)]
        return last_name(value.func) in _PURE_CALLS and all(self._plain_value(each, index) for each in arguments)

    def _root_is_module(self, node: ast.expr, index: int) -> bool:
        root = dotted(node).split(".")[0]
        return self.version(root, index) < 0 or self.is_plain(self.version(root, index))

    def is_size(self, index: int) -> bool:
        """Whether a statement is `NAME = <whole number>`."""
        name, value = assigned(self.statements[index]) if index >= 0 else (None, None)
        return name is not None and is_size(evaluate(value, {}))

    def is_random(self, index: int) -> bool:
        """Whether a statement draws data, itself or through a function of the file."""
        statement = self.statements[index]
        called = {name for name in loads(statement) if self.version(name, index) < 0}
        return draws_itself(statement) or bool(called & self._hosts.draws)

    def is_environment(self, index: int) -> bool:
        """Whether a version is a module's own setting (`DEVICE = ...`): both programs find it in the module itself."""
        name, value = assigned(self.statements[index])
        if name is None or value is None or id(self.statements[index]) not in self._hosts.settings:
            return False
        calls = {last_name(each.func) for each in ast.walk(value) if isinstance(each, ast.Call)}
        if calls & (_FRESH | _MAKING) or self.is_random(index) or makes_module(value):
            return False
        inner = [self.version(each, index) for each in loads(value)]
        return all(each < 0 or self.is_plain(each) or self.is_environment(each) for each in inner)

    def is_candidate(self, expression: ast.expr) -> bool:
        """Whether an expression at the end of the list depends on a kernel's work."""
        end = len(self.statements)
        return bool(self._reach(expression, end)) or any(self._from_candidate(name, end) for name in loads(expression))

    def split(self, got: ast.expr, want: ast.expr) -> Split | str:
        """Inputs, reference and candidate of a comparison, or why the two cannot be told apart or cut loose."""
        if not self.is_candidate(got):
            return "neither side runs a kernel of this file"
        if self.is_candidate(want):
            return "both sides run kernels of this file"
        candidate = self._candidate(got, want)
        reference = self._reference(want, set(candidate.inputs))
        inputs = list(dict.fromkeys([*candidate.inputs, *reference.inputs]))
        if len({name for name, _version in inputs}) != len(inputs):
            return "an input is changed between the two sides"
        if set(reference.inputs) - set(candidate.inputs) and not self._computes(reference):
            return "the wanted value is made together with the inputs"
        for name, index in inputs:
            if self._is_container(name, index):
                return f"the input {name} is no tensor"
        statements = self._closure(inputs)
        if set(statements) & self._tainted:
            return "an input comes out of a kernel"
        unknown = self._unknown([*candidate.statements, *reference.statements, *statements], (got, want))
        if unknown:
            return f"{unknown} is not known at this place"
        kernels = self._reach(got, len(self.statements)).union(
            *(self._reach(self.statements[index], index) for index in candidate.statements)
        )
        return Split(candidate, reference, inputs, statements, kernels, self._backward(candidate, got))

    def _computes(self, side: Side) -> bool:
        """Whether a side does more than hand a value on."""
        nodes: list[ast.AST] = [side.result]
        nodes += [self.statements[index] for index in side.statements if not self.is_plain(index)]
        return any(isinstance(each, (ast.Call, ast.BinOp, ast.Compare)) for node in nodes for each in ast.walk(node))

    def _is_container(self, name: str, index: int) -> bool:
        """Lists of tensors, dicts and torch.nn modules cannot be handed to two processes as they are."""
        for statement in self.statements[: index + 1]:
            target, value = assigned(statement)
            if target != name or value is None:
                continue
            if isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)):
                return True
            if makes_module(value):
                return True
        return False

    def _candidate(self, got: ast.expr, want: ast.expr) -> Side:
        end = len(self.statements)
        wanted = {(name, self.version(name, end)) for name in loads(want)}
        held: set[int] = set()

        def inside(name: str, index: int, launched: bool) -> bool:
            if index in self._tainted:
                return True
            plain = self.is_plain(index) and not self.is_size(index) and index not in held
            return plain or (launched and self._is_fresh(index))

        side = self._side(got, inside)
        if wanted & set(side.inputs):
            # `n = y_torch.numel()` must not carry the wanted value into the candidate: n itself is given to it
            held = {
                index
                for index in side.statements
                if index not in self._tainted
                and {(name, self.version(name, index)) for name in loads(self.statements[index])} & wanted
            }
            side = self._side(got, inside)
        return side

    def _reference(self, want: ast.expr, given: set[Ref]) -> Side:
        def inside(name: str, index: int, launched: bool) -> bool:
            return (name, index) not in given and not self.is_random(index) and not self.is_size(index)

        return self._side(want, inside)

    def _side(self, result: ast.expr, inside: _Inside) -> Side:
        """Follow `result` back; what `inside` refuses becomes an input."""
        side = Side(result=result)
        end = len(self.statements)
        pending: list[tuple[str, int, bool]] = [
            (name, self.version(name, end), False) for name in ordered_loads(result)
        ]
        seen: set[Ref] = set()
        while pending:
            name, index, launched = pending.pop(0)
            if index < 0 or (name, index) in seen:
                continue
            seen.add((name, index))
            if not self.is_plain(index) and self.is_environment(index):
                continue
            if not inside(name, index, launched):
                side.inputs.append((name, index))
                continue
            if index not in side.statements:
                side.statements.append(index)
            pending += self._needs(name, index)
        side.statements.sort()
        return side

    def _needs(self, name: str, index: int) -> list[tuple[str, int, bool]]:
        """What a version of `name` needs: names its statement reads, and the version before where it only changes."""
        statement = self.statements[index]
        found = [(each, self.version(each, index), index in self._outputs) for each in ordered_loads(statement)]
        if name not in self._binds[index] or not kills(statement):
            found.append((name, self.version(name, index), index in self._outputs))
        return found

    def _closure(self, inputs: list[Ref]) -> list[int]:
        """Statements that make the inputs, in order."""
        found: set[int] = set()
        pending = list(inputs)
        seen: set[Ref] = set()
        while pending:
            ref = pending.pop()
            if ref[1] < 0 or ref in seen:
                continue
            seen.add(ref)
            found.add(ref[1])
            pending += [(name, index) for name, index, _launched in self._needs(*ref)]
        return sorted(found)

    def _unknown(self, indices: list[int], ends: tuple[ast.expr, ...]) -> str:
        """A name that is read but neither bound before nor the module's or Python's own; '' where there is none."""
        nodes: list[tuple[ast.AST, int]] = [(self.statements[index], index) for index in indices]
        nodes += [(node, len(self.statements)) for node in ends]
        for node, index in nodes:
            own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
            own |= {
                each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
            for name in loads(node) - own:
                if self.version(name, index) < 0 and name not in self._module:
                    return name
        return ""

    def _backward(self, candidate: Side, got: ast.expr) -> bool:
        """Whether the file also takes gradients of the candidate's result."""
        names = {name for index in candidate.statements for name in self._binds[index]} | loads(got)
        return any(
            isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "backward"
            and isinstance(each.func.value, ast.Name) and each.func.value.id in names
            for statement in self.statements for each in ast.walk(statement)
        )  # fmt: skip
