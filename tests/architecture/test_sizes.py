"""Files and functions stay small enough to be read; the ten largest are printed."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 400
FUNCTION_LINES = 60


def sources() -> list[Path]:
    """Every Python file of the product."""
    packages = ("handlers", "server", "skills", "evalcore")
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def test_files_are_at_most_400_lines() -> None:
    sizes = [(len(path.read_text("utf-8").splitlines()), str(path.relative_to(ROOT))) for path in sources()]
    sizes.sort(reverse=True)
    print("\n".join(f"{lines:5d} {name}" for lines, name in sizes[:10]))
    assert [row for row in sizes if row[0] > FILE_LINES] == []


def test_functions_are_at_most_60_lines() -> None:
    sizes = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                sizes.append((lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
    sizes.sort(reverse=True)
    print("\n".join(f"{lines:5d} {name}" for lines, name in sizes[:10]))
    assert [row for row in sizes if row[0] > FUNCTION_LINES] == []


def test_every_module_says_what_it_owns() -> None:
    mute = [str(p.relative_to(ROOT)) for p in sources() if not ast.get_docstring(ast.parse(p.read_text("utf-8")))]
    assert mute == []
