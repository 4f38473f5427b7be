"""Owns the comment format: `# odyssey: reference=... inputs=...` in Python, `// odyssey: ...` in CUDA. Runs nothing.

Keys: reference, inputs, candidate, kernel, tolerance, sizes, backward; for CUDA also grid, block, args, outputs,
shared, options. Adjacent lines belong together; several blocks in one file are several problems.
"""

from __future__ import annotations

import ast
import re

from evalcore.bindings.binding import Binding, Reader
from evalcore.bindings.declared import Declaration, build
from evalcore.jobs import Refusal

FORMAT = "comment"
MARK = "odyssey:"
_LINE = re.compile(r"^\s*(?:#|//)\s*odyssey:\s*(?P<rest>.*?)\s*$")
_KEYS = (
    "reference", "inputs", "candidate", "kernel", "tolerance", "sizes", "backward", "grid", "block", "args", "outputs",
    "shared", "options",
)  # fmt: skip
_KEY = re.compile(rf"(?:(?<=\s)|^)({'|'.join(_KEYS)})\s*=(?!=)\s*")
_PAIR = re.compile(r"(\w+)\s*[:=]\s*([^,;|\s]+)")


def bind_comment(path: str, text: str, read: Reader) -> list[Binding | Refusal]:
    """One binding, or a refusal that says what does not fit, for each block of comment lines."""
    if MARK not in text:
        return []
    return [build(each, path, text, read=read, format=FORMAT) for each in declarations(text)]


def declarations(text: str) -> list[Declaration]:
    """The declarations of a text, in order."""
    found: list[Declaration] = []
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        match = _LINE.match(line)
        if match:
            start = start if block else number
            block.append(match["rest"])
        elif block:
            found.append(_declaration(" ".join(block), start))
            block = []
    return [each for each in found if each is not None]


def _declaration(text: str, line: int) -> Declaration:
    words = split_keys(text)
    declared = Declaration(where=f"the comment in line {line}", line=line)
    for key in ("reference", "inputs", "candidate", "kernel", "grid", "block"):
        setattr(declared, key, words.get(key, ""))
    declared.shared = words.get("shared", "0")
    declared.args = listed(words.get("args", ""))
    declared.outputs = listed(words.get("outputs", ""))
    declared.options = tuple(words.get("options", "").split())
    declared.backward = words.get("backward", "").lower() in {"1", "true", "yes"}
    declared.tolerance = tolerance(words.get("tolerance", ""))
    declared.sizes = sizes(words.get("sizes", ""))
    return declared


def split_keys(text: str) -> dict[str, str]:
    """`key=value key=value`, where a value ends before the next known key that stands outside brackets and quotes."""
    places = [match for match in _KEY.finditer(text) if _outside(text, match.start())]
    found: dict[str, str] = {}
    for match, following in zip(places, [*places[1:], None], strict=False):
        end = following.start() if following else len(text)
        found.setdefault(match[1], text[match.end() : end].strip().rstrip(",;"))
    return found


def _outside(text: str, position: int) -> bool:
    depth = 0
    quote = ""
    for character in text[:position]:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
    return depth <= 0 and not quote


def listed(text: str) -> tuple[str, ...]:
    """`(x, out, n)` or `x, out, n` as source pieces."""
    if not text.strip():
        return ()
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return tuple(part.strip() for part in text.strip("() ").split(",") if part.strip())
    nodes = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return tuple(ast.unparse(each) for each in nodes)


def tolerance(text: str) -> tuple[float, float] | None:
    """(atol, rtol) from `1e-3`, `1e-3,1e-2` or `atol:1e-3,rtol:1e-2`; None for anything else."""
    pairs = {name.lower(): _number(value) for name, value in _PAIR.findall(text)}
    if pairs:
        atol, rtol = pairs.get("atol", 0.0), pairs.get("rtol", 0.0)
    else:
        numbers = [_number(part) for part in text.replace(",", " ").split()]
        if not numbers:
            return None
        atol, rtol = numbers[0], numbers[-1]
    return None if atol is None or rtol is None or atol < 0 or rtol < 0 else (atol, rtol)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def sizes(text: str) -> list[dict[str, int]]:
    """`M:1024,N:781; M:64,N:64` as settings; `;` or `|` stands between two. `M=...` works too."""
    found = []
    for part in re.split(r"[;|]", text):
        setting = {}
        for name, value in _PAIR.findall(part):
            number = _number(value.replace("_", ""))
            if number is not None and number == int(number) and number >= 1:
                setting[name] = int(number)
        if setting:
            found.append(setting)
    return found
