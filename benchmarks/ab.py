"""How often an A/B is wrong: a text against itself, and planted slowdowns of 2 % and 5 %.

    python benchmarks/ab.py --out benchmarks/results/ab.json [--quick]

A planted slowdown is real work: more multiply-adds, or more elements. What it really costs is measured beside it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.report import environment, write
from benchmarks.timed_kernels import TABLE, add, work

Body = Callable[[list[Any]], Any]

SELF_RUNS = 200
PLANTED = ((0.02, 20), (0.05, 50))
WORK_ROUNDS = 400
ELEMENTS = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two callables and their common inputs."""

    name: str
    a: Body
    b: Body
    make: Callable[[], list[Any]]
    more: float = 0.0
    """By how much B's work is greater."""


def planted(more: float) -> list[Contest]:
    """Contests in which B does `more` of A's work: arithmetic in one, elements in the other."""
    rounds = round(WORK_ROUNDS * (1 + more))
    few, many = ELEMENTS, round(ELEMENTS * (1 + more))
    return [
        Contest(
            name="more arithmetic",
            a=work(WORK_ROUNDS),
            b=work(rounds),
            make=lambda: [torch.randn(4 << 20, device="cuda")],
            more=rounds / WORK_ROUNDS - 1,
        ),
        Contest(
            name="more elements",
            a=lambda inputs: add([each[:few] for each in inputs]),
            b=lambda inputs: add([each[:many] for each in inputs]),
            make=lambda: [torch.randn(many, device="cuda") for _ in range(2)],
            more=many / few - 1,
        ),
    ]


def selves() -> list[Contest]:
    """Texts against themselves, from 3 us to 200 us."""
    names = ("softmax 1024x1024", "softmax 4096x4096", "matmul 2048 fp16", "work 4 Mi x 256", "add 16 Mi")
    found = {timed.name: timed for timed in TABLE}
    return [Contest(name=name, a=found[name].call, b=found[name].call, make=found[name].make) for name in names]


def run(clock: Any, contest: Contest, times: int) -> list[dict[str, Any]]:
    """`times` A/B comparisons of one contest, with their verdicts."""
    from evalcore.gpu.ab import Sides, interleave
    from evalcore.gpu.ring import LocalRing
    from evalcore.stats import compare_pairs

    inputs = contest.make()
    sides = Sides(a=contest.a, b=contest.b, ring=LocalRing(inputs))
    contest.a(inputs)
    contest.b(inputs)
    rows = []
    for _ in range(times):
        start = time.perf_counter()
        of_a, of_b = interleave(clock, sides)
        got = compare_pairs(of_a.values_us, of_b.values_us)
        rows.append(
            {
                "verdict": got.verdict,
                "ratio": got.ratio,
                "low": got.low,
                "high": got.high,
                "pairs": got.n,
                "a_us": statistics.median(of_a.values_us),
                "seconds": time.perf_counter() - start,
            }
        )
    return rows


def told(rows: list[dict[str, Any]], contest: Contest) -> dict[str, Any]:
    """One contest in short."""
    counts = {word: sum(row["verdict"] == word for row in rows) for word in ("faster", "slower", "same", "ambiguous")}
    ratios = [row["ratio"] for row in rows]
    line = {
        "contest": contest.name,
        "more_work": contest.more,
        "runs": len(rows),
        "verdicts": counts,
        "a_us": statistics.median(row["a_us"] for row in rows),
        "ratio_median": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "half_width_median": statistics.median((row["high"] - row["low"]) / 2 for row in rows),
        "seconds_median": statistics.median(row["seconds"] for row in rows),
    }
    print(
        f"{contest.name:20s} +{contest.more:5.1%} {line['a_us']:8.2f} us x{line['ratio_median']:.4f} "
        f"+-{line['half_width_median']:.4f} {counts} {line['seconds_median'] * 1e3:.0f} ms each"
    )
    return line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    args = parser.parse_args()
    from evalcore.gpu.timing import Clock

    begin = time.perf_counter()
    part = 10 if args.quick else 1
    torch.zeros(1, device="cuda")
    clock = Clock("cuda:0")
    clock.warm()
    lines: dict[str, list[dict[str, Any]]] = {"self": []}
    contests = selves()
    for contest in contests:
        lines["self"].append(told(run(clock, contest, SELF_RUNS // len(contests) // part), contest))
    for more, runs in PLANTED:
        kinds = planted(more)
        each = max(1, runs // part // len(kinds))
        lines[f"planted {more:.0%}"] = [told(run(clock, contest, each), contest) for contest in kinds]
    wrong = sum(line["verdicts"]["faster"] + line["verdicts"]["slower"] for line in lines["self"])
    summary = {
        "self_runs": sum(line["runs"] for line in lines["self"]),
        "self_called_different": wrong,
        "timer": clock.timer,
        "notes": clock.notes,
        "seconds": round(time.perf_counter() - begin, 1),
    }
    for more, _runs in PLANTED:
        rows = lines[f"planted {more:.0%}"]
        summary[f"planted_{more:.0%}_runs"] = sum(line["runs"] for line in rows)
        summary[f"planted_{more:.0%}_found"] = sum(line["verdicts"]["slower"] for line in rows)
    for key, value in summary.items():
        print(f"  {key}: {value}")
    if args.out:
        write(args.out, {"benchmark": "ab", "environment": environment(), "summary": summary, "contests": lines})
    return 0


if __name__ == "__main__":
    sys.exit(main())
