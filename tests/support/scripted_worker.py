"""Owns a stand-in for a worker loop that speaks the real frames and does what comments in the candidate's text say.

For tests only. Started through `fake_python` as if it were the user's interpreter. Directives in the candidate's text:
`# worker: wrong`, `# worker: compile_error LINE`, `# worker: error`, `# worker: slow SECONDS`, `# worker: die`,
`# worker: refuse CODE`, `# worker: deaf` (ignores cancel), `# worker: big`, `# worker: reads PATH` (a dependency),
`# worker: compares yes` (amends a verdict that has a text before), `# check: LINE MESSAGE`. Environment: SCRIPT_GPU=1
shows one card, SCRIPT_OPPONENTS=1 has opponents, SCRIPT_PROTOCOL / SCRIPT_SHA change the hello,
SCRIPT_LOG gets a line for each frame read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import queue
import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evalcore import results, wire
from evalcore.fingerprint import evaluator_sha, problem_sha
from evalcore.jobs import (
    CaseReport,
    Diagnostic,
    Environment,
    EvalJob,
    Flag,
    Measurement,
    Refusal,
)
from evalcore.problem import Problem

CARD = {
    "index": 0,
    "name": "Scripted GPU",
    "uuid": "GPU-scripted",
    "arch": "sm_90",
    "memory_bytes": 1 << 34,
    "driver": "1",
}


def main() -> int:
    """Serve until stdin closes."""
    if "-c" in sys.argv:
        print(json.dumps({"executable": sys.executable, "version": "3.11.0", "torch": "9.9", "triton": "9.9"}))
        return 0
    flavour = sys.argv[sys.argv.index("--flavour") + 1]
    scratch = sys.argv[sys.argv.index("--scratch") + 1]
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    frames: queue.Queue[dict[str, object] | None] = queue.Queue()
    threading.Thread(target=_read, args=(frames,), daemon=True).start()
    loop = Loop(flavour, scratch, out, frames)
    while (frame := frames.get()) is not None:
        loop.take(frame)
    return 0


def _read(frames: queue.Queue[dict[str, object] | None]) -> None:
    for line in sys.stdin.buffer:
        if log := os.environ.get("SCRIPT_LOG"):
            with open(log, "a", encoding="utf-8") as stream:
                stream.write(
                    json.dumps({"pid": os.getpid(), **{k: v for k, v in json.loads(line).items() if k != "job"}}) + "\n"
                )
        frames.put(wire.parse(line))
    frames.put(None)


class Loop:
    """One flavour's loop."""

    def __init__(self, flavour, scratch, out, frames) -> None:
        self.flavour, self.scratch, self.out, self.frames = flavour, scratch, out, frames
        self.gpu = bool(os.environ.get("SCRIPT_GPU"))

    def send(self, name: str, **fields) -> None:
        self.out.write(wire.frame(name, **fields))

    def take(self, frame) -> None:
        handler = getattr(self, "on_" + frame["frame"], None)
        if handler is not None:
            handler(frame)

    def on_hello(self, frame) -> None:
        sha, md5 = evaluator_sha()
        self.send(
            "hello", protocol=int(os.environ.get("SCRIPT_PROTOCOL", wire.PROTOCOL)), flavour=self.flavour,
            evaluator_sha=os.environ.get("SCRIPT_SHA", sha), evaluator_md5=md5, python="3.11.0",
            executable=sys.executable, torch="9.9", triton="9.9", devices=[CARD] if self.gpu else [],
            scratch=self.scratch, isolation=["process"], fork=True,
            missing=[] if self.gpu else [{"what": "gpu", "message": "no CUDA device", "remedy": "none"}],
        )  # fmt: skip

    def on_evaluate(self, frame) -> None:
        job = wire.decode(EvalJob, frame["job"])
        orders = dict(re.findall(r"# worker: (\w+) ?(.*)", job.problem.candidate.text))
        self.send("stage", job_id=job.job_id, stage="build", done=0, total=0)
        if "die" in orders:
            sys.stderr.write("scripted death\n")
            sys.stderr.flush()
            os._exit(9)
        if "slow" in orders and self._cancelled(job, float(orders["slow"]), deaf="deaf" in orders):
            return
        if "refuse" in orders:
            self.send(
                "refused", job_id=job.job_id, refusal=Refusal(code=orders["refuse"], message="scripted", remedy="none")
            )
            return
        measurement = self.measurement(job, orders)
        self.send("stage", job_id=job.job_id, stage="judge", done=1, total=1)
        if "big" in orders:
            place = Path(self.scratch) / f"{job.job_id}.json"
            place.write_text(json.dumps(wire.encode(measurement)))
            self.send("done", job_id=job.job_id, file=str(place))
        else:
            self.send("done", job_id=job.job_id, measurement=measurement)
        if "compares" in orders and job.compare_with:
            ab = {"against": "before", "verdict": "faster", "ratio": 1.08, "interval": [1.05, 1.11], "n": 40}
            self.send("amended", job_id=job.job_id, measurement=dataclasses.replace(measurement, ab=ab))

    def on_opponents(self, frame) -> None:
        if os.environ.get("SCRIPT_OPPONENTS"):
            rows = [{"name": "torch.compile default", "admissible": True, "runtime_us": 40.0}]
            self.send("opponents", problem_sha=problem_sha(wire.decode(Problem, frame["problem"])), opponents=rows)

    def _cancelled(self, job, seconds: float, *, deaf: bool) -> bool:
        end, kept = time.monotonic() + seconds, []
        for step in range(10_000):
            left = end - time.monotonic()
            if left <= 0:
                break
            self.send("stage", job_id=job.job_id, stage="trials", done=step, total=100)
            try:
                frame = self.frames.get(timeout=min(left, 0.1))
            except queue.Empty:
                continue
            if frame is None:
                os._exit(0)
            if frame["frame"] == "cancel" and frame["job_id"] == job.job_id and not deaf:
                for each in kept:
                    self.frames.put(each)
                refusal = Refusal(code="cancelled", message="cancelled", remedy="")
                self.send("refused", job_id=job.job_id, refusal=refusal)
                return True
            kept.append(frame)
        for each in kept:
            self.frames.put(each)
        return False

    def measurement(self, job, orders) -> Measurement:
        interpreted = self.flavour == "interpret"
        path = job.problem.candidate.path
        diagnostics: tuple[Diagnostic, ...] = ()
        right, error = 5, None
        if "wrong" in orders:
            right, error = 0, "max abs error 0.5 at [0, 7], 9 % of elements out, all in the last 7 columns"
            result = results.incorrect(error)
        elif "compile_error" in orders:
            line = int(orders["compile_error"])
            result = results.compile_error("scripted: undefined name")
            diagnostics = (
                Diagnostic(
                    path=path, line=line, column=5, severity="error", code="compile-error", message="undefined name"
                ),
            )
        elif "error" in orders:
            result = results.error("RuntimeError: scripted")
        elif interpreted:
            result = results.correct()
        else:
            result = results.correct(runtime_us=34.4, ref_runtime_us=79.5)
        timed = not interpreted and result.correct
        case = job.case or job.problem.cases[0].name
        return Measurement(
            job_id=job.job_id, cause=job.cause, mode=job.mode, file=path, kernel=job.kernel, kernel_sha=job.kernel_sha,
            problem_id=job.problem.id, problem_sha=problem_sha(job.problem), format=job.problem.format, result=result,
            reason=None, diagnostics=diagnostics, seed=1,
            flags=(Flag(code="interpreted", message="interpreted"),) if interpreted else (),
            environment=Environment(
                card=None if interpreted else CARD["name"], uuid=None if interpreted else CARD["uuid"],
                driver=None if interpreted else CARD["driver"], torch="9.9", triton="9.9", python="3.11.0",
                interpreted=interpreted, evaluator_sha=evaluator_sha()[0], evaluator_md5=evaluator_sha()[1],
                isolation=("process",),
            ),
            cases=(
                CaseReport(
                    name=case, sizes={}, origin="given", status="right" if right else "wrong", trials=5,
                    trials_right=right, max_abs_error=0.0 if right else 0.5,
                    region=None if right else "the last 7 columns",
                    atol=1e-5, rtol=1e-5, tolerance_origin="measured",
                    runtime_us=34.4 if timed else None, ref_runtime_us=79.5 if timed else None,
                ),
            ),
            timing={"case": case, "device_us": 34.4, "n": 10, "timer": "scripted", "cold": True} if timed else None,
            dependencies=tuple(_dependency(job, path) for path in filter(None, [orders.get("reads")])),
        )  # fmt: skip

    def on_check(self, frame) -> None:
        found = [
            Diagnostic(
                path=frame["path"], line=int(line), column=1, severity="error", code="front-end", message=message
            )
            for line, message in re.findall(r"# check: (\d+) (.*)", frame["text"])
        ]
        self.send("checked", check_id=frame["check_id"], diagnostics=found, kernels=[])

    def on_shutdown(self, frame) -> None:
        os._exit(0)


def _dependency(job, path: str) -> tuple[str, str]:
    text = dict(job.problem.overlays).get(path)
    if text is None:
        text = Path(path).read_text(encoding="utf-8")
    return path, hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
