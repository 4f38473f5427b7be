"""Measures the judge itself: attacks called correct, honest twins refused or accused, mutants caught, by device.

    .venv/bin/python benchmarks/judge_rates.py [--device cpu|cuda] [--out FILE]

The naive checker's column comes from tests/hostile/naive.py in the same run. On a CPU the texts that need a card are
left out and counted as left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evalcore.jobs import Measurement  # noqa: E402
from tests.hostile.corpus import ATTACKS, HONEST, TEXTS, Attack, Honest  # noqa: E402
from tests.hostile.judging import Worker, problem_of, worker  # noqa: E402
from tests.hostile.naive import verdicts  # noqa: E402
from tests.mutants.judged import judge, one_input_check  # noqa: E402
from tests.mutants.table import MUTANTS  # noqa: E402


def judged(made: Worker, each: Attack | Honest) -> Measurement:
    """One text of the hostile corpus, judged."""
    changes = {"constants": each.constants, "shapes": each.shapes} if isinstance(each, Attack) else {}
    reference = TEXTS / f"reference_{each.reference}.py"
    return made.judge(problem_of(each.path, reference, format=each.format, **changes), run_s=each.run_s)


def rate(rows: Iterable[Any], name: Callable[[Any], str], good: Callable[[Any], bool]) -> dict[str, Any]:
    """Counts of good rows and the names of the others. Every row is printed as it is judged."""
    total, bad, began = 0, [], time.monotonic()
    for row in rows:
        total += 1
        if not good(row):
            bad.append(name(row))
            print(f"  not as it should be: {name(row)}", flush=True)
    return {
        "total": total,
        "as_it_should_be": total - len(bad),
        "others": bad,
        "seconds": round(time.monotonic() - began, 1),
    }


BORDERLINE: list[str] = []
"""Attacks that were called correct with the remark that the index asks for."""


def attack_held(made: Worker, attack: Attack) -> bool:
    """Never correct, or correct with the remark that the index asks for."""
    found = judged(made, attack)
    if not found.result.correct:
        return found.result.status.value in attack.statuses
    BORDERLINE.append(attack.name)
    return bool({flag.code for flag in found.flags} & set(attack.flags))


def honest_held(made: Worker, honest: Honest) -> bool:
    """Correct, and nobody accused."""
    found = judged(made, honest)
    return found.result.correct and not [flag for flag in found.flags if flag.code.startswith("screen-")]


def naive_fooled() -> dict[str, int]:
    """How many attacks a naive checker calls correct, of those it can run on a CPU."""
    jobs = [
        (str(each.path), str(TEXTS / f"reference_{each.reference}.py"), each.naive)
        for each in ATTACKS
        if each.naive and not each.gpu
    ]
    found = verdicts(jobs)
    return {"total": len(found), "called_correct": sum(found.values())}


def measure(card: bool) -> dict[str, Any]:
    """All rates on one device."""
    attacks = [each for each in ATTACKS if card or not each.gpu]
    honest = [each for each in HONEST if card or not (each.gpu or each.slow)]
    mutants = [each for each in MUTANTS if card or not each.cuda]
    faults = [each for each in mutants if not each.equivalent]
    with worker("compile" if card else "interpret") as made:
        hello = {key: made.hello.get(key) for key in ("torch", "triton", "devices", "isolation", "evaluator_sha")}
        results: dict[str, Any] = {
            "worker": hello,
            "attacks_never_correct": rate(attacks, lambda each: each.name, lambda each: attack_held(made, each)),
            "honest_correct": rate(honest, lambda each: each.name, lambda each: honest_held(made, each)),
            "mutants_caught": rate(faults, lambda each: each.id, lambda each: not judge(made, each).result.correct),
            "equivalents_correct": rate(
                [each for each in mutants if each.equivalent],
                lambda each: each.id,
                lambda each: judge(made, each).result.correct,
            ),
        }
    results["attacks_correct_with_a_flag"] = BORDERLINE
    on_cpu = [each for each in faults if not each.cuda]
    missed = one_input_check(on_cpu)
    results["one_input_check"] = {"total": len(missed), "caught": len(missed) - sum(missed.values())}
    results["naive_checker_on_attacks"] = naive_fooled()
    results["left_out"] = len(ATTACKS) + len(HONEST) + len(MUTANTS) - len(attacks) - len(honest) - len(mutants)
    return results


def main() -> int:
    """Measure, print, and write where asked. Exit 1 where a rate is not whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = {"schema": 1, "benchmark": "judge_rates", "device": options.device, **measure(options.device == "cuda")}
    text = json.dumps(results, indent=1)
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n", encoding="utf-8")
    return 1 if any(value.get("others") for value in results.values() if isinstance(value, dict)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
