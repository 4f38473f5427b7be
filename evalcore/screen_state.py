"""Owns the rules about state and order: caches, counters, fallbacks, lazy results, threads, streams, precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from evalcore.screen_text import Text, is_launch

_STARTS = (
    "threading.Thread", "threading.Timer", "_thread.start_new_thread", "multiprocessing.Process", "os.fork", "asyncio.",
    "concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor",
    "concurrent.futures.thread.ThreadPoolExecutor", "multiprocessing.pool.ThreadPool",
)  # fmt: skip


def input_cache(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """A result that is returned straight out of a table keyed by the identity or address of an input."""
    for function in text.functions:
        inputs = _fed(text, function)
        keys = _identity_names(function, inputs)
        returned = {id(each.value) for each in ast.walk(function) if isinstance(each, ast.Return) and each.value}
        kept = _kept_names(function)
        for node in ast.walk(function):
            if _looks_up(node, keys, inputs) and (id(node) in returned or _bound_and_returned(function, node, kept)):
                yield node, "returns an earlier result found by the address or identity of its input"
        for node in ast.walk(function):
            if _identity_test(node, inputs) and _branch_returns(function, node):
                yield node, "returns an earlier result when its input is the same object as before"


def _fed(text: Text, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters that may hold an input of the call: not those that are only ever given an attribute (a weight)."""
    names = [each.arg for each in function.args.args if each.arg not in ("self", "cls", "ctx")]
    given: dict[str, list[ast.expr]] = {name: [] for name in names}
    for call, called in text.calls():
        if called.split(".")[-1] == function.name:
            for name, value in zip(names, call.args):  # noqa: B905 - a call may name the rest
                given[name].append(value)
            for keyword in call.keywords:
                if keyword.arg in given:
                    given[keyword.arg].append(keyword.value)
    return {
        name
        for name, values in given.items()
        if not values or any(not isinstance(each, ast.Attribute) for each in values)
    }


def _identity_names(function: ast.AST, inputs: set[str]) -> set[str]:
    """Local names that hold an identity of an input: `key = (x.data_ptr(), x.shape)`."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _has_identity(node.value, inputs):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _has_identity(node: ast.AST, inputs: set[str]) -> bool:
    for each in ast.walk(node):
        if not isinstance(each, ast.Call):
            continue
        called = each.func
        holder: ast.AST | None = None
        if isinstance(called, ast.Attribute) and called.attr in ("data_ptr", "untyped_storage", "storage"):
            holder = called.value
        elif isinstance(called, ast.Name) and called.id in ("id", "hash") and each.args:
            holder = each.args[0]
        if isinstance(holder, ast.Name) and holder.id in inputs:
            return True
    return False


def _looks_up(node: ast.AST, keys: set[str], inputs: set[str]) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        key: ast.AST = node.slice
    elif (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "setdefault")
    ):
        if not node.args:
            return False
        key = node.args[0]
    else:
        return False
    if isinstance(key, ast.Name):
        return key.id in keys
    return _has_identity(key, inputs)


def _kept_names(function: ast.AST) -> set[str]:
    return {
        each.value.id
        for each in ast.walk(function)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Name)
    }


def _bound_and_returned(function: ast.AST, lookup: ast.AST, returned: set[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.NamedExpr)) and node.value is lookup:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return any(isinstance(target, ast.Name) and target.id in returned for target in targets)
    return False


def _identity_test(node: ast.AST, inputs: set[str]) -> bool:
    """`x is self.last_x`, `x.data_ptr() == self.pointer`."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    stored = any(isinstance(each, (ast.Attribute, ast.Subscript)) for each in sides)
    if any(isinstance(op, ast.Is) for op in node.ops):
        return stored and any(isinstance(each, ast.Name) and each.id in inputs for each in sides)
    return any(_has_identity(each, inputs) for each in sides) and any(isinstance(op, ast.Eq) for op in node.ops)


def _branch_returns(function: ast.AST, test: ast.AST) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.If) and any(each is test for each in ast.walk(node.test)):
            return any(
                isinstance(each, ast.Return) and isinstance(each.value, (ast.Attribute, ast.Subscript, ast.Name))
                for child in node.body
                for each in ast.walk(child)
            )
    return False


def call_counter(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Something that outlives a call is counted up, and what the call does depends on the count."""
    for function in text.functions:
        counted = set()
        declared = {
            name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        }
        for node in ast.walk(function):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)) and _is_number(node.value):
                if isinstance(node.target, (ast.Attribute, ast.Subscript)) or _named(node.target) in declared:
                    counted.add(ast.unparse(node.target))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
                target = ast.unparse(node.targets[0])
                outlives = isinstance(node.targets[0], (ast.Attribute, ast.Subscript)) or target in declared
                if outlives and ast.unparse(node.value.left) == target and _is_number(node.value.right):
                    counted.add(target)
        for node in ast.walk(function):
            if isinstance(node, (ast.If, ast.IfExp)):
                asked = {ast.unparse(each) for each in ast.walk(node.test) if isinstance(each, ast.expr)}
                if asked & counted:
                    yield node, f"what it does depends on how often it was called ({sorted(asked & counted)[0]})"


def _named(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def except_fallback(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """A kernel launch under try, and a branch that computes with torch when it fails."""
    for function in text.functions:
        for node in ast.walk(function):
            if not isinstance(node, ast.Try) or not any(
                _works(text, each) for child in node.body for each in ast.walk(child)
            ):
                continue
            for handler in node.handlers:
                if any(_is_torch_work(text, each) for child in handler.body for each in ast.walk(child)):
                    yield handler, "falls back to torch when its own kernel fails"


def _works(text: Text, node: ast.AST) -> bool:
    if is_launch(node):
        return True
    own = {each.name for each in text.reached if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    return isinstance(node, ast.Call) and (text.dotted(node.func) in own or text.dotted(node.func).startswith("self."))


def _is_torch_work(text: Text, node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = text.dotted(node.func)
    plain = (
        "torch.cuda",
        "torch.empty",
        "torch.zeros",
        "torch.tensor",
        "torch.device",
        "torch.backends",
        "torch.version",
    )
    return name.startswith("torch.") and not name.startswith(plain)


def lazy_tensor(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """A tensor subclass may compute when it is looked at."""
    for node in text.inner_nodes:
        if isinstance(node, ast.ClassDef) and any(text.dotted(base) == "torch.Tensor" for base in node.bases):
            yield node, f"{node.name} is a tensor subclass: its values may be made when somebody looks"
        elif isinstance(node, ast.Attribute) and node.attr in (
            "_make_subclass",
            "_make_wrapper_subclass",
            "as_subclass",
        ):
            yield node, f"makes a tensor subclass ({node.attr})"


def own_threads(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Threads or processes that are started and, as far as the text says, never waited for."""
    waited = text.mentions("join", "result", "shutdown", "as_completed", "wait", "map")
    for node, name in text.calls(inner=False):
        if name.startswith(_STARTS) and not waited:
            yield node, f"starts {name.split('.')[-1]} and never waits for it"


def own_streams(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """A stream of its own that is never joined with the caller's."""
    joined = text.mentions("wait_stream", "wait_event", "synchronize", "record_event")
    for node, name in text.calls(inner=False):
        if name in ("torch.cuda.Stream", "torch.cuda.ExternalStream", "torch.Stream") and not joined:
            yield node, "works on a stream of its own that is never joined with the caller's"


def torch_compile(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Honest, and worth knowing: the generated kernels are not the person's."""
    for node in text.all_nodes:
        called = node.func if isinstance(node, ast.Call) else node
        if isinstance(called, ast.Attribute) and text.dotted(called) in (
            "torch.compile",
            "torch.jit.script",
            "torch.jit.trace",
        ):
            yield node, f"{text.dotted(called)} inside"


def tf32_dot(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """`tl.dot` rounds float32 operands to TF32 unless told otherwise."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Call) and text.dotted(node.func) in ("triton.language.dot", "tl.dot"):
            named = {keyword.arg: ast.unparse(keyword.value).strip("'\"") for keyword in node.keywords}
            cast = any("float16" in ast.unparse(each) or "float8" in ast.unparse(each) for each in node.args)
            if named.get("input_precision") != "ieee" and named.get("allow_tf32") != "False" and not cast:
                yield node, "tl.dot rounds float32 operands to TF32 unless input_precision says otherwise"


def precision_set(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Global precision switches: recorded, and named beside an error of that size."""
    for node in text.all_nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                name = text.dotted(target)
                if name.startswith("torch.backends.") and name.endswith(("allow_tf32", "fp32_precision", "reduction")):
                    yield node, f"sets {name}"
        elif isinstance(node, ast.Call) and text.dotted(node.func) == "torch.set_float32_matmul_precision":
            wanted = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if wanted != ["highest"]:
                yield node, "lowers the precision of float32 matrix products"
