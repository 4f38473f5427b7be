"""Owns a scripted worker with a clock: a text's time follows from its num_warps, and an A/B comes after the verdict.

For tests only, and the one place where tests make times up. Directives in the candidate's text beside those of
`scripted_worker`: `# time_us: N`. Environment: TUNED_LOG gets a line for each job's start and end, TUNED_SLOW makes each
of a search's jobs last so many seconds, TUNED_AB is the ratio that every A/B finds, TUNED_NO_AB=1 has no A/B at all.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evalcore import results, wire
from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, EvalJob, Measurement
from tests.support import scripted_worker

HERE = Path(__file__).resolve()
TIMES_US = {1: 90.0, 2: 80.0, 4: 50.0, 8: 40.0, 16: 60.0}
REFERENCE_US = 100.0


def tuned_python(folder: Path, **environment: str) -> str:
    """A file that can be given as `odyssey.python`: this worker by a shell script, with a card unless SCRIPT_GPU=''."""
    place = folder / "python-tuned"
    exports = "".join(f"export {name}='{value}'\n" for name, value in {"SCRIPT_GPU": "1", **environment}.items())
    place.write_text(f'#!/bin/sh\n{exports}exec "{sys.executable}" "{HERE}" "$@"\n')
    place.chmod(0o755)
    return str(place)


def time_of(text: str) -> float:
    """What this clock says about a text, in microseconds."""
    said = re.search(r"# time_us: ([\d.]+)", text)
    if said is not None:
        return float(said[1])
    warps = re.search(r"num_warps=(\d+)", text)
    return TIMES_US.get(int(warps[1]) if warps is not None else 4, 95.0)


class Tuned(scripted_worker.Loop):
    """One flavour's loop."""

    def on_evaluate(self, frame) -> None:
        job = wire.decode(EvalJob, frame["job"])
        self._note("start", job)
        slow = float(os.environ.get("TUNED_SLOW") or 0)
        if slow and job.cause is Cause.SEARCH and self._cancelled(job, slow, deaf=False):
            self._note("cancelled", job)
            return
        super().on_evaluate(frame)
        self._note("end", job)
        right = "# worker: wrong" not in job.problem.candidate.text
        if job.compare_with is not None and right and self.flavour == "compile" and not os.environ.get("TUNED_NO_AB"):
            self.send("amended", job_id=job.job_id, measurement=self.compared(job))

    def measurement(self, job, orders) -> Measurement:
        made = super().measurement(job, orders)
        if made.timing is None:
            return made
        us = time_of(job.problem.candidate.text)
        cases = tuple(replace(case, runtime_us=us, ref_runtime_us=REFERENCE_US) for case in made.cases)
        return replace(
            made, result=results.correct(runtime_us=us, ref_runtime_us=REFERENCE_US), cases=cases,
            timing={**made.timing, "device_us": us},
        )  # fmt: skip

    def compared(self, job: EvalJob) -> Measurement:
        """The same verdict with its A/B, as the real worker amends it."""
        before = job.compare_with or ""
        ratio = float(os.environ.get("TUNED_AB") or time_of(before) / time_of(job.problem.candidate.text))
        verdict = "faster" if ratio > 1.01 else "slower" if ratio < 0.99 else "same"
        ab = {"against": sha256_text(before), "verdict": verdict, "ratio": ratio, "interval": [ratio, ratio], "n": 40}
        return replace(self.measurement(job, {}), ab=ab)

    def _note(self, what: str, job: EvalJob) -> None:
        if log := os.environ.get("TUNED_LOG"):
            line = {"what": what, "cause": job.cause.value, "job": job.job_id, "sha": job.kernel_sha, "at": time.monotonic(),
                    "trusted": job.trusted, "text": job.problem.candidate.text}  # fmt: skip
            with open(log, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    scripted_worker.Loop = Tuned  # type: ignore[misc]
    sys.exit(scripted_worker.main())
