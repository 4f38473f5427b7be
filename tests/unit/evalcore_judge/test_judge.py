"""The golden table of the judge: facts in, verdict out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalcore.jobs import Reason
from evalcore.judge import OutsideClock, judge
from evalcore.problem import Case
from evalcore.results import BottleneckType, Status
from evalcore.screen import ScreenHit
from tests.unit.evalcore_judge.made import (
    CEILINGS,
    GIVEN,
    WORK,
    WRONG,
    crash,
    facts,
    samples,
    stats,
    trial,
)

REDUCED = Case(name="rows=96", sizes=(("rows", 96),), origin="reduced", timed=False)
NEIGHBOUR = Case(name="n=4097", sizes=(("n", 4097),), origin="neighbour", timed=False)
PROOF = ScreenHit(rule="patches-judge", line=3, column=1, message="replaces time.time", gate=True, proof=True)
GATE = ScreenHit(rule="threads", line=3, column=1, message="starts Thread and never waits for it", gate=True)
NOTE = ScreenHit(rule="torch-compile", line=3, column=1, message="torch.compile inside", gate=False)
DOT = ScreenHit(rule="tf32-dot", line=3, column=1, message="tl.dot", gate=False)
FALLBACK = ScreenHit(rule="except-fallback", line=9, column=1, message="falls back to torch", gate=True)
TF32 = stats(
    out_of_tolerance=900,
    measured_out=900,
    max_abs_error=5e-4,
    max_rel_error=5e-4,
    exact_error=5e-4,
    region="everywhere",
)
R_WRONG = trial(WRONG, case="rows=96", origin="reduced")
N_WRONG = trial(WRONG, case="n=4097", kind="neighbour", origin="neighbour")
FORMAT_TF32 = trial(replace(TF32, tolerance_origin="format"))
INTEGERS = trial(stats(tolerance_origin="exact", out_of_tolerance=1, got=3.0, want=4.0, dtype="int64"))
FELL = crash("exception")
C, I, E = Status.CORRECT, Status.INCORRECT, Status.ERROR
UNSEEN = Reason.NOT_JUDGEABLE
BLIND = ({"probe": "zeros", "caught": False, "caught_by_measured": True, "case": ""},)
LOOSE = stats(tolerance_origin="format", atol=1e-2, rtol=1e-2, measured_out=40, max_rel_error=1e-3, exact_error=1e-3)

GOLDEN: list[tuple[str, dict[str, Any], Status, Reason | None, str]] = [
    ("right", {}, C, None, ""),
    ("wrong", {"trials": (trial(WRONG),)}, I, None, "all in the last 7 columns"),
    ("wrong later", {"trials": (trial(), trial(WRONG, seed=2))}, I, None, "state kept between calls"),
    ("shape", {"trials": (trial(stats(problem="shape [4] instead of [5]")),)}, I, None, "shape [4]"),
    ("nan", {"trials": (trial(stats(nonfinite_mismatch=3, got=float("nan"))),)}, I, None, "NaN instead"),
    ("mutated", {"trials": (trial(mutated_inputs=("x",)),)}, I, None, "changed x"),
    ("no outputs", {"trials": (replace(trial(), outputs=()),)}, I, None, "nothing was returned"),
    ("canary", {"canaries": ("x (past its end)",)}, I, None, "past its end"),
    ("timed wrong", {"trials": (trial(), trial(WRONG, kind="timed"))}, I, None, "in a timed call"),
    ("gradient", {"trials": (trial(), trial(WRONG, kind="backward"))}, I, None, "gradient"),
    ("nothing run", {"trials": ()}, E, UNSEEN, "nothing was run"),
    ("compile", {"crash": crash("compile"), "trials": ()}, Status.COMPILE_ERROR, None, "it broke"),
    ("resources", {"crash": crash("out_of_resources"), "trials": ()}, Status.COMPILE_ERROR, None, "it broke"),
    ("exception", {"crash": FELL, "trials": ()}, E, Reason.CRASH, "it broke"),
    ("bounds", {"crash": crash("out_of_bounds"), "trials": ()}, E, Reason.CRASH, "it broke"),
    ("timeout", {"crash": crash("timeout"), "trials": ()}, E, Reason.TIMEOUT, "it broke"),
    ("memory", {"crash": crash("out_of_memory"), "trials": ()}, E, Reason.OUT_OF_MEMORY, "it broke"),
    ("killed", {"crash": crash("killed", signal=11), "trials": ()}, E, Reason.CRASH, "it broke"),
    ("exit 0", {"crash": crash("exit", exit_code=0), "trials": ()}, E, Reason.CRASH, "exit code 0"),
    ("no card", {"crash": crash("cannot_interpret"), "trials": ()}, E, UNSEEN, "it broke"),
    ("crash in a later trial", {"trials": (trial(), trial(crash=FELL))}, E, Reason.CRASH, "it"),
    ("reference", {"reference_crash": FELL}, E, UNSEEN, "the reference itself"),
    ("proof", {"screen": (PROOF,)}, E, Reason.CHEATING, "line 3: replaces time.time"),
    ("gate, a person", {"screen": (GATE,)}, C, None, ""),
    ("gate, a model", {"screen": (GATE,), "trusted": False}, E, Reason.CHEATING, "never waits"),
    ("note, a model", {"screen": (NOTE,), "trusted": False}, C, None, ""),
    ("compile before screen", {"screen": (PROOF,), "crash": crash("compile")}, Status.COMPILE_ERROR, None, "it"),
    ("tampered", {"tampered": ("time.perf_counter",)}, E, Reason.CHEATING, "time.perf_counter"),
    ("called the reference", {"called_reference": True}, E, Reason.CHEATING, "called the reference (Model)"),
    ("decoy", {"trials": (trial(), trial(kind="ablated"))}, E, Reason.CHEATING, "decoy"),
    ("no decoy", {"trials": (trial(), trial(WRONG, kind="ablated"))}, C, None, ""),
    ("fallback", {"screen": (FALLBACK,), "launched": False}, E, Reason.CHEATING, "except branch"),
    ("fallback not taken", {"screen": (FALLBACK,)}, C, None, ""),
    ("TF32 named", {"trials": (trial(TF32),), "screen": (DOT,)}, C, None, ""),
    ("TF32 without a dot", {"trials": (trial(TF32),)}, I, None, "TF32 or fp16"),
    ("TF32 past a format's tolerance", {"trials": (FORMAT_TF32,), "screen": (DOT,)},
     I, None, "TF32 or fp16"),
    ("a format that is blind", {"trials": (trial(LOOSE),), "probes": BLIND}, I, None, "would pass zeros too"),
    ("a format that sees", {"trials": (trial(LOOSE),)}, C, None, ""),
    ("only reduced, wrong", {"cases": (REDUCED,), "trials": (R_WRONG,)},
     E, UNSEEN, "cannot be run here"),
    ("reduced wrong, given right", {"cases": (GIVEN, REDUCED), "trials": (trial(), R_WRONG)},
     E, UNSEEN, "right at the given sizes"),
    ("reduced wrong, given wrong", {"cases": (GIVEN, REDUCED), "trials": (R_WRONG, trial(WRONG))},
     I, None, "last 7"),
    ("reduced raises", {"cases": (REDUCED,), "crash": FELL, "trials": ()}, E, UNSEEN, "reduced"),
    ("neighbour wrong", {"cases": (GIVEN, NEIGHBOUR), "trials": (trial(), N_WRONG)},
     C, None, ""),
    ("integers", {"trials": (INTEGERS,)},
     I, None, "3 instead of 4"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "status", "reason", "words"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_golden(name: str, changes: dict[str, Any], status: Status, reason: Reason | None, words: str) -> None:
    verdict = judge(facts(**changes))
    assert (verdict.result.status, verdict.reason) == (status, reason), verdict.result.error
    assert verdict.result.correct == (status is Status.CORRECT)
    assert words in (verdict.result.error or "")


def codes(**changes: Any) -> list[str]:
    return [flag.code for flag in judge(facts(**changes)).flags]


def test_flags_beside_a_right_verdict() -> None:
    assert codes() == []
    assert "interpreted" in codes(interpreted=True)
    assert "no-custom-kernel" in codes(launched=False)
    assert "degenerate-problem" in codes(probes=BLIND)
    assert "lower-precision" in codes(trials=(trial(TF32),), screen=(DOT,))
    assert "lower-precision" in codes(trials=(trial(LOOSE),))
    assert "screen-threads" in codes(screen=(GATE,))
    assert codes(screen=(NOTE,)) == []
    assert "threads-left" in codes(threads_left=1)
    assert "not-deterministic" in codes(trials=(trial(), trial(stats(max_abs_error=1e-3), kind="repeat")))
    assert codes(trials=(trial(), trial(stats(max_abs_error=0.0), kind="repeat"))) == []
    assert "disturbed" in codes(samples=(samples("candidate", "device", 30.0, throttle=("sw_power_cap",)),))


def test_the_smallest_failing_neighbour_is_named() -> None:
    small = Case(name="n=17", sizes=(("n", 17),), origin="neighbour")
    wrong = [trial(WRONG, case=case.name, kind="neighbour", origin="neighbour") for case in (NEIGHBOUR, small)]
    verdict = judge(facts(cases=(GIVEN, NEIGHBOUR, small), trials=(trial(), *wrong)))
    words = {flag.code: flag.message for flag in verdict.flags}["fails-at-other-sizes"]
    assert words.startswith("wrong at n=17: max abs error 0.013") and "last 7 columns" in words
    assert [report.status for report in verdict.cases] == ["right", "wrong", "wrong"]


def test_a_right_half_precision_kernel_is_as_exact_as_torch() -> None:
    half = stats(dtype="float16", out_of_tolerance=3, tolerance_origin="format", max_abs_error=0.02, exact_error=1e-3,
                 reference_error=1e-3, magnitude=10.0)  # fmt: skip
    verdict = judge(facts(trials=(trial(half),)))
    assert verdict.result.correct
    assert "as exact as torch, 1.0x its error" in verdict.flags[0].message
    worse = replace(half, exact_error=5e-3)
    assert not judge(facts(trials=(trial(worse),))).result.correct
    garbage = replace(half, reference_error=9.0, exact_error=9.0)
    assert not judge(facts(trials=(trial(garbage),))).result.correct


def test_reports_carry_the_worst_error_and_the_words() -> None:
    report = judge(facts(trials=(trial(), trial(WRONG, seed=9)))).cases[0]
    assert (report.trials, report.trials_right, report.status) == (2, 1, "wrong")
    assert report.message == "max abs error 0.013 at [3, 512], 0.4 % of elements out, all in the last 7 columns"
    timed = judge(facts(trials=(trial(), trial(kind="timed"), trial(WRONG, kind="timed")))).cases[0]
    assert (timed.trials, timed.trials_right, timed.status) == (1, 1, "wrong")
    assert judge(facts()).cases[0].message == "as exact as torch, 1.0x its error"


TIMED = (
    samples("candidate", "device", 34.0, 34.4, 34.2), samples("candidate", "call", 40.0, 41.0, 42.0),
    samples("reference", "device", 80.0, 79.0, 81.0), samples("candidate", "graph", 36.0),
)  # fmt: skip


def test_times_make_speedup_floor_regime_and_profile() -> None:
    verdict = judge(facts(samples=TIMED, ceilings=CEILINGS, work=((GIVEN.name, WORK),)))
    result = verdict.result
    assert result.runtime_us == 34.2 and result.ref_runtime_us == 80.0
    assert result.speedup == pytest.approx(80.0 / 34.2)
    assert verdict.timing is not None and verdict.timing["interval_us"] == [34.0, 34.4]
    assert (verdict.timing["call_us"], verdict.timing["graph_us"], verdict.timing["n"]) == (41.0, 36.0, 3)
    moved = (64 << 20) + (14 << 20)
    assert verdict.floor_us == pytest.approx(moved / 4e6)
    assert verdict.regime == "memory-bound"
    profile = result.profile
    assert profile is not None and profile.bottleneck_type is BottleneckType.MEMORY_BOUND
    assert profile.roofline_position == pytest.approx(moved / 4e6 / 34.2)
    assert profile.occupancy is None and profile.cache_efficiency is None and profile.top_stalls == ()
    assert "counted" in profile.raw_metrics["roofline_position"]


def test_the_strongest_admissible_opponent_is_named() -> None:
    rows = (
        {"name": "eager", "admissible": True, "runtime_us": 80.0},
        {"name": "x", "admissible": False, "runtime_us": 9.0},
    )
    verdict = judge(facts(samples=TIMED, opponents=rows))
    assert verdict.timing is not None
    assert verdict.timing["strongest"] == {"name": "eager", "runtime_us": 80.0, "speedup": pytest.approx(80.0 / 34.2)}


def test_a_tf32_product_is_held_against_the_tf32_roof() -> None:
    heavy = replace(WORK, flops=17_000_000_000)
    plain = judge(facts(samples=TIMED, ceilings=CEILINGS, work=((GIVEN.name, heavy),)))
    tf32 = judge(facts(samples=TIMED, ceilings=CEILINGS, work=((GIVEN.name, heavy),), screen=(DOT,)))
    assert plain.floor_us == pytest.approx(340.0) and tf32.floor_us == pytest.approx(47.22, rel=1e-3)


def test_a_reference_timed_by_another_timer_gives_no_speedup() -> None:
    mixed = (samples("candidate", "device", 34.0), samples("reference", "device", 80.0, timer="events"))
    assert judge(facts(samples=mixed)).result.speedup is None


def test_speed_without_correctness_is_nothing() -> None:
    verdict = judge(facts(samples=TIMED, trials=(trial(WRONG),)))
    assert verdict.result.runtime_us is None and verdict.result.speedup is None and verdict.timing is None


def test_a_time_that_memory_forbids_is_no_result() -> None:
    fast = (samples("candidate", "device", 9.0, 9.1, 9.2),)
    verdict = judge(facts(samples=fast, ceilings=CEILINGS, work=((GIVEN.name, WORK),)))
    assert (verdict.result.status, verdict.reason, verdict.regime) == (
        Status.ERROR,
        Reason.CHEATING,
        "memory-impossible",
    )
    assert verdict.result.speedup is None


def test_the_outside_clock_bounds_what_is_claimed() -> None:
    honest = OutsideClock(launches=100, seconds=100 * 45e-6, outputs_right=True)
    verdict = judge(facts(samples=TIMED, outside=honest))
    assert verdict.result.correct and verdict.clock == "bounded"
    slow = OutsideClock(launches=100, seconds=100 * 500e-6, outputs_right=True)
    assert judge(facts(samples=TIMED, outside=slow)).reason is Reason.CHEATING
    wrong = OutsideClock(launches=100, seconds=100 * 45e-6, outputs_right=False)
    assert judge(facts(samples=TIMED, outside=wrong)).result.status is Status.INCORRECT
    assert judge(facts(samples=TIMED)).clock == "inside"


def test_a_degenerate_problem_accuses_nobody_of_a_decoy() -> None:
    nothing_sees = ({"probe": "zeros", "caught": False, "caught_by_measured": False, "case": ""},)
    verdict = judge(facts(trials=(trial(), trial(kind="ablated")), probes=nothing_sees))
    assert verdict.result.correct
    assert verdict.flags[0].message == "this check cannot tell zeros from the answer"


def test_same_facts_same_verdict() -> None:
    first = facts(samples=TIMED, ceilings=CEILINGS, work=((GIVEN.name, WORK),), screen=(GATE, NOTE), probes=BLIND)
    assert judge(first) == judge(first)
