"""The rings hold: import contracts, and an allow-list of third-party roots per package."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = {"handlers", "server", "skills", "evalcore"}

ALLOWED: list[tuple[str, set[str]]] = [
    # (module prefix, third-party roots); the longest matching prefix wins
    ("evalcore", set()),
    ("evalcore.bindings.toml", {"tomli"}),
    ("evalcore.gpu", {"torch", "triton", "numpy"}),
    ("evalcore.static", {"triton"}),
    ("evalcore.worker", {"torch", "triton"}),
    ("skills", set()),
    ("server", {"tomli"}),
    ("handlers", {"lsprotocol", "pygls"}),
    ("server.lsp", {"lsprotocol", "pygls", "attrs", "cattrs"}),
    ("server.app", {"pygls", "lsprotocol"}),
    ("server.analysis", {"tree_sitter", "tree_sitter_python", "tree_sitter_cuda"}),
    ("server.ledger", {"sqlite_utils"}),
    ("server.ledger.parquet", {"sqlite_utils", "pyarrow"}),
    ("server.plot", {"matplotlib"}),
    ("server.watch", {"watchdog"}),
    ("server.llm.child", {"litellm"}),
]
"""`tomli` is the standard library's tomllib on Python 3.10; pyarrow and matplotlib are extras with one door each."""


def modules() -> list[tuple[str, Path]]:
    """Every module of ours as (dotted name, path)."""
    found = []
    for package in sorted(OURS):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            found.append((".".join(parts), path))
    return found


def allowed_for(module: str) -> set[str]:
    """Third-party roots that `module` may import."""
    best = max((p for p, _ in ALLOWED if module == p or module.startswith((p + ".", p + "_"))), key=len)
    return dict(ALLOWED)[best]


def imported_roots(path: Path) -> set[str]:
    """First components of all absolute imports in a file, wherever they stand."""
    roots = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are literal, never relative"
            roots.add((node.module or "").split(".")[0])
    return roots


@pytest.mark.parametrize(("module", "path"), modules(), ids=[name for name, _ in modules()])
def test_third_party_imports_are_on_the_allow_list(module: str, path: Path) -> None:
    third_party = imported_roots(path) - set(sys.stdlib_module_names) - OURS
    assert third_party <= allowed_for(module), f"{module} imports {sorted(third_party - allowed_for(module))}"


def test_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(lint), "--config", str(ROOT / ".importlinter"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_no_module_has_a_standard_library_name() -> None:
    clashes = [
        name for name, path in modules()
        if path.stem in sys.stdlib_module_names and path.stem not in {"__init__", "__main__"}
    ]  # fmt: skip
    assert clashes == []


def test_package_files_export_nothing() -> None:
    for name, path in modules():
        if path.name == "__init__.py":
            body = ast.parse(path.read_text("utf-8")).body
            alone = len(body) == 1 and isinstance(body[0], ast.Expr)
            assert alone, f"{name}: __init__ holds a docstring and nothing else"
