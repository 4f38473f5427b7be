"""Owns the shapes in sight: what the file itself says about a kernel's arguments, by following launches to factories.

kernel argument -> wrapper's local or parameter -> call of the wrapper -> `torch.randn(4096, 1000)`. By syntax, bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from server.analysis.factories import CASTS, FACTORIES, LIKE, SAME, dtype_of, retyped, size_nodes, torch_dtype
from server.analysis.host_scopes import HostIndex, Scope, last_before
from server.analysis.kernel_view import Assignment
from server.analysis.python_facts import FunctionFacts, LaunchFacts, PieceFacts
from server.analysis.syntax import arguments, dotted, source, unwrap, walk
from server.analysis.values import Number, Several, TensorValue, Value, arithmetic, larger, operate, whole

_MOST_DEPTH = 12
_MOST_CALLS = 8


@dataclass(slots=True)
class LaunchView:
    """One launch of a kernel with what is known of its arguments."""

    facts: LaunchFacts
    piece: PieceFacts
    scope: Scope
    values: dict[str, Value] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    grid: tuple[Number | None, ...] = ()
    grid_words: str = ""
    """Source of the grid and of what its name is bound to."""


class Sight:
    """All host code of one text. Made anew when host code changes."""

    def __init__(self, pieces: list[PieceFacts]) -> None:
        self._host = HostIndex(pieces)
        self._module = self._host.module
        self._views: dict[str, tuple[FunctionFacts, list[LaunchView]]] = {}
        self._known: dict[tuple[int, int, int], Value] = {}
        self.hooks = any(b"pre_hook" in piece.data for piece in pieces)
        """Whether some config of this text may prepare its arguments before each run."""

    def launches(self, kernel: FunctionFacts) -> list[LaunchView]:
        """The launches of a kernel in this text, arguments followed."""
        known = self._views.get(kernel.name)
        if known is None or known[0] is not kernel:
            found = self._host.launches(kernel.name)
            known = kernel, [self._launch(kernel, facts, piece) for facts, piece in found[:_MOST_CALLS]]
            self._views[kernel.name] = known
        return known[1]

    def number(self, node: Node | None) -> Number | None:
        """A module-level whole-number expression."""
        value = self._value(node, self._module, 0) if node is not None else None
        return value if isinstance(value, Number) else None

    def tuned(self, kernel: FunctionFacts, name: str) -> list[tuple[int, Node]]:
        """Values of a constexpr in the kernel's autotune configs that stand in its decorators."""
        found: list[tuple[int, Node]] = []
        for decorator in kernel.decorators:
            for each in walk(decorator.node):
                if each.type == "pair" and source(each.child_by_field_name("key")).strip("'\"") == name:
                    value = each.child_by_field_name("value")
                    number = whole(source(value)) if value is not None else None
                    if value is not None and number is not None:
                        found.append((number, value))
        return found

    def _launch(self, kernel: FunctionFacts, facts: LaunchFacts, piece: PieceFacts) -> LaunchView:
        scope = self._host.scope(facts.owner) or self._module
        found = LaunchView(facts, piece, scope)
        positional, named = arguments(facts.node)
        names = [each.name for each in kernel.params]
        found.nodes = {**dict(zip(names, positional, strict=False)), **named}
        found.values = {name: self._value(node, scope, 0) for name, node in found.nodes.items()}
        for each in kernel.params:
            if each.constexpr and each.name not in found.values:
                configured = self.tuned(kernel, each.name)
                if configured:
                    numbers = {value for value, _node in configured}
                    found.values[each.name] = Number(max(numbers), len(numbers) == 1)
        found.grid = self._grid(facts, scope, found)
        named_grid = self._host.bindings(facts.grid, scope)
        found.grid_words = " ".join([facts.grid, *(source(each.value) for each in named_grid)])
        return found

    def _grid(self, facts: LaunchFacts, scope: Scope, launch: LaunchView) -> tuple[Number | None, ...]:
        function = facts.node.child_by_field_name("function")
        node = (
            function.child_by_field_name("subscript") if function is not None and function.type == "subscript" else None
        )
        extra = list(function.named_children[2:]) if function is not None else []
        if node is not None and extra:
            return tuple(self._as_number(self._value(each, scope, 0, launch)) for each in (node, *extra))
        for _step in range(4):
            if node is not None and node.type == "identifier":
                bound = last_before(self._host.bindings(source(node), scope), facts.start)
                node = bound.value if bound is not None else None
            elif node is not None and node.type == "lambda":
                node = node.child_by_field_name("body")
            elif node is not None and node.type == "parenthesized_expression":
                node = unwrap(node)
            else:
                break
        value = self._value(node, scope, 0, launch) if node is not None else None
        items = value.items if isinstance(value, Several) else (value,)
        return tuple(self._as_number(each) for each in items)

    @staticmethod
    def _as_number(value: Value) -> Number | None:
        return value if isinstance(value, Number) else None

    # ------------------------------------------------------------------------------------------------------- evaluation

    def _value(self, node: Node, scope: Scope, depth: int, launch: LaunchView | None = None) -> Value:
        """What an expression is, as far as the text shows. `launch` answers `meta['BLOCK']` in a grid."""
        if depth > _MOST_DEPTH:
            return None
        if launch is not None:
            return self._evaluate(unwrap(node), scope, depth, launch)
        key = (node.id, node.start_byte, id(scope))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._evaluate(unwrap(node), scope, depth, None)
        return self._known[key]

    def _evaluate(self, node: Node, scope: Scope, depth: int, launch: LaunchView | None) -> Value:
        kind = node.type
        if kind == "integer":
            number = whole(source(node))
            return Number(number) if number is not None else None
        if kind == "identifier":
            return self._name(node, scope, depth)
        if kind in ("tuple", "list", "expression_list"):
            return Several(tuple(self._value(each, scope, depth + 1, launch) for each in node.named_children))
        if kind == "binary_operator":
            return self._binary(node, scope, depth, launch)
        if kind == "attribute":
            return self._attribute(node, scope, depth)
        if kind == "subscript":
            return self._subscript(node, scope, depth, launch)
        if kind == "call":
            return self._call(node, scope, depth, launch)
        return None

    def _name(self, node: Node, scope: Scope, depth: int) -> Value:
        name = source(node)
        bound = last_before(scope.bindings.get(name, []), node.start_byte) if scope.function is not None else None
        if bound is not None:
            return self._bound(bound, name, scope, depth)
        if scope.function is not None and any(each.name == name for each in scope.function.params):
            return self._parameter(scope.function, name, depth)
        everywhere = self._host.bindings(name, self._module)
        if everywhere:
            best: Value = None
            for each in everywhere[-3:]:
                value = self._bound(each, name, self._module, depth) if each.value != node else None
                best = larger(best, value)
            return best
        return None

    def _bound(self, bound: Assignment, name: str, scope: Scope, depth: int) -> Value:
        if bound.kind == "augment":
            return None
        value = self._value(bound.value, scope, depth + 1)
        if bound.kind == "loop":
            return self._largest(value)
        if bound.kind.startswith("part "):
            index = int(bound.kind[5:])
            return value.items[index] if isinstance(value, Several) and index < len(value.items) else None
        return value

    @staticmethod
    def _largest(value: Value) -> Value:
        numbers = [each for each in value.items if isinstance(each, Number)] if isinstance(value, Several) else []
        return Number(max(each.most for each in numbers), len(numbers) == 1) if numbers else None

    def _parameter(self, function: FunctionFacts, name: str, depth: int) -> Value:
        """The largest value that the file passes for a parameter."""
        best: Value = self._listed(function, name)
        names = [each.name for each in function.params]
        for call, owner, skip in self._calls_of(function)[:_MOST_CALLS]:
            positional, named = arguments(call)
            index = names.index(name) - skip
            node = named.get(name) or (positional[index] if 0 <= index < len(positional) else None)
            if node is not None:
                best = larger(best, self._value(node, owner, depth + 1))
        best = larger(best, self._kernelbench_input(function, names.index(name), depth))
        if best is None:
            default = next((each.default for each in function.params if each.name == name), "")
            number = whole(default) if default else None
            best = Number(number) if number is not None else None
        return best

    def _kernelbench_input(self, function: FunctionFacts, index: int, depth: int) -> Value:
        """KernelBench: what get_inputs returns goes to ModelNew.forward."""
        scope = self._host.scope("get_inputs")
        if function.qualname != "ModelNew.forward" or scope is None:
            return None
        returned = scope.bindings.get("return", [])[-1:]
        value = self._value(returned[0].value, scope, depth + 1) if returned else None
        items = value.items if isinstance(value, Several) else ()
        return items[index - 1] if 0 < index <= len(items) else None

    def _listed(self, function: FunctionFacts, name: str) -> Value:
        """Values from `parametrize` and from a benchmark's `x_vals` and `args` in the decorators."""
        best: Value = None
        for decorator in function.decorators:
            for each in walk(decorator.node):
                if each.type == "call" and dotted(each.child_by_field_name("function")).endswith("parametrize"):
                    positional, _named = arguments(each)
                    if len(positional) >= 2 and source(positional[0]).strip("'\"") == name:
                        best = larger(best, self._largest(self._value(positional[1], self._module, 0)))
                elif each.type == "pair" and source(each.child_by_field_name("key")).strip("'\"") == name:
                    value = each.child_by_field_name("value")
                    best = larger(best, self._value(value, self._module, 0) if value is not None else None)
                elif each.type == "call" and dotted(each.child_by_field_name("function")).endswith("Benchmark"):
                    best = larger(best, self._swept(each, name))
        return best

    def _swept(self, call: Node, name: str) -> Value:
        _positional, named = arguments(call)
        names, values = named.get("x_names"), named.get("x_vals")
        if names is None or values is None or name not in source(names).replace("'", '"').split('"'):
            return None
        if values.type in ("list", "tuple"):
            return self._largest(self._value(values, self._module, 0))
        return self._swept_by_loop(values)

    def _swept_by_loop(self, values: Node) -> Value:
        """`[128 * i for i in range(2, 100)]`: the body at the loop's last value."""
        if values.type != "list_comprehension":
            return None
        body = values.child_by_field_name("body")
        clause = next((each for each in values.named_children if each.type == "for_in_clause"), None)
        target = clause.child_by_field_name("left") if clause is not None else None
        over = clause.child_by_field_name("right") if clause is not None else None
        if body is None or target is None or over is None or dotted(over.child_by_field_name("function")) != "range":
            return None
        positional, _named = arguments(over)
        numbers = [self.number(each) for each in positional[:3]]
        if not numbers or any(each is None for each in numbers):
            return None
        bounds = [each.most for each in numbers if each is not None]
        steps = range(*bounds) if bounds[-1] else range(0)
        if not steps or len(steps) > 1 << 20:
            return None
        inner = Scope(None, None, {source(target): []})
        return self._with(body, source(target), Number(steps[-1]), inner)

    def _with(self, node: Node, name: str, value: Number, scope: Scope) -> Value:
        node = unwrap(node)
        if node.type == "identifier" and source(node) == name:
            return value
        if node.type == "binary_operator":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is None or right is None:
                return None
            one, other = self._with(left, name, value, scope), self._with(right, name, value, scope)
            operator = source(node.child_by_field_name("operator"))
            return operate(operator, self._as_number(one), self._as_number(other))
        return self._value(node, self._module, 0)

    def _calls_of(self, function: FunctionFacts) -> list[tuple[Node, Scope, int]]:
        """(call, caller, leading parameters that are not passed) of a function, a method, or autograd's apply."""
        found = [(call, owner, 0) for call, owner in self._host.calls(function.name)]
        if "." in function.qualname:
            found = []
            holder, method = function.qualname.rsplit(".", 1)
            if method == "forward":
                names = self._host.aliases(f"{holder}.apply")
                found += [(call, owner, 1) for name in names for call, owner in self._host.calls(name)]
        return found

    def _binary(self, node: Node, scope: Scope, depth: int, launch: LaunchView | None) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        one, other = self._value(left, scope, depth + 1, launch), self._value(right, scope, depth + 1, launch)
        if isinstance(one, TensorValue) or isinstance(other, TensorValue):
            return one if isinstance(one, TensorValue) else other
        return operate(source(node.child_by_field_name("operator")), self._as_number(one), self._as_number(other))

    def _attribute(self, node: Node, scope: Scope, depth: int) -> Value:
        head = node.child_by_field_name("object")
        name = source(node.child_by_field_name("attribute"))
        value = self._value(head, scope, depth + 1) if head is not None and name in ("shape", "T", "data") else None
        if not isinstance(value, TensorValue):
            return None
        if name == "shape":
            return Several(value.shape) if value.shape is not None else None
        if name == "T" and value.shape is not None:
            return TensorValue(value.shape[::-1], value.dtype)
        return value

    def _subscript(self, node: Node, scope: Scope, depth: int, launch: LaunchView | None) -> Value:
        head, index = node.child_by_field_name("value"), node.child_by_field_name("subscript")
        if head is None or index is None:
            return None
        if index.type == "string" and launch is not None:
            return launch.values.get(source(index).strip("'\""))
        value = self._value(head, scope, depth + 1, launch)
        position = whole(source(index).replace(" ", ""))
        if isinstance(value, Several) and position is not None and -len(value.items) <= position < len(value.items):
            return value.items[position]
        return None

    def _call(self, node: Node, scope: Scope, depth: int, launch: LaunchView | None) -> Value:
        function = node.child_by_field_name("function")
        name = (
            source(function.child_by_field_name("attribute"))
            if function is not None and function.type == "attribute"
            else source(function)
        )
        positional, named = arguments(node)
        if name in ("cdiv", "next_power_of_2", "min", "max", "int"):
            numbers = [self._as_number(self._value(each, scope, depth + 1, launch)) for each in positional]
            return arithmetic(name, numbers)
        if name in FACTORIES:
            return self._factory(name, positional, named, scope, depth)
        if name in LIKE and positional:
            return retyped(self._value(positional[0], scope, depth + 1), dtype_of(named))
        if name == "range":
            return None
        head = function.child_by_field_name("object") if function is not None and function.type == "attribute" else None
        if head is None:
            return None
        value = self._value(head, scope, depth + 1)
        return self._method(name, value, positional, named, scope, depth) if isinstance(value, TensorValue) else None

    def _method(
        self, name: str, value: TensorValue, positional: list[Node], named: dict[str, Node], scope: Scope, depth: int
    ) -> Value:
        if name == "numel":
            return value.numel
        if name in ("size", "stride"):
            if not positional:
                return Several(value.shape) if name == "size" and value.shape is not None else None
            dim = whole(source(positional[0]).replace(" ", ""))
            if dim is None or value.shape is None or not -len(value.shape) <= dim < len(value.shape):
                return None
            return value.shape[dim] if name == "size" else value.stride(dim)
        if name == "t" and value.shape is not None:
            return TensorValue(value.shape[::-1], value.dtype)
        if name in SAME:
            cast = (
                CASTS.get(name)
                or dtype_of(named)
                or next((word for each in positional if (word := torch_dtype(each))), None)
            )
            return retyped(value, cast)
        return None

    def _factory(
        self, name: str, positional: list[Node], named: dict[str, Node], scope: Scope, depth: int
    ) -> TensorValue:
        sizes = size_nodes(name, positional, named)
        values: list[Value] = [self._value(each, scope, depth + 1) for each in sizes]
        if len(values) == 1 and isinstance(values[0], Several):
            values = list(values[0].items)
        default = "int64" if name == "randint" else "float32"
        shape = tuple(self._as_number(each) for each in values) if values else None
        return TensorValue(shape, dtype_of(named) or (default if "dtype" not in named else None))
