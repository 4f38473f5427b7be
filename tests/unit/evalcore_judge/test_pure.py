"""Statistics, bounds, sizes, words for regions, tolerances and shas: pure functions, tested by their laws."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from evalcore.facts import Ceilings
from evalcore.fingerprint import evaluator_sha, needed_text, problem_sha, sha256_text
from evalcore.problem import Case, Inputs, InputsKind, Program, ProgramKind, Tolerance, Work
from evalcore.region import Spread, describe
from evalcore.roofline import floor, impossible_us, position, roof_words, strongest
from evalcore.shapes import largest_prime_below, neighbours, reduce_sizes, shrink
from evalcore.stats import StopRule, compare_pairs, median, median_interval, noise_floor, relative_error, spread
from evalcore.tolerance import deciding, derive, floor_ratio, format_tolerance, reduction_length
from evalcore.work import OpCount, elementwise_flops
from tests.unit.evalcore_judge.made import CEILINGS, problem


# ------------------------------------------------------------------ statistics
def test_median_and_spread() -> None:
    assert median([3, 1, 2]) == 2 and median([4, 1, 3, 2]) == 2.5
    assert spread([1.0]) == 0.0 and spread([1, 2, 3, 4, 100]) == pytest.approx(1.4826)
    with pytest.raises(ValueError):
        median([])


@pytest.mark.parametrize(("n", "low", "high"), [(6, 0, 5), (10, 1, 8), (25, 7, 17), (100, 39, 60)])
def test_interval_ranks_are_those_of_the_sign_test(n: int, low: int, high: int) -> None:
    assert median_interval([float(i) for i in range(n)]) == (low, high)


def test_interval_covers_the_true_median() -> None:
    random = Random(1)
    covered = 0
    for _turn in range(400):
        low, high = median_interval([random.gauss(10, 1) for _ in range(20)])
        covered += low <= 10 <= high
    assert covered >= 370


def test_stopping() -> None:
    rule = StopRule(least=5, most=50, relative_error=0.01)
    assert not rule.done([10.0] * 4)
    assert rule.done([10.0] * 10)
    noisy = [10.0, 12.0, 9.0, 13.0, 11.0, 8.0, 12.5, 9.5, 10.5, 11.5]
    assert not rule.done(noisy) and rule.done(noisy * 5)
    assert StopRule(least=5, most=50, seconds=1.0).done(noisy, elapsed_s=2.0)
    assert relative_error([]) == math.inf and noise_floor([1.0]) == math.inf
    assert noise_floor(noisy * 10) < noise_floor(noisy)


def pairs(random: Random, n: int, effect: float, noise: float = 0.004) -> tuple[list[float], list[float]]:
    """Interleaved times of two texts on a card whose clock wanders, with an outlier now and then."""
    a, b = [], []
    for index in range(n):
        drift = 1 + 0.01 * math.sin(index / 7)
        for into, times in ((a, 1.0), (b, effect)):
            outlier = 1.3 if random.random() < 0.01 else 1.0
            into.append(30.0 * drift * times * outlier * math.exp(random.gauss(0, noise)))
    return a, b


def test_a_text_against_itself_is_called_different_at_most_once_in_200() -> None:
    random = Random(7)
    verdicts = [compare_pairs(*pairs(random, 40, 1.0)).verdict for _ in range(400)]
    assert sum(verdict in ("faster", "slower") for verdict in verdicts) <= 2
    assert verdicts.count("same") > 300


@pytest.mark.parametrize(("effect", "least"), [(1.02, 190), (1.05, 200)])
def test_planted_slowdowns_are_found(effect: float, least: int) -> None:
    random = Random(8)
    found = [compare_pairs(*pairs(random, 40, effect)).verdict for _ in range(200)]
    assert found.count("slower") >= least and found.count("faster") == 0


def test_comparison_says_how_much_and_admits_ignorance() -> None:
    result = compare_pairs(*pairs(Random(9), 60, 0.9))
    assert (
        result.verdict == "faster" and result.low <= 0.9 <= result.high and result.ratio == pytest.approx(0.9, rel=0.01)
    )
    assert compare_pairs([1.0, 1.0], [2.0, 2.0]).verdict == "ambiguous"
    assert compare_pairs(*pairs(Random(9), 10, 1.0, noise=0.2)).verdict == "ambiguous"
    with pytest.raises(ValueError):
        compare_pairs([1.0], [1.0, 2.0])


# ------------------------------------------------------------------ bounds
WORK = Work(
    flops=2 * 4096**3, bytes_read=2 * 4096 * 4096 * 4, bytes_written=4096 * 4096 * 4, dtype="float32", origin="counted"
)


def test_floor_is_the_larger_of_two_bounds() -> None:
    bound = floor(WORK, CEILINGS)
    assert bound.compute_us == pytest.approx(WORK.flops / 50e6) and bound.lane == "float32"
    assert bound.floor_us == bound.compute_us
    assert floor(WORK, CEILINGS, lane="tf32").compute_us == pytest.approx(WORK.flops / 360e6)
    assert floor(replace(WORK, flops=None), CEILINGS).floor_us == bound.memory_us
    assert floor(replace(WORK, dtype="float64"), CEILINGS).compute_us is None


def test_regimes() -> None:
    def regime(runtime: float, call: float | None = None, work: Work | None = WORK) -> str | None:
        return position(runtime, work, CEILINGS, call_us=call).regime

    assert regime(3000.0) == "compute-bound"
    assert regime(12000.0) == "latency-bound"
    assert regime(40.0, work=replace(WORK, flops=0)) == "memory-bound"
    assert regime(6.0, call=41.0, work=None) == "launch-bound"
    assert regime(10.0, work=replace(WORK, flops=0)) == "memory-impossible"
    assert regime(10.0, work=None) is None
    assert position(10.0, WORK, None, call_us=None).ratio is None


def test_few_flops_are_no_alarm_and_unknown_peaks_neither() -> None:
    assert impossible_us(WORK, replace(CEILINGS, peak_gb_per_s=None)) is None
    least = impossible_us(WORK, CEILINGS)
    assert least is not None and least < 100 < WORK.flops / 50e6


def test_roof_words_and_opponents() -> None:
    assert roof_words(1.04, "memory-bound") == "at the roof"
    assert roof_words(0.54, "memory-bound") == "54 % of the roof"
    assert roof_words(None, None) is None
    rows = [
        {"name": "eager", "admissible": True, "runtime_us": 80.0},
        {"name": "max-autotune", "admissible": False, "runtime_us": 20.0},
        {"name": "default", "admissible": True, "runtime_us": 50.0},
        {"name": "reduce-overhead", "admissible": True, "runtime_us": None},
    ]
    best = strongest(rows)
    assert best is not None and best["name"] == "default"


def test_elementwise_flops() -> None:
    assert elementwise_flops([OpCount("add", 10, 10), OpCount("_softmax", 10, 10), OpCount("view", 10, 10)]) == 50
    assert elementwise_flops([OpCount("relu_", 10, 10)]) == 10


# ------------------------------------------------------------------ sizes
INPUTS = Inputs(
    kind=InputsKind.GET_INPUTS, constants=(("batch_size", 4096), ("dim", 393216)), batch_like=("batch_size",)
)


def test_reduction_begins_with_the_batch_and_keeps_divisibility() -> None:
    ladder = reduce_sizes(INPUTS, 1 << 16)
    assert [dict(case.sizes) for case in ladder[:2]] == [{"batch_size": 192}, {"batch_size": 96}]
    assert all(case.origin == "reduced" and not case.timed for case in ladder)
    first_other = next(case for case in ladder if "dim" in dict(case.sizes))
    assert dict(first_other.sizes)["dim"] % 128 == 0
    assert reduce_sizes(INPUTS, 1 << 16, given_elements=1000) == []
    assert reduce_sizes(Inputs(kind=InputsKind.GET_INPUTS), 1) == []


@pytest.mark.parametrize(
    ("value", "target"), [(4096, 256), (1000, 256), (781, 256), (3000, 128), (65536, 1024), (7, 16)]
)
def test_shrunk_sizes_keep_a_tail_and_never_grow(value: int, target: int) -> None:
    small = shrink(value, target)
    assert 0 < small <= value and small <= max(2 * target, 6)
    if value > target:
        assert small & (small - 1), f"{small} is a power of two: no tail for a masked kernel"


def test_neighbours_vary_one_constant_at_a_time() -> None:
    found = neighbours(INPUTS, Case(name="as given"))
    assert [case.name for case in found[:5]] == ["dim=393217", "dim=393215", "dim=131073", "dim=393209", "dim=1"]
    assert all(len(case.sizes) == 1 and case.origin == "neighbour" for case in found)
    assert len(found) == 8
    assert neighbours(Inputs(kind=InputsKind.GET_INPUTS), Case(name="x")) == []
    beside_reduced = neighbours(INPUTS, Case(name="small", sizes=(("batch_size", 6), ("dim", 384)), origin="reduced"))
    assert dict(beside_reduced[0].sizes) == {"batch_size": 6, "dim": 385}


def test_primes() -> None:
    assert [largest_prime_below(n) for n in (2, 3, 10, 100, 393216)] == [2, 2, 7, 97, 393209]


# ------------------------------------------------------------------ regions
def along(size: int, first: int, last: int, count: int | None = None, period: int = 0) -> Spread:
    return Spread(size=size, count=last - first + 1 if count is None else count, first=first, last=last, period=period)


@pytest.mark.parametrize(
    ("spreads", "wrong", "untouched", "words"),
    [
        ((along(64, 0, 63), along(512, 505, 511)), 448, False, "only the last 7 of each row"),
        ((along(64, 0, 63), along(512, 505, 511)), 300, False, "all in the last 7 columns"),
        ((along(64, 0, 63), along(8192, 4096, 8191)), 64 * 4096, True, "columns >= 4096 untouched"),
        ((along(64, 16, 23), along(512, 0, 511)), 8 * 512, False, "all in row block 3 of 8 (rows 16..23)"),
        ((along(64, 63, 63), along(512, 0, 511)), 512, False, "all in the last row"),
        ((along(64, 5, 5), along(512, 7, 7)), 1, False, "all in column 7 of row 5"),
        ((along(64, 0, 63), along(512, 0, 508, count=128, period=4)), 8192, False, "all in every 4th column"),
        ((along(1000, 993, 999),), 7, False, "all in the last 7 elements"),
        ((along(64, 0, 63), along(512, 0, 511)), 64 * 512, False, "everywhere"),
        ((along(64, 0, 63), along(512, 0, 511)), 50, False, "scattered"),
        ((along(8, 3, 3), along(64, 0, 63), along(512, 0, 511)), 64 * 512, False, "all in dim-0 slice 3"),
        ((), 0, False, None),
    ],
)
def test_regions(spreads: tuple[Spread, ...], wrong: int, untouched: bool, words: str | None) -> None:
    elements = math.prod(spread.size for spread in spreads)
    assert describe(spreads, wrong=wrong, elements=elements, untouched=untouched) == words


# ------------------------------------------------------------------ tolerances
def test_tolerance_lies_between_floor_and_cap() -> None:
    base = floor_ratio("float32", 4096)
    assert base == pytest.approx(2 * 2**-23 + 8 * 2**-23 * 64)
    assert derive("float32", 4096, 0.0).rtol == base
    assert derive("float32", 4096, base).rtol == 4 * base
    assert derive("float32", 4096, 5 * base).rtol == 16 * base
    assert derive("float32", 4096, 100 * base).rtol == 200 * base
    assert derive("float32", 4096, None).rtol == 16 * base
    assert floor_ratio("float64", 64) < 1e-13 and floor_ratio("float16", 64) > 1e-3


def test_tf32_is_outside_an_fp32_tolerance() -> None:
    assert derive("float32", 4096, 1e-6).rtol < 2**-11


def test_who_decides() -> None:
    own = derive("float32", 64, 1e-7)
    person = Tolerance(atol=0.1, rtol=0.1, origin="person")
    assert deciding(None, "comment", "float32", own) is own
    assert deciding(None, "kernelbench", "float32", own).atol == 1e-4
    assert deciding(None, "kernelbench", "float16", own).atol == 1e-2
    assert deciding(person, "kernelbench", "float16", own) is person
    assert deciding(Tolerance(atol=1.0, rtol=0.0, origin="format"), "flashinfer", "float32", own).atol == 1.0
    assert format_tolerance("kernelbench", "float64") is None


def test_reduction_length_is_an_upper_guess() -> None:
    assert reduction_length([(64, 512), (512, 32)], (64, 32)) == 512
    assert reduction_length([(64, 512)], (64,)) == 512
    assert reduction_length([(8, 3, 32, 32), (16, 3, 3, 3)], (8, 16, 30, 30), flops=2 * 8 * 16 * 900 * 27) >= 27
    assert reduction_length([], ()) == 1


# ------------------------------------------------------------------ shas
FILE = """import torch
import triton

SIZE = 64


@triton.jit
def kernel(x): ...


def candidate(x):
    return kernel[(1,)](x)


def reference(x):
    return helper(x) * SIZE


def helper(x):
    return torch.relu(x)


def make_inputs():
    return [torch.randn(SIZE)]
"""


def shared(text: str) -> str:
    program = Program(path="/p/k.py", text=text, entry="reference", kind=ProgramKind.FUNCTION)
    made = problem(
        reference=program,
        candidate=replace(program, entry="candidate"),
        inputs=Inputs(kind=InputsKind.GET_INPUTS, function="make_inputs"),
    )
    return problem_sha(made)


def test_problem_sha_moves_with_the_reference_only() -> None:
    base = shared(FILE)
    assert shared(FILE.replace("kernel[(1,)](x)", "kernel[(2,)](x, 5)")) == base
    assert shared("# a comment\n\n" + FILE) == base
    assert shared(FILE.replace("torch.relu(x)", "torch.relu(x) + 1")) != base
    assert shared(FILE.replace("SIZE = 64", "SIZE = 65")) != base
    assert shared(FILE.replace("torch.randn", "torch.rand")) != base


def test_problem_sha_sees_only_overlays_that_the_reference_imports() -> None:
    base = problem(reference=replace(problem().reference, text="from helper import f\nclass Model: ..."))
    with_own = replace(base, overlays=(("/p/helper.py", "def f(): 1"),))
    assert problem_sha(with_own) != problem_sha(base)
    assert problem_sha(replace(base, overlays=(("/p/other.py", "x"), ("/p/new.py", "y")))) == problem_sha(base)
    assert problem_sha(replace(base, candidate=replace(base.candidate, text="else"))) == problem_sha(base)
    assert problem_sha(replace(base, backward=True)) != problem_sha(base)


def test_needed_text_takes_half_typed_text_whole() -> None:
    assert needed_text("def f(:", ["f"]) == "def f(:"
    assert needed_text("a = 1\nb = a\nc = 2\n", ["b"]) == "a = 1\nb = a"


def test_shas() -> None:
    strong, weak = evaluator_sha()
    assert (len(strong), len(weak)) == (64, 32) and (strong, weak) == evaluator_sha()
    assert sha256_text("\udc80") != sha256_text("")


def test_ceilings_without_anything_give_nothing() -> None:
    empty = Ceilings(card="c", uuid="u", copy_gb_per_s=None)
    assert floor(WORK, empty).floor_us is None and impossible_us(WORK, empty) is None
