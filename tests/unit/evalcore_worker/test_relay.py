"""What the loop believes of a case's words: only checked fields, only bounded sizes."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.worker import relay


def output(**changes: Any) -> dict[str, Any]:
    body = {"name": "out", "problem": None, "handle": 0, "shape": [2, 3], "dtype": "float32", "stride": [3, 1]}
    return {**body, "device": "cpu", "number": False, **changes}


HANDLE = {"fd": 0, "offset": 0, "bytes": 24}


def test_a_good_output_passes() -> None:
    handles = relay.handles([HANDLE], 1)
    (checked,) = relay.outputs([output()], handles)
    assert checked["shape"] == [2, 3] and checked["handle"] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"handle": 1}, {"handle": -1}, {"handle": True}, {"shape": [1 << 50]}, {"shape": ["2"]}, {"shape": [5, 5]},
        {"dtype": "os.system"}, {"dtype": 3}, {"device": "cuda:0; rm"}, {"stride": [-1]}, {"name": 3},
    ],
)  # fmt: skip
def test_a_bad_output_is_a_breach(changes: dict[str, Any]) -> None:
    with pytest.raises(relay.Breach):
        relay.outputs([output(**changes)], [HANDLE])


@pytest.mark.parametrize(
    "handle",
    [
        None, {}, {"fd": 0, "bytes": 3}, {"fd": 1, "offset": 0, "bytes": 3}, {"fd": 0, "offset": -1, "bytes": 3},
        {"ipc": "zz", "offset": 0, "bytes": 3}, {"ipc": "a" * 127, "offset": 0, "bytes": 3},
        {"ipc": "../" * 43, "offset": 0, "bytes": 3}, {"fd": 0, "offset": 0, "bytes": 1 << 60},
    ],
)  # fmt: skip
def test_a_bad_handle_is_a_breach(handle: Any) -> None:
    with pytest.raises(relay.Breach):
        relay.handles([handle], 1)


def test_an_ipc_handle_is_rebuilt_from_its_fields() -> None:
    given = {"ipc": "ab" * 64, "offset": 5, "bytes": 7, "path": "/etc/passwd"}
    assert relay.handles([given], 0) == [{"ipc": "ab" * 64, "offset": 5, "bytes": 7}]


def test_texts_lose_control_codes_and_length() -> None:
    assert relay.text("a\x1b[31mb\u202ec\x00") == "a [31mb c "
    assert len(relay.text("x" * 10_000)) == 4096


def crash(**changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"kind": "exception", "message": "boom", "place": None, "detail": ""}
    return {**body, "signal": None, "exit_code": None, **changes}


def test_a_crash_keeps_known_kinds_only() -> None:
    assert relay.crash(crash(kind="compile")).kind == "compile"
    assert relay.crash(crash(kind="timeout")).kind == "exception", "only the loop itself says that time is over"
    assert relay.crash(crash(message="")).message
    place = {"path": "a.py", "line": -4, "column": 0, "end_line": None, "end_column": None}
    assert relay.crash(crash(place=place)).place.line == 1  # type: ignore[union-attr]
    with pytest.raises(relay.Breach):
        relay.crash({"kind": 3})


def samples(**changes: Any) -> dict[str, Any]:
    return {"subject": "reference", "figure": "device", "timer": "x", "values_us": [1.0, 2.0], **changes}


def test_samples_are_the_candidates_whatever_they_say() -> None:
    (found,) = relay.samples([samples(case="other")], case="as given", figures=("device",))
    assert found.subject == "candidate" and found.case == "as given"


@pytest.mark.parametrize("changes", [{"figure": "made up"}, {"values_us": [-1.0]}, {"values_us": [{"$float": "nan"}]}])
def test_impossible_samples_are_a_breach(changes: dict[str, Any]) -> None:
    with pytest.raises(relay.Breach):
        relay.samples([samples(**changes)], case="as given", figures=("device",))


def test_more_samples_than_figures_are_a_breach() -> None:
    with pytest.raises(relay.Breach):
        relay.samples([samples(), samples()], case="as given", figures=("device",))
