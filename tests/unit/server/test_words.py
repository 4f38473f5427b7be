"""Every sentence and number format, by example. A number that was not measured has no words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from evalcore import results
from evalcore.jobs import Flag, Reason, Refusal
from server import card, words
from tests.unit.server.measured import case, environment, measurement


@pytest.mark.parametrize(
    ("us", "shown"),
    [(0.0, "0.00 us"), (0.84, "0.84 us"), (9.994, "9.99 us"), (9.996, "10.0 us"), (34.44, "34.4 us"), (99.96, "100 us"),
     (999.4, "999 us"), (999.9, "1.00 ms"), (2100, "2.10 ms"), (1.35e6, "1.35 s"), (-3.0, "-3.00 us")],
)  # fmt: skip
def test_duration(us, shown):
    assert words.duration(us) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(2.314, "2.31x"), (9.996, "10.0x"), (14.0, "14.0x"), (0.871, "0.87x"), (231.0, "231x")]
)
def test_ratio(value, shown):
    assert words.ratio(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0.0 %"), (0.004, "0.4 %"), (0.0001, "under 0.1 %"), (0.97, "97 %")])
def test_share(value, shown):
    assert words.share(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.342, "0.34 s"), (12.06, "12.1 s"), (125.2, "2 min 05 s")])
def test_seconds(value, shown):
    assert words.seconds(value) == shown


def test_the_line_of_a_timed_verdict():
    assert words.hint_label(measurement(), fresh=True) == "2.31x eager · 34.4 us · right 5/5"
    assert words.hint_label(measurement(), fresh=False) == "older text: 2.31x eager · 34.4 us · right 5/5"


def test_the_line_of_an_interpreted_verdict_has_no_figure():
    made = measurement(result=results.correct(), environment=environment(interpreted=True))
    assert words.hint_label(made, fresh=True) == "right 5/5 (interpreted, no GPU)"


def test_reduced_sizes_are_named():
    made = measurement(
        result=results.correct(),
        environment=environment(interpreted=True),
        cases=(case(name="64x128", origin="reduced"),),
    )
    assert words.hint_label(made, fresh=True) == "right 5/5 at reduced sizes 64x128 (interpreted, no GPU)"


def test_neighbours_do_not_count_on_the_line():
    made = measurement(cases=(case(), case(name="n-1", origin="neighbour", status="wrong", trials=1, trials_right=0)))
    assert "right 5/5" in words.hint_label(made, fresh=True)


def test_the_line_of_a_wrong_kernel_names_the_worst_case():
    wrong = case(
        status="wrong", trials_right=1, max_abs_error=0.013, out_ratio=0.004, region="all in the last 7 columns"
    )
    made = measurement(result=results.incorrect("..."), cases=(case(name="1x1"), wrong))
    assert words.hint_label(made, fresh=True) == (
        "wrong (right 6/10) · max abs error 0.013 · all in the last 7 columns"
    )


def test_what_was_right_in_the_trials_and_wrong_later_says_so():
    made = measurement(result=results.incorrect("right in the trials, wrong in a timed call: max abs error 1.9"))
    assert words.hint_label(made, fresh=True) == "wrong: right in the trials, wrong in a timed call: max abs error 1.9"


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (Reason.TIMEOUT, "did not finish: no end after 60 s"),
        (Reason.CRASH, "crashed: no end after 60 s"),
        (Reason.OUT_OF_MEMORY, "out of memory: no end after 60 s"),
        (Reason.CHEATING, "not accepted: no end after 60 s"),
        (Reason.NOT_JUDGEABLE, "not judgeable here: no end after 60 s"),
        (None, "error: no end after 60 s"),
    ],
)
def test_the_line_of_an_error_names_the_reason(reason, shown):
    made = measurement(result=results.error("no end after 60 s. And more."), reason=reason)
    assert words.hint_label(made, fresh=True) == shown


def test_a_compile_error_is_short_on_the_line():
    assert words.hint_label(measurement(result=results.compile_error("x\ny")), fresh=True) == "does not compile"


def test_the_headline_is_against_the_strongest_admissible_opponent():
    opponents = (
        {"name": "torch.compile default", "admissible": True, "runtime_us": 40.0},
        {"name": "torch.compile max-autotune", "admissible": False, "runtime_us": 20.0, "reason": "error 3e-2"},
        {"name": "slow", "admissible": True, "runtime_us": 900.0},
        {"name": "broken", "admissible": True, "runtime_us": None},
    )
    made = measurement(opponents=opponents)
    assert words.hint_label(made, fresh=True) == "1.16x torch.compile default · 34.4 us · right 5/5"
    shown = card.card(made, seq=3, fresh=True)
    assert "~~torch.compile max-autotune~~ | ~~20.0 us~~ | error 3e-2" in shown


def test_an_interleaved_comparison_is_said_with_its_interval():
    ab = {"against": "x", "verdict": "faster", "ratio": 1.08, "interval": [1.05, 1.11], "n": 40}
    made = measurement(ab=ab)
    assert words.hint_label(made, fresh=True).endswith("faster than the last save (1.08x)")
    assert "interval 1.05x to 1.11x, n = 40" in card.card(made, seq=1, fresh=True)
    same = replace(made, ab={"verdict": "same", "ratio": 1.0})
    assert words.hint_label(same, fresh=True).endswith("same as the last save")


def test_lens_titles_are_always_five():
    fixed = ("Evaluate", "Thorough", "History", "Propose")
    assert words.lens_titles(None, None, cases=0) == (*fixed, "finding the reference")
    assert words.lens_titles("", None, cases=0)[4] == "no reference"
    assert words.lens_titles("kernelbench", "4096x4096", cases=3)[4] == "kernelbench: 4096x4096 (1 of 3)"


def test_refusals_end_with_the_remedy():
    assert words.refusal_words(Refusal(code="x", message="No torch", remedy="Install it.")) == "No torch. Install it."
    assert words.refusal_words(Refusal(code="x", message="Why?", remedy="")) == "Why?"


def test_the_card_escapes_what_a_candidate_wrote():
    evil = "</details> ![x](http://evil) <img src=x> [a](command:rm) ``` `code` | pipe"
    made = measurement(
        kernel="k_[x](http://evil)",
        result=results.error("```\n# heading\n" + evil),
        flags=(Flag(code="f", message=evil),),
        cases=(case(name="a|b", region=evil, status="wrong"),),
    )
    shown = card.card(made, seq=1, fresh=True)
    head, _, rest = shown.partition("````text\n```\n# heading\n")
    outside = head + rest.partition("\n````\n")[2]
    assert rest and "evil" in outside
    assert re.search(r"(?<!\\)[\[\]<>!`]", outside.replace("`add_kernel`", "")) is None, outside
    assert "a\\|b" in outside


def test_the_card_names_card_timer_unit_and_n():
    made = measurement(
        timing={"case": "x", "device_us": 34.4, "call_us": 51.0, "graph_us": 35.0, "n": 10, "interval_us": [34.1, 34.9],
                "timer": "proton-cupti", "cold": True, "cpu_threads": 8},
        regime="memory-bound", floor_us=20.0,
    )  # fmt: skip
    shown = card.card(made, seq=7, fresh=True)
    for part in ("device 34.4 us · call 51.0 us · graph replay 35.0 us", "interval 34.1 us to 34.9 us", "n = 10",
                 "timer proton-cupti", "cold L2", "8 CPU threads", "memory-bound, floor 20.0 us", "H200", "driver 570",
                 "torch 2.13.0", "triton 3.7.1", "row 7"):  # fmt: skip
        assert part in shown, part


def test_a_stale_card_says_why():
    assert "helper.py has changed" in card.card(measurement(), seq=1, fresh=False, old_because="helper.py has changed.")
    assert "The text has changed" in card.card(measurement(), seq=1, fresh=False)
