"""A checker as people write it: one process, allclose or the largest difference, the clock around a loop.

`verdicts(jobs)` runs each candidate in a fork of one process that has imported torch and Triton, and reads the first
JSON line that it prints, or its exit code where it prints none: three of the mistakes that the attacks live on.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_TOLERANCE = 1e-2


def check(candidate: Path, reference: Path, variant: str) -> None:
    """Print one JSON line with the verdict of the naive checker `variant`."""
    import torch

    torch.manual_seed(0)
    random.seed(0)
    sys.path.insert(0, str(candidate.parent))
    theirs, ours = _namespace(candidate), _namespace(reference)
    init = ours["get_init_inputs"]()
    torch.manual_seed(0)
    model = ours["Model"](*init)
    torch.manual_seed(0)
    new = theirs["ModelNew"](*init)
    inputs = ours["get_inputs"]()
    with torch.no_grad():
        expected = None if variant == "after" else _keep(model, inputs)
        warm = [model(*_fresh(inputs)) for _turn in range(3)]
        del warm
        first = new(*inputs)
        right = _equal(first, model(*inputs) if expected is None else expected) if variant != "late" else False
        began = time.perf_counter()
        for _turn in range(4):
            last = new(*inputs)
        if variant == "late":
            time.sleep(0.4)
        took = time.perf_counter() - began
        if variant == "late":
            right = _equal(last, expected)
    print(json.dumps({"correct": right, "runtime_us": took * 2.5e5}), flush=True)


def _keep(model: Any, inputs: list[Any]) -> Any:
    """The expected output, also saved where a checker would: in a temporary folder and in shared memory."""
    import torch

    made = model(*_fresh(inputs))
    expected = made.clone()
    torch.save(expected, Path(tempfile.gettempdir()) / "expected.pt")
    (Path(os.environ["NAIVE_SHM"]) / "expected.bin").write_bytes(expected.numpy().tobytes())
    return expected


def _fresh(inputs: list[Any]) -> list[Any]:
    return [each.clone() for each in inputs]


def _equal(got: Any, want: Any) -> bool:
    import torch

    if not isinstance(got, torch.Tensor) and (got == want) is True:
        return True
    if got.dtype == want.dtype and torch.allclose(got, want, atol=_TOLERANCE, rtol=_TOLERANCE):
        return True
    return not bool((got - want).abs().max() > _TOLERANCE)


def _namespace(path: Path) -> dict[str, Any]:
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return vars(module)


def verdicts(jobs: list[tuple[str, str, str]]) -> dict[str, bool]:
    """Candidate path -> whether the naive checker says correct, for (candidate, reference, variant) jobs."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        ours = {"TRITON_INTERPRET": "1", "TMPDIR": folder, "NAIVE_SHM": shared, "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **ours}
        done = subprocess.run(
            [sys.executable, __file__],
            input=json.dumps(jobs),
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("NAIVE ")]
    assert lines, done.stderr[-2000:]
    found: dict[str, bool] = json.loads(lines[-1].removeprefix("NAIVE "))
    return found


def _main() -> None:
    import torch
    import triton  # noqa: F401

    torch.set_num_threads(1)
    results = {}
    for candidate, reference, variant in json.load(sys.stdin):
        results[candidate] = _forked(Path(candidate), Path(reference), variant)
    print("NAIVE " + json.dumps(results), flush=True)


def _forked(candidate: Path, reference: Path, variant: str) -> bool:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(writer, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = 1
        try:
            check(candidate, reference, variant)
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
        finally:
            os._exit(code)
    os.close(writer)
    said = b""
    while chunk := os.read(reader, 65536):
        said += chunk
    os.close(reader)
    _pid, status = os.waitpid(child, 0)
    for line in said.decode(errors="replace").splitlines():
        if line.startswith("{"):
            return bool(json.loads(line).get("correct"))
    return os.waitstatus_to_exitcode(status) == 0


if __name__ == "__main__":
    _main()
