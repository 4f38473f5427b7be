"""A real worker loop as a test drives it: started by path, frames over pipes, its processes counted afterwards."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from evalcore import wire
from evalcore.jobs import Cause, EvalJob, Limits, Measurement, Mode, Refusal
from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind

ROOT = Path(__file__).resolve().parents[3]
ENTRY = ROOT / "evalcore" / "_entry"
PATIENCE_S = 180.0


class RealLoop:
    """One loop. `evaluate` waits for the verdict; `stages` and `logs` keep what came beside."""

    def __init__(self, scratch: Path, *, flavour: str = "interpret", options: dict[str, Any] | None = None) -> None:
        self.scratch = scratch
        self.log = open(scratch.with_suffix(".log"), "wb")  # noqa: SIM115 - lives as long as the loop
        command = [sys.executable, str(ENTRY), "--role", "loop", "--flavour", flavour, "--scratch", str(scratch)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True
        )
        self.frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.stages: list[dict[str, Any]] = []
        self.logs: list[str] = []
        self._count = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.send("hello", protocol=wire.PROTOCOL, options=options or {"spares": 1})
        self.hello = self.wait("hello")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.frames.put(wire.parse(line))
        self.frames.put(None)

    def send(self, name: str, **fields: Any) -> None:
        """One frame to the loop."""
        assert self.process.stdin is not None
        self.process.stdin.write(wire.frame(name, **fields))
        self.process.stdin.flush()

    def wait(self, *names: str, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """The next frame with one of these names."""
        end = time.monotonic() + seconds
        while True:
            frame = self.frames.get(timeout=max(end - time.monotonic(), 0.01))
            assert frame is not None, f"the loop ended: {Path(self.log.name).read_text()[-2000:]}"
            if frame["frame"] in names:
                return frame
            if frame["frame"] == "stage":
                self.stages.append(frame)
            if frame["frame"] == "log":
                self.logs.append(f"{frame['level']}: {frame['message']}")

    def start(self, problem: Problem, **how: Any) -> str:
        """Send a job without waiting. Returns its id."""
        self._count += 1
        job = EvalJob(
            job_id=f"job-{self._count}",
            cause=Cause.SAVE,
            mode=how.pop("mode", Mode.FAST),
            problem=problem,
            kernel=problem.candidate.entry,
            kernel_sha="",
            limits=how.pop("limits", Limits(build_s=60.0, run_s=30.0)),
            **how,
        )
        self.send("evaluate", job=job)
        return job.job_id

    def evaluate(self, problem: Problem, **how: Any) -> Measurement:
        """Send a job and wait for its verdict."""
        job_id = self.start(problem, **how)
        frame = self.wait("done", "refused")
        assert frame["frame"] == "done", frame
        assert frame["job_id"] == job_id
        return wire.decode(Measurement, frame["measurement"])

    def refused(self, problem: Problem, **how: Any) -> Refusal:
        """Send a job and wait for its refusal."""
        self.start(problem, **how)
        frame = self.wait("done", "refused")
        assert frame["frame"] == "refused", frame
        return wire.decode(Refusal, frame["refusal"])

    def close(self) -> None:
        """Close stdin, as a server that ends does, and wait for the loop to end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.log.close()

    def processes(self) -> set[int]:
        """Every living process that carries this loop's scratch folder in its command line or environment."""
        return processes_of(self.scratch)


def processes_of(scratch: Path) -> set[int]:
    """Pids of living processes that belong to the loop with this scratch folder; forks inherit its command line."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                text = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(scratch) in text and state not in "ZX":
                found.add(int(name))
    return found


def gone_within(scratch: Path, seconds: float = 20.0) -> set[int]:
    """Wait until no process of the loop is left; what is left after `seconds`."""
    end = time.monotonic() + seconds
    while (left := processes_of(scratch)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def kill_hard(loop: RealLoop) -> None:
    """SIGKILL to the process that the server knows."""
    os.kill(loop.process.pid, signal.SIGKILL)
    loop.process.wait(10)


MODEL = """
import torch

N = 64

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.weight = torch.nn.Parameter(torch.randn(300))

    def forward(self, x, y):
        return x + y * self.weight * self.scale

def get_inputs():
    return [torch.randn(N, 300), torch.randn(N, 300)]

def get_init_inputs():
    return [0.5]
"""

KERNELS = """
import os
import torch
import triton
import triton.language as tl

@triton.jit
def fused_add(x, y, w, out, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    a = tl.load(x + row * columns + offsets, mask=mask)
    b = tl.load(y + row * columns + offsets, mask=mask)
    c = tl.load(w + offsets, mask=mask)
    tl.store(out + row * columns + offsets, a + b * c * scale, mask=mask)

class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.weight = torch.nn.Parameter(torch.randn(300))

    def forward(self, x, y):
        out = torch.empty_like(x)
        fused_add[(x.shape[0],)](x, y, self.weight, out, x.shape[1], self.scale, BLOCK=512)
        return out
"""


def kernelbench(folder: Path, candidate: str = KERNELS, *, reference: str = MODEL) -> Problem:
    """A KernelBench-style problem, its files written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    places = (folder / "reference.py", folder / "candidate.py")
    for place, text in zip(places, (reference, candidate), strict=True):
        place.write_text(text)
    return Problem(
        id="candidate.py::ModelNew",
        format="kernelbench",
        reference=Program(path=str(places[0]), text=reference, entry="Model", kind=ProgramKind.MODULE),
        candidate=Program(path=str(places[1]), text=candidate, entry="ModelNew", kind=ProgramKind.MODULE),
        inputs=Inputs(
            kind=InputsKind.GET_INPUTS,
            init_function="get_init_inputs",
            constants=(("N", 64),),
            batch_like=("N",),
        ),
        cases=(Case(name="as given"),),
        kernels=("fused_add",),
        project_root=str(folder),
    )


def with_forward(body: str) -> str:
    """The candidate with another body of `forward`; `body` is indented by eight."""
    head, _sep, _tail = KERNELS.partition("    def forward(self, x, y):\n")
    return f"{head}    def forward(self, x, y):\n{body}\n"


SOFTMAX = """
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    softmax_kernel[(n_rows,)](out, x, x.stride(0), out.stride(0), n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out


torch.manual_seed(0)
x = torch.randn(181, 78, device=DEVICE)
assert torch.allclose(softmax(x), torch.softmax(x, axis=1))
raise SystemExit("a benchmark of minutes starts here")
"""


def tutorial(folder: Path, text: str = SOFTMAX) -> Problem:
    """A tutorial-style problem: wrapper against a torch expression in the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "softmax.py"
    place.write_text(text)

    def program(call: str) -> Program:
        return Program(path=str(place), text=text, entry="", kind=ProgramKind.EXPRESSION, call=call)

    return Problem(
        id="softmax.py::softmax",
        format="tutorial",
        reference=program("torch.softmax(x, axis=1)"),
        candidate=program("softmax(x)"),
        inputs=Inputs(kind=InputsKind.STATEMENTS, statements="x = torch.randn(181, 78, device=DEVICE)", names=("x",)),
        cases=(Case(name="181x78"),),
        kernels=("softmax_kernel",),
        project_root=str(folder),
    )


SQUARE = """
import torch
import triton
import triton.language as tl

@triton.jit
def square_forward(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + offsets, mask=offsets < n)
    tl.store(out + offsets, a * a, mask=offsets < n)

@triton.jit
def square_backward(x, grad, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + offsets, mask=offsets < n)
    g = tl.load(grad + offsets, mask=offsets < n)
    tl.store(out + offsets, 2.0 * a * g, mask=offsets < n)

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        square_forward[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        square_backward[(triton.cdiv(x.numel(), 256),)](x, grad.contiguous(), out, x.numel(), BLOCK=256)
        return out

def square(x):
    return Square.apply(x)
"""


def with_gradients(folder: Path, text: str = SQUARE) -> Problem:
    """A function whose gradients are part of the task."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "square.py"
    place.write_text(text)
    return Problem(
        id="square.py::square",
        format="comment",
        reference=Program(path=str(place), text=text, entry="", kind=ProgramKind.EXPRESSION, call="x * x"),
        candidate=Program(path=str(place), text=text, entry="square", kind=ProgramKind.FUNCTION),
        inputs=Inputs(kind=InputsKind.STATEMENTS, statements="x = torch.randn(1000, requires_grad=True)", names=("x",)),
        cases=(Case(name="1000"),),
        kernels=("square_forward", "square_backward"),
        project_root=str(folder),
        backward=True,
    )


TUNED = SOFTMAX.replace(
    "@triton.jit",
    "@triton.autotune(configs=[triton.Config({'BLOCK': 128}), triton.Config({'BLOCK': 256})], key=['n_cols'])\n"
    "@triton.jit",
).replace(", BLOCK=triton.next_power_of_2(n_cols))", ")")
"""The tutorial's softmax with its block tuned; 78 columns fit both configs."""
