"""Drives the real worker as the server does: one loop process, frames over pipes, one job after the other."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalcore import wire
from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, EvalJob, Limits, Measurement, Mode
from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind, Tolerance

ROOT = Path(__file__).resolve().parents[2]
ENTRY = ROOT / "evalcore" / "_entry"
START_S = 90.0


class Worker:
    """One loop of the worker."""

    def __init__(self, flavour: str) -> None:
        self.scratch = tempfile.mkdtemp(prefix="odyssey-hostile-")
        command = [sys.executable, str(ENTRY), "--role", "loop", "--flavour", flavour, "--scratch", self.scratch]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ODYSSEY_TEST_SECRET_KEY": "hush-hush-4711"}
        self.log = open(Path(self.scratch) / "log.txt", "wb")  # noqa: SIM115 - lives as long as the worker
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment, cwd=ROOT
        )
        self._frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.device = "cpu" if flavour == "interpret" else "cuda:0"
        options = {"device": self.device, "spares": 2, "idle_s": 300, "sandbox": True}
        self._send("hello", protocol=wire.PROTOCOL, options=options)
        self.hello = self._wait("hello", START_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._frames.put(json.loads(line))
        self._frames.put(None)

    def _send(self, name: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(wire.frame(name, **fields))
        self.process.stdin.flush()

    def _wait(self, name: str, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while True:
            frame = self._frames.get(timeout=max(end - time.monotonic(), 0.01))
            assert frame is not None, f"the worker ended: {self.tail()}"
            if frame["frame"] in (name, "refused"):
                return frame

    def tail(self) -> str:
        """The end of the worker's log."""
        self.log.flush()
        return Path(self.log.name).read_text("utf-8", "replace")[-3000:]

    def judge(
        self, problem: Problem, *, run_s: float = 20.0, mode: Mode = Mode.FAST, trusted: bool = True
    ) -> Measurement:
        """One evaluation. Fails where the worker refuses."""
        job = EvalJob(
            job_id=f"job-{time.monotonic_ns()}",
            cause=Cause.SAVE,
            mode=mode,
            problem=problem,
            kernel=problem.candidate.entry,
            kernel_sha=sha256_text(problem.candidate.text),
            device=self.device,
            limits=Limits(run_s=run_s, build_s=180.0, memory_bytes=2 << 30),
            trusted=trusted,
        )
        self._send("evaluate", job=job)
        frame = self._wait("done", 300.0)
        assert frame["frame"] == "done", f"refused: {frame} {self.tail()}"
        body = frame["measurement"] if "measurement" in frame else json.loads(Path(frame["file"]).read_text("utf-8"))
        return wire.decode(Measurement, body.get("measurement", body))

    def close(self) -> None:
        """End the worker by closing its stdin, and see that it goes."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.log.close()
            shutil.rmtree(self.scratch, ignore_errors=True)


@contextlib.contextmanager
def worker(flavour: str) -> Iterator[Worker]:
    """A worker for as long as the block lasts."""
    made = Worker(flavour)
    try:
        yield made
    finally:
        made.close()


LOOSE = Tolerance(atol=2e-2, rtol=2e-2, origin="person")


def problem_of(
    candidate: Path,
    reference: Path,
    *,
    format: str = "",
    constants: tuple[tuple[str, int], ...] = (),
    shapes: tuple[tuple[str, int], ...] = (),
    text: str | None = None,
) -> Problem:
    """The problem that a binding would make of a KernelBench pair. Format 'loose' stands for a person's tolerance.

    `text` stands for the candidate's file as an editor holds it.
    """
    cases = [Case(name="as given")]
    if shapes:
        cases.append(Case(name=", ".join(f"{name}={value}" for name, value in shapes), sizes=shapes, timed=False))
    return Problem(
        id=f"{candidate.name}::ModelNew",
        format=format or "comment",
        reference=Program(
            path=str(reference), text=reference.read_text("utf-8"), entry="Model", kind=ProgramKind.MODULE
        ),
        candidate=Program(
            path=str(candidate),
            text=candidate.read_text("utf-8") if text is None else text,
            entry="ModelNew",
            kind=ProgramKind.MODULE,
        ),
        inputs=Inputs(kind=InputsKind.GET_INPUTS, init_function="get_init_inputs", constants=constants),
        cases=tuple(cases),
        tolerance=LOOSE if format == "loose" else None,
        project_root=str(candidate.parent),
    )
