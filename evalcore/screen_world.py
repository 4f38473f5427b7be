"""Owns the rules about the world outside a kernel: files, processes, the network, the environment, the output."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from evalcore.screen_text import Text, strings

_SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp", ".ptx", ".json", ".toml")
_READERS = (
    "open", "io.open", "torch.load", "numpy.load", "pickle.load", "os.open", "os.read", "os.listdir", "os.scandir",
    "os.walk", "glob.glob", "glob.iglob", "mmap.mmap", "torch.from_file", "safetensors.torch.load_file",
    "torch.UntypedStorage.from_file",
)  # fmt: skip
_OPENS = ("open", "io.open")
_READ_METHODS = ("read_bytes", "rglob", "iterdir")
_WRITERS = (
    "os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.rename", "os.replace", "os.truncate", "os.chmod",
    "os.symlink", "os.link", "shutil.", "torch.save", "numpy.save", "pickle.dump",
)  # fmt: skip
_WRITE_METHODS = ("write_bytes", "unlink", "rmdir", "touch")
_SYSTEM = (
    "subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn", "pty.", "socket.", "urllib.",
    "http.", "requests.", "httpx.", "aiohttp.", "ftplib.", "smtplib.", "os.kill", "os.killpg", "os.setuid", "os.dup2",
    "fcntl.", "ptrace", "resource.setrlimit", "os.sched_setaffinity", "multiprocessing.shared_memory",
)  # fmt: skip
_ENDS = ("os._exit", "sys.exit", "exit", "quit", "os.abort", "os.kill", "signal.raise_signal")
_FORGED = (
    '"status"',
    "'status'",
    '"frame"',
    '"correct"',
    "'correct'",
    "runtime_us",
    '"speedup"',
    "VERDICT",
    '"result"',
    "passed",
)


def reads_files(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Data read inside a call, folders searched. Sources and settings, read as text, are everyday."""
    for node, name in text.calls():
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in _READERS and method not in _READ_METHODS:
            continue
        source = any(each.endswith(_SOURCES) for each in strings(node.func) + strings(node))
        as_text = name in _OPENS and ("b" not in _mode(node) or bool(_mode(node) & set("wax+")))
        if not source and not as_text:
            yield node, f"reads files while it computes ({name or method})"


def writes_files(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Files deleted, moved, or written as data."""
    for node, name in text.calls(inner=False):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        binary = name in _OPENS and bool(_mode(node) & set("wax+")) and "b" in _mode(node)
        if name.startswith(_WRITERS) or method in _WRITE_METHODS or binary:
            yield node, f"writes or deletes files ({name or method})"


def writes_text(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Text written: generated code and logs are honest, a note is enough."""
    for node, name in text.calls(inner=False):
        if name in _OPENS and _mode(node) & set("wax+") and "b" not in _mode(node):
            yield node, "writes text files"


def _mode(node: ast.Call) -> set[str]:
    """The letters of an open's mode; {'r'} where it gives none."""
    given = list(node.args[1:2]) + [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    return {letter for each in given if isinstance(each, ast.Constant) for letter in str(each.value)} or {"r"}


def system(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Other processes, the network, descriptors."""
    for node, name in text.calls(inner=False):
        if name.startswith(_SYSTEM):
            yield node, f"uses {name}"


def native(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Native code by ctypes: a driver call is honest, a note is enough."""
    for node, name in text.calls(inner=False):
        if name.startswith(("ctypes.", "cffi.")):
            yield node, f"native code through {name}"


def ends_process(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Ends the process from inside a call."""
    for node, name in text.calls():
        if name in _ENDS:
            yield node, f"ends the process ({name})"


def forged_print(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """Prints what looks like a verdict."""
    for node, name in text.calls(inner=False):
        if name in (
            "print",
            "sys.stdout.write",
            "sys.stderr.write",
            "os.write",
            "sys.__stdout__.write",
            "sys.stdout.buffer.write",
        ):
            said = " ".join(repr(each) for each in strings(node))
            if name == "os.write" or any(word in said for word in _FORGED):
                yield node, "prints what looks like a verdict"


def environment(text: Text) -> Iterator[tuple[ast.AST, str]]:
    """The whole environment, where secrets live; single settings are everyday."""
    whole = ("str", "dict", "repr", "list", "json.dumps", "print", "tuple", "sorted")
    for node, name in text.calls(inner=False):
        direct = [each for each in node.args if text.dotted(each) == "os.environ"]
        method = name in ("os.environ.items", "os.environ.copy", "os.environ.values")
        if method or (name in whole and direct):
            yield node, "reads the whole environment"
    for each in text.all_nodes:
        if isinstance(each, ast.FormattedValue) and text.dotted(each.value) == "os.environ":
            yield each, "reads the whole environment"
