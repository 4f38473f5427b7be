"""Frames between server and worker: what is written down here is what both sides speak. A changed line is a decision."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from evalcore import wire
from evalcore.facts import Ceilings, ErrorStats, KernelFacts, Samples, Trial
from evalcore.jobs import (
    Cause,
    Diagnostic,
    Environment,
    EvalJob,
    Flag,
    Limits,
    Measurement,
    Mode,
    Reason,
    Refusal,
)
from evalcore.problem import (
    Case,
    CudaLaunch,
    Inputs,
    InputsKind,
    Problem,
    Program,
    ProgramKind,
    TensorSpec,
    Tolerance,
    Work,
)
from evalcore.results import BottleneckType, ProfileData, correct, incorrect

GOLDEN = Path(__file__).with_name("frames.ndjson")


def problem() -> Problem:
    launch = CudaLaunch(grid="(n + 255) // 256", block="256", args=("x", "out", "n"), outputs=("out",))
    return Problem(
        id="k.cu::scale",
        format="comment",
        reference=Program(path="/p/ref.py", text="def ref(x): ...\n", entry="ref", kind=ProgramKind.FUNCTION),
        candidate=Program(path="/p/k.cu", text='// "é"\n', entry="scale", kind=ProgramKind.CUDA_KERNEL, launch=launch),
        inputs=Inputs(
            kind=InputsKind.STATEMENTS,
            statements="x = torch.randn(n)",
            names=("x",),
            constants=(("n", 1000),),
            batch_like=("n",),
        ),
        cases=(Case(name="n=1000"), Case(name="n=7", sizes=(("n", 7),), origin="reduced", timed=False)),
        tolerance=Tolerance(atol=1e-4, rtol=1e-3, origin="person"),
        overlays=(("/p/helper.py", "A = 1\n"),),
        notes=("a remark",),
    )


def job() -> EvalJob:
    return EvalJob(
        job_id="7",
        cause=Cause.SAVE,
        mode=Mode.THOROUGH,
        problem=problem(),
        kernel="scale",
        kernel_sha="ab" * 32,
        device="cuda:1",
        case="n=7",
        trusted=False,
        limits=Limits(build_s=1.0, run_s=2.5, memory_bytes=1 << 30),
        seed=(1 << 52) - 1,
        compare_with="// before\n",
    )


def measurement() -> Measurement:
    profile = ProfileData(
        bottleneck_type=BottleneckType.MEMORY_BOUND,
        roofline_position=0.5,
        top_stalls=(("long_scoreboard", 0.38),),
        raw_metrics={"origin": "measured", "nan": float("nan"), "list": [1, None]},
    )
    return Measurement(
        job_id="7",
        cause=Cause.SAVE,
        mode=Mode.FAST,
        file="/p/k.cu",
        kernel="scale",
        kernel_sha="ab" * 32,
        problem_id="k.cu::scale",
        problem_sha="cd" * 32,
        format="comment",
        result=correct(runtime_us=10.0, ref_runtime_us=20.0, profile=profile),
        reason=None,
        environment=Environment(
            card="Some Card", uuid="GPU-1", driver="580.1", torch="2.11.0", triton="3.6.0", python="3.12.1",
            interpreted=False, evaluator_sha="ef" * 32, evaluator_md5="01" * 16, isolation=("process", "landlock"),
            flags={"cuda.matmul.allow_tf32": False},
        ),
        flags=(Flag(code="lower-precision", message="as named"),),
        diagnostics=(Diagnostic(path="/p/k.cu", line=3, column=5, severity="error", code="nvrtc", message="no"),),
        samples=(Samples(subject="candidate", figure="device", timer="cupti", values_us=(10.0, 10.5), case="n=1000"),),
        kernels=(KernelFacts(name="scale", registers=16, launches=30),),
        timing={"device_us": 10.0, "interval_us": [9.9, 10.1]},
        stages={"total": 0.25},
        dependencies=(("/p/helper.py", "23" * 32),),
        seed=5,
    )  # fmt: skip


FRAMES: dict[str, dict[str, Any]] = {
    "hello to the loop": {
        "frame": "hello",
        "protocol": wire.PROTOCOL,
        "options": {"device": "auto", "spares": 2, "idle_s": 300, "sandbox": True},
    },
    "evaluate": {"frame": "evaluate", "job": job()},
    "cancel": {"frame": "cancel", "job_id": "7"},
    "prepare": {"frame": "prepare", "problem": problem()},
    "stage": {"frame": "stage", "job_id": "7", "stage": "trials", "done": 2, "total": 5},
    "done": {"frame": "done", "job_id": "7", "measurement": measurement()},
    "refused": {"frame": "refused", "job_id": "7", "refusal": Refusal(code="no_gpu", message="none", remedy="cpu")},
    "checked": {"frame": "checked", "check_id": "1", "diagnostics": measurement().diagnostics, "kernels": ()},
    "ceilings": {
        "frame": "ceilings",
        "ceilings": Ceilings(card="Some Card", uuid="GPU-1", copy_gb_per_s=4000.0, tflops=(("tf32", 300.0),)),
        "reason": None,
    },
}


def line_of(name: str) -> str:
    body = dict(FRAMES[name])
    return wire.frame(body.pop("frame"), **body).decode()


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_written_as_it_was_agreed(name: str) -> None:
    """Every stored field is still there with its value; a newer version may say more."""
    stored = {entry["name"]: entry["line"] for entry in map(json.loads, GOLDEN.read_text().splitlines())}
    assert missing(json.loads(line_of(name)), stored[name]) == []


def missing(now: Any, stored: Any, where: str = "") -> list[str]:
    """Paths of stored values that are gone or changed."""
    if isinstance(stored, dict) and isinstance(now, dict):
        found = [f"{where}.{key}" for key in stored if key not in now]
        return found + [
            path for key in stored if key in now for path in missing(now[key], stored[key], f"{where}.{key}")
        ]
    if isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        return [
            path for i, pair in enumerate(zip(now, stored, strict=True)) for path in missing(*pair, f"{where}[{i}]")
        ]
    return [] if now == stored else [where]


def test_a_changed_or_missing_field_is_noticed() -> None:
    assert missing({"a": 1, "b": {"c": [1, 2]}, "new": 3}, {"a": 1, "b": {"c": [1, 2]}}) == []
    assert missing({"a": 2, "b": {"c": [1, 3]}}, {"a": 1, "b": {"c": [1, 2]}, "d": 0}) == [".d", ".a", ".b.c[1]"]


def test_every_stored_frame_is_known() -> None:
    stored = [json.loads(line)["name"] for line in GOLDEN.read_text().splitlines()]
    assert stored == list(FRAMES)


@pytest.mark.parametrize(
    "value",
    [
        job(), measurement(), problem(), FRAMES["ceilings"]["ceilings"],
        TensorSpec(name="x", shape=(2, 3), dtype="float32", stride=(3, 1), path=(0, "k")),
        TensorSpec(name="n", shape=(), dtype="", stride=(), scalar=[1, 2.5, None, "a"], is_tensor=False),
        Work(flops=10, bytes_read=20, bytes_written=None, dtype="float16", origin="counted"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_encoded_decodes_to_itself(value: Any) -> None:
    plain = json.loads(json.dumps(wire.encode(value)))
    back = wire.decode(type(value), plain)
    assert wire.encode(back) == wire.encode(value)
    assert all(getattr(back, each.name) == getattr(value, each.name) for each in fields(value) if is_plain(value, each))


def is_plain(value: Any, field: Any) -> bool:
    held = getattr(value, field.name)
    return not is_dataclass(held) and "nan" not in repr(held)


def test_infinities_and_nan_cross_as_words() -> None:
    stats = ErrorStats(
        output="out", elements=1, out_of_tolerance=1, max_abs_error=float("inf"), max_rel_error=float("nan"),
        worst_index=(0,), got=float("-inf"), want=0.0, region=None,
    )  # fmt: skip
    trial = Trial(case="a", seed=1, outputs=(stats,))
    line = wire.frame("x", trial=trial)
    assert b"NaN" not in line and b"Infinity" not in line
    back = wire.decode(Trial, wire.parse(line)["trial"])
    assert back.outputs[0].max_abs_error == float("inf") and back.outputs[0].max_rel_error != 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"job_id": 7}, "job_id"), ({"mode": "medium"}, "mode"), ({"problem": None}, "problem"),
        ({"limits": {"run_s": "long"}}, "run_s"), ({"trusted": 1}, "trusted"), ({"seed": 1.5}, "seed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(wire.WireError, match=word):
        wire.decode(EvalJob, {**wire.encode(job()), **change})


def test_a_newer_peer_may_say_more() -> None:
    assert wire.decode(EvalJob, {**wire.encode(job()), "added_later": {"a": 1}}) == job()


def test_optional_fields_have_defaults() -> None:
    given = wire.encode(job())
    for name in ("device", "case", "trusted", "limits", "seed", "compare_with"):
        del given[name]
    assert wire.decode(EvalJob, given).limits == Limits()


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"frame": 3}', b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_frame_is_refused(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.parse(line)


def test_a_frame_that_is_too_long_is_refused() -> None:
    with pytest.raises(wire.WireError, match="bytes"):
        wire.frame("log", message="x" * wire.MAX_LINE_BYTES)


def test_only_data_crosses() -> None:
    with pytest.raises(wire.WireError, match="object"):
        wire.frame("log", message=object())


def test_verdicts_and_reasons_keep_their_words() -> None:
    assert wire.encode(incorrect("off by one"))["status"] == "incorrect"
    assert [reason.value for reason in Reason] == [
        "timeout", "crash", "out_of_memory", "cheating", "not_judgeable",
    ]  # fmt: skip
