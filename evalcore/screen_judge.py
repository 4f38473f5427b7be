"""Owns the rules about attacks on the judge itself: its reference, its clock, its functions, its frames."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from evalcore.screen_text import Text, strings

_CLOCK = (
    "torch.cuda.Event", "torch.cuda.synchronize", "torch.cuda.current_stream", "torch.cuda.default_stream",
    "torch.cuda.Stream", "torch.cuda.streams", "torch.Event", "torch.profiler", "torch.autograd.profiler", "time.",
    "triton.testing", "triton.profiler", "triton.runtime.driver",
)  # fmt: skip
_COMPARISON = (
    "torch.allclose", "torch.equal", "torch.isclose", "torch.testing", "torch.eq", "torch.ne", "torch.isnan",
    "torch.isfinite", "torch.Tensor.allclose", "torch.Tensor.equal", "torch.Tensor.isclose", "torch.Tensor.__",
    "torch.Tensor.clone", "torch.Tensor.copy_", "torch.manual_seed", "torch.rand", "torch.utils.deterministic",
    "torch.empty", "numpy.testing", "numpy.allclose", "builtins.", "multiprocessing.", "evalcore.",
)  # fmt: skip
_GUARDED = _CLOCK + _COMPARISON
_HOOKS = (
    "atexit.register", "weakref.finalize", "sys.settrace", "sys.setprofile", "threading.settrace", "signal.signal",
    "signal.setitimer", "signal.pthread_sigmask", "faulthandler.register", "sys.addaudithook",
)  # fmt: skip
_FRAMES = {
    "sys._getframe": "looks into the frames of its callers",
    "sys._current_frames": "looks into the frames of all threads",
    "inspect.currentframe": "looks into the frames of its callers",
    "inspect.stack": "looks into the frames of its callers",
    "inspect.getouterframes": "looks into the frames of its callers",
    "inspect.trace": "looks into the frames of its callers",
    "gc.get_objects": "searches all objects of the process",
    "gc.get_referrers": "searches for who holds an object",
    "gc.get_referents": "searches what an object holds",
}


def called_reference(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """A call of the reference that no branch guards, an import of its file for that, or super().forward() of it."""
    if not text.entry or text.entry == text.candidate:
        return
    wanted = {text.entry, f"{text.module}.{text.entry}"} if text.module else {text.entry}
    guarded = _guarded(text)
    for node, name in text.calls():
        tail = name.lstrip(".")
        ours = tail in wanted or (text.module and tail.endswith(f".{text.module}.{text.entry}"))
        if ours and (text.module or name == text.entry) and id(node) not in guarded:
            yield node, f"calls the reference ({text.entry}) instead of computing"
    for holder in text.reached:
        if isinstance(holder, ast.ClassDef) and any(
            text.dotted(base).split(".")[-1] == text.entry for base in holder.bases
        ):
            yield from _super_forward(holder)
    if text.module:
        yield from _loads_reference(text)


def _guarded(text: Text) -> set[int]:
    """Nodes under an if, a try or a conditional expression: a path that may never be taken is not proof."""
    found: set[int] = set()
    for node in text.inner_nodes:
        if isinstance(node, (ast.If, ast.IfExp, ast.Try)):
            found.update(id(each) for each in ast.walk(node))
    return found


def _super_forward(holder: ast.ClassDef) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(holder):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("forward", "__call__")
            and isinstance(node.value, ast.Call)
        ):
            called = node.value.func
            if isinstance(called, ast.Name) and called.id == "super":
                yield node, "calls the reference's own forward through super()"


def _loads_reference(text: Text) -> Iterator[tuple[ast.AST, str]]:
    loaders = ("importlib.", "runpy.", "exec", "__import__", "open", "eval")
    for node, name in text.calls(inner=False):
        if name.startswith(loaders) or name in loaders:
            names = {each.rsplit("/", 1)[-1].removesuffix(".py") for each in strings(node)}
            if text.module in names:
                yield node, f"loads the reference's file ({text.module}.py)"


def patched(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Assignments to functions that a judge relies on: clocks, comparisons, seeds."""
    for node in text.all_nodes:
        for target in _targets(node):
            name = _target_name(text, target)
            if name and any(name == each.rstrip(".") or name.startswith(each) for each in _GUARDED) and "." in name:
                yield node, f"replaces {name}"
    for node, name in text.calls(inner=False):
        if name in ("setattr", "builtins.setattr", "object.__setattr__", "delattr") and node.args:
            owner = text.dotted(node.args[0])
            attribute = strings(node.args[1])[:1] if len(node.args) > 1 else []
            full = f"{owner}.{attribute[0]}" if attribute else f"{owner}."
            if any(full.startswith(each) or each.startswith(full) for each in _GUARDED) and _imported(text, owner):
                yield node, f"replaces {full.rstrip('.')}"
        elif name.startswith(("unittest.mock.patch", "mock.patch")):
            for each in strings(node):
                if each.startswith(_GUARDED):
                    yield node, f"replaces {each}"


def _imported(text: Text, owner: str) -> bool:
    return owner.split(".")[0] in {origin.lstrip(".").split(".")[0] for origin in text.aliases.values()}


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        flat: list[ast.expr] = []
        for target in node.targets:
            flat += target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        return flat
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [node.target]
    return list(node.targets) if isinstance(node, ast.Delete) else []


def _target_name(text: Text, target: ast.expr) -> str:
    """The resolved name of what is assigned: an attribute of an imported module, or its __dict__ entry."""
    if isinstance(target, ast.Attribute):
        name = text.dotted(target)
        return name if _imported(text, name) else ""
    if isinstance(target, ast.Subscript):
        owner: ast.AST = target.value
        if isinstance(owner, ast.Call) and text.dotted(owner.func) == "vars" and owner.args:
            base = text.dotted(owner.args[0])
        elif isinstance(owner, ast.Attribute) and owner.attr == "__dict__":
            base = text.dotted(owner.value)
        else:
            return ""
        keys = strings(target.slice)
        return f"{base}.{keys[0]}" if keys and _imported(text, base) else ""
    return ""


def walked(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Walks over loaded modules, frames and the heap, and into our own package."""
    for node in text.all_nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if any(name.split(".")[0] == "evalcore" for name in names):
                yield node, "imports the judge's own package"
        elif isinstance(node, ast.Attribute) and text.dotted(node) == "sys.modules":
            if not _own_module(text, node):
                yield node, "walks through the loaded modules"
        elif isinstance(node, ast.Call) and text.dotted(node.func) in _FRAMES:
            yield node, _FRAMES[text.dotted(node.func)]
        elif isinstance(node, ast.Attribute) and node.attr in (
            "f_back",
            "f_locals",
            "f_globals",
            "tb_frame",
            "gi_frame",
        ):
            yield node, "looks into the frames of its callers"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/proc/"):
            yield node, f"reads {node.value}"


def _own_module(text: Text, modules: ast.Attribute) -> bool:
    """`sys.modules[__name__]`, `sys.modules[cls.__module__]` and `'x' in sys.modules` are everyday code."""
    for node in text.all_nodes:
        if isinstance(node, ast.Subscript) and node.value is modules:
            key = node.slice
            return (isinstance(key, ast.Name) and key.id == "__name__") or (
                isinstance(key, ast.Attribute) and key.attr == "__module__"
            )
        if isinstance(node, ast.Compare) and modules in node.comparators:
            return True
    return False


def hidden_code(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Code that the screen cannot read: exec and eval of something computed, encoded blobs."""
    for node, name in text.calls(inner=False):
        if (
            name in ("exec", "eval", "builtins.exec", "builtins.eval")
            and node.args
            and not isinstance(node.args[0], ast.Constant)
        ):
            yield node, f"{name.split('.')[-1]} of text made at run time"
        elif name in (
            "marshal.loads",
            "pickle.loads",
            "base64.b64decode",
            "zlib.decompress",
            "codecs.decode",
            "types.CodeType",
        ):
            yield node, f"{name}: code or data that cannot be read here"


def late_work(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Hooks that run when nobody looks: at exit, on collection, on every traced call, on a signal."""
    for node, name in text.calls(inner=False):
        if name in _HOOKS:
            yield node, f"{name}: code that runs outside the call"
    for each in text.inner_nodes:
        if isinstance(each, ast.FunctionDef) and each.name in ("__del__", "__reduce__", "__reduce_ex__"):
            yield each, f"{each.name}: code that runs outside the call"
