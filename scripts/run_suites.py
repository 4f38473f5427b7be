"""Runs every suite in order, prints what each took, and ends with one line of totals.

Usage: run_suites.py [--full] [SUITE ...]. Exit 1 when any suite failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|errors|deselected)\b")


@dataclass(frozen=True)
class Suite:
    """One command and whether it belongs to the short form."""

    name: str
    command: list[str]
    full_only: bool = False
    full_extra: list[str] = field(default_factory=list)


def pytest(*paths: str) -> list[str]:
    """pytest over `paths`, quiet; the long forms are deselected unless --full replaces the mark expression."""
    return [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]


SUITES = [
    Suite("lint", [PYTHON, "-m", "ruff", "check", "."]),
    Suite("types", [PYTHON, "-m", "mypy"]),
    Suite("architecture", pytest("tests/architecture")),
    Suite("unit", pytest("tests/unit", "tests/marked", "tests/wire")),
    Suite("lsp", pytest("tests/lsp")),
    Suite("kernels", pytest("tests/kernels")),
    Suite("hostile", pytest("tests/hostile")),
    Suite("mutants", pytest("tests/mutants")),
    Suite("gpu", pytest("tests/gpu")),
    Suite("editors", ["bash", "tests/e2e/run.sh", "all"]),
]


def run(suite: Suite, *, full: bool) -> tuple[bool, float, dict[str, int]]:
    """Run one suite with its output streamed; return whether it passed, seconds, and the counts it printed."""
    command = list(suite.command)
    if "pytest" in command:
        command += ["-m", "slow or not slow"] if full else ["-m", "not slow"]
    started = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )  # fmt: skip
    counts: dict[str, int] = {}
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write("  " + line)
        sys.stdout.flush()
        if re.search(r"\bin \d+(\.\d+)?s\b", line) or line.startswith("suite totals:"):
            for number, word in COUNT.findall(line):
                word = "failed" if word.startswith("error") else word
                counts[word] = counts.get(word, 0) + int(number)
    code = process.wait()
    passed = code == 0 or (code == 5 and "pytest" in command)  # 5: nothing collected, e.g. gpu tests without a card
    return passed, time.monotonic() - started, counts


def main() -> int:
    """Run the chosen suites and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the long forms too (all kills, all mutants)")
    parser.add_argument("suites", nargs="*", help=f"any of: {', '.join(s.name for s in SUITES)}")
    options = parser.parse_args()
    unknown = set(options.suites) - {s.name for s in SUITES}
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    chosen = [s for s in SUITES if not options.suites or s.name in options.suites]
    rows = []
    for suite in chosen:
        print(f"== {suite.name}", flush=True)
        rows.append((suite.name, *run(suite, full=options.full)))
    print("\nsuite          result   seconds  tests")
    total: dict[str, int] = {}
    for name, passed, seconds, counts in rows:
        told = ", ".join(f"{n} {w}" for w, n in counts.items())
        print(f"{name:<14} {'ok' if passed else 'FAILED':<8} {seconds:7.1f}  {told}")
        for word, number in counts.items():
            total[word] = total.get(word, 0) + number
    broken = [name for name, passed, _, _ in rows if not passed]
    failed = total.get("failed", 0) or len(broken)
    print(f"total {sum(row[2] for row in rows):.0f} s")
    print(f"{total.get('passed', 0)} passed, {failed} failed, {total.get('skipped', 0)} skipped")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
