"""From a saved text to its verdict, on the worker alone: each save a text never seen, each in a fresh case.

    python benchmarks/latency_gpu.py --out benchmarks/results/latency-gpu.json [--quick] [--kernelbench CHECKOUT]

Every variant changes a constant that reaches the compiler's IR and not the answer. With a checkout of KernelBench its
own evaluator judges the same kernel in the same run, in a fresh process and again in that process.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.report import ROOT, environment, write
from evalcore import wire
from evalcore.bindings.registry import bind
from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, EvalJob, Mode, Refusal
from evalcore.problem import Problem

PAUSE_S = 2.0
HELLO_S = 120.0
VERDICT_S = 120.0
RIVAL_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file, and the place in it that each variant changes."""

    path: str
    kernel: str
    old: str
    new: str
    """With {k}, the number of the variant."""


SUBJECTS = (
    Subject(
        path="examples/softmax.py",
        kernel="softmax_kernel",
        old='other=-float("inf")',
        new="other=-1.{k:04d}e30",
    ),
    Subject(
        path="examples/layer_norm.py",
        kernel="layer_norm_kernel",
        old="w = tl.load(w_ptr + columns, mask=mask)",
        new="w = tl.load(w_ptr + columns, mask=mask, other={k}.0)",
    ),
    Subject(
        path="examples/matmul.py",
        kernel="matmul_kernel",
        old="tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)",
        new="tl.full((BLOCK_M, BLOCK_N), 1.{k:04d}e-12, dtype=tl.float32)",
    ),
)

BROKEN = (
    Subject(path="examples/softmax.py", kernel="softmax_kernel", old="tl.exp(x - tl.max(x, axis=0))", new="tl.exq(x) + {k}"),
    Subject(path="examples/reduce_rows.cu", kernel="row_sum_kernel", old="+= row[i];", new="+= rowz[i] + {k};"),
)
"""Texts that a compiler refuses: Triton's front end, and NVRTC."""

PAIR = SUBJECTS[1]
"""The one that KernelBench's evaluator can judge as it stands."""


def variant(subject: Subject, number: int) -> str:
    """The subject's text with its constant changed. Raises ValueError where the file no longer has that place."""
    text = (ROOT / subject.path).read_text(encoding="utf-8")
    if text.count(subject.old) != 1:
        raise ValueError(f"{subject.path} has {text.count(subject.old)} places {subject.old!r}")
    return text.replace(subject.old, subject.new.format(k=number))


class Worker:
    """One loop, spoken to over its pipes as the server does."""

    def __init__(self, flavour: str, scratch: str) -> None:
        command = [sys.executable, str(ROOT / "evalcore" / "_entry"), "--role", "loop", "--flavour", flavour]
        self._log = open(Path(scratch) / "worker.log", "wb")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [*command, "--scratch", scratch], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        self._frames: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._frames.put(wire.parse(line))
        self._frames.put({"frame": "ended"})

    def send(self, name: str, **fields: Any) -> None:
        """One frame to the loop."""
        assert self._process.stdin is not None
        self._process.stdin.write(wire.frame(name, **fields))
        self._process.stdin.flush()

    def wait(self, *names: str, seconds: float) -> dict[str, Any]:
        """The next frame of one of these names. Raises RuntimeError where the loop ends or is late."""
        end = time.perf_counter() + seconds
        while True:
            try:
                frame = self._frames.get(timeout=max(end - time.perf_counter(), 0.01))
            except queue.Empty:
                raise RuntimeError(f"no {' or '.join(names)} within {seconds:.0f} s") from None
            if frame["frame"] in names:
                return frame
            if frame["frame"] == "ended":
                raise RuntimeError("the worker ended; its log tells why")

    def stop(self) -> None:
        """Shut the loop down; kill it where it does not obey."""
        try:
            self.send("shutdown")
            self._process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
        self._log.close()


def problem_of(subject: Subject, text: str) -> Problem:
    """The binding of a text, as the server finds it."""
    path = str(ROOT / subject.path)
    found = bind(path, text, read=lambda other: _read(other), kernel=subject.kernel)
    if isinstance(found, Refusal) or not found or isinstance(found[0], Refusal):
        raise RuntimeError(f"{subject.path} does not bind: {found}")
    return found[0].problem


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return None


def save(worker: Worker, subject: Subject, number: int, device: str) -> dict[str, Any]:
    """One save: send the text, wait for the verdict."""
    text = variant(subject, number)
    start = time.perf_counter()
    job = EvalJob(
        job_id=f"{subject.kernel}-{number}",
        cause=Cause.SAVE,
        mode=Mode.FAST,
        problem=problem_of(subject, text),
        kernel=subject.kernel,
        kernel_sha=sha256_text(text),
        device=device,
    )
    worker.send("evaluate", job=job)
    frame = worker.wait("done", "refused", seconds=VERDICT_S)
    took = time.perf_counter() - start
    if frame["frame"] == "refused":
        return {"seconds": took, "status": "refused", "why": frame.get("refusal")}
    measurement = frame.get("measurement")
    if measurement is None:
        measurement = json.loads(Path(frame["file"]).read_text(encoding="utf-8"))
    result = measurement["result"]
    return {
        "seconds": took,
        "status": result["status"],
        "why": result.get("error"),
        "runtime_us": result.get("runtime_us"),
        "stages": measurement.get("stages", {}),
    }


def as_shipped(worker: Worker, folder: Path, device: str) -> list[dict[str, Any]]:
    """KernelBench problems at the sizes they are shipped with, each with an answer X_new.py beside X.py."""
    lines = []
    for answer in sorted(folder.glob("*_new.py")):
        place = Path(os.path.relpath(answer, ROOT))
        kernel = answer.read_text(encoding="utf-8").partition("@triton.jit\ndef ")[2].partition("(")[0]
        subject = Subject(path=str(place), kernel=kernel, old="import triton\n", new="import triton  # {k}\n")
        worker.send("prepare", problem=problem_of(subject, variant(subject, 0)))
        rows = []
        for turn in range(3):
            time.sleep(PAUSE_S)
            rows.append(save(worker, subject, 7000 + turn, device))
        lines.append(told(subject, rows))
    return lines


def ninety_fifth(values: list[float]) -> float:
    """The 95th percentile by rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-len(ordered) * 95 // 100) - 1)]


def told(subject: Subject, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One subject in short; the first save is warm-up (the referee makes its inputs) and stands apart."""
    later = [row["seconds"] for row in rows[1:]] or [rows[0]["seconds"]]
    names = sorted({name for row in rows for name in row.get("stages", {})})
    line = {
        "file": subject.path,
        "saves": len(rows),
        "statuses": {status: sum(row["status"] == status for row in rows) for status in {r["status"] for r in rows}},
        "first_s": rows[0]["seconds"],
        "median_s": statistics.median(later),
        "p95_s": ninety_fifth(later),
        "stages_median_s": {
            name: statistics.median([row["stages"].get(name, 0.0) for row in rows[1:] if row.get("stages")] or [0.0])
            for name in names
        },
        "why": next((row["why"] for row in rows if row.get("why")), None),
        "rows": rows,
    }
    print(
        f"{subject.path:24s} first {line['first_s']:.2f} s, median {line['median_s']:.3f} s, p95 {line['p95_s']:.3f} s "
        f"{line['statuses']} { ({k: round(v, 3) for k, v in line['stages_median_s'].items()}) } {line['why'] or ''}"
    )
    return line


RIVAL = """
import json, sys, time, types
start = time.perf_counter()
checkout, paths = sys.argv[1], sys.argv[2:]
for name in ("requests", "datasets", "dotenv"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
package = types.ModuleType("kernelbench")
package.__path__ = [checkout + "/src/kernelbench"]
sys.modules["kernelbench"] = package
data = types.ModuleType("kernelbench.dataset")
sys.modules["kernelbench.dataset"] = package.dataset = data
import torch
from kernelbench.eval import eval_kernel_against_ref
device = torch.device("cuda:0")
took, last = [], None
for path in paths:
    text = open(path).read()
    begin = time.perf_counter()
    last = eval_kernel_against_ref(
        text, text, num_correct_trials=5, num_perf_trials=10, measure_performance=True,
        device=device, backend="triton",
    )
    took.append(time.perf_counter() - begin)
print(json.dumps({"evaluations_s": took, "total_s": time.perf_counter() - start,
                  "correct": bool(last.correctness), "runtime": last.runtime}))
"""


def rival(checkout: str, subject: Subject, number: int, scratch: str) -> dict[str, Any]:
    """KernelBench's own evaluator on four variants of a pair, in one fresh process."""
    paths = []
    for turn in range(4):
        paths.append(str(Path(scratch, f"rival_{turn}.py")))
        Path(paths[-1]).write_text(variant(subject, number + turn), encoding="utf-8")
    begin = time.perf_counter()
    command = [sys.executable, "-c", RIVAL, checkout, *paths]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RIVAL_S, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"no end within {RIVAL_S:.0f} s"}
    if done.returncode != 0:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    wall = time.perf_counter() - begin
    later = found["evaluations_s"][1:]
    return found | {"fresh_process_s": wall - sum(later), "reused_process_s": statistics.median(later)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="")
    parser.add_argument("--quick", action="store_true", help="four saves a file")
    parser.add_argument("--saves", type=int, default=13)
    parser.add_argument("--flavour", choices=["compile", "interpret"], default="compile")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--kernelbench", default="", help="folder of a KernelBench checkout")
    parser.add_argument("--problems", default="", help="folder of KernelBench problems X.py with answers X_new.py")
    args = parser.parse_args()
    begin = time.perf_counter()
    number = time.time_ns() // 1_000_000 % 9000
    lines: list[dict[str, Any]] = []
    shipped: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="odyssey-latency-") as scratch:
        worker = Worker(args.flavour, scratch)
        options = {"device": args.device, "spares": 2, "idle_s": 300, "sandbox": True}
        try:
            worker.send("hello", protocol=wire.PROTOCOL, options=options)
            hello = worker.wait("hello", seconds=HELLO_S)
            print(f"hello after {time.perf_counter() - begin:.1f} s: {hello.get('isolation')} {hello.get('missing')}")
            for subject in (*SUBJECTS, *BROKEN):
                worker.send("prepare", problem=problem_of(subject, variant(subject, 0)))
                rows = []
                for turn in range(4 if args.quick else args.saves):
                    time.sleep(PAUSE_S)
                    rows.append(save(worker, subject, number + turn, args.device))
                lines.append(told(subject, rows))
            if args.problems:
                shipped = as_shipped(worker, Path(args.problems), args.device)
        except RuntimeError as fault:
            print(f"{fault}\n{(Path(scratch) / 'worker.log').read_text(errors='replace')[-3000:]}")
            return 1
        finally:
            worker.stop()
    beside: dict[str, Any] = {"not run": "no --kernelbench CHECKOUT"}
    if args.kernelbench:
        with tempfile.TemporaryDirectory(prefix="odyssey-latency-") as scratch:
            beside = {PAIR.path: rival(args.kernelbench, PAIR, number + 5000, scratch)}
    print(f"KernelBench's evaluator: {beside}")
    result = {"benchmark": "latency_gpu", "subjects": lines, "as_shipped": shipped, "kernelbench": beside}
    result["seconds"] = round(time.perf_counter() - begin, 1)
    if args.out:
        machine = environment() if args.flavour == "compile" else {"interpreted": True}
        write(args.out, result | {"environment": machine})
    return 0


if __name__ == "__main__":
    sys.exit(main())
