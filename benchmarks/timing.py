"""Our clock beside ncu, do_bench and KernelBench's timer, on the same kernels in the same run.

    python benchmarks/timing.py --out benchmarks/results/timing.json [--quick] [--recorder cupti|proton|none]

Each timer is compared less its own reading of an empty kernel. Where ncu is not on PATH, the output says so.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.report import environment, write
from benchmarks.timed_kernels import EMPTY, TABLE, Timed

NCU_LAUNCHES = 7
NCU_SKIPPED = 2
REPEATS = 5
FAST_N, THOROUGH_N = 10, 100
KERNELBENCH_TRIALS = 100
LONG_US, SHORT_US = 5.0, 5.0
"""The bars: 3 % of ncu from LONG_US up, 0.3 us below it."""


def ncu_target() -> None:
    """The program that ncu profiles: the table's kernels in order, NCU_LAUNCHES each."""
    import torch

    for timed in (EMPTY, *TABLE):
        inputs = timed.make()
        timed.call(inputs)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        for _ in range(NCU_LAUNCHES):
            timed.call(inputs)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()


def parse_ncu(text: str) -> list[tuple[str, float]]:
    """(kernel, microseconds) of each profiled launch, in order, from `ncu --csv --page raw --print-units base`."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    column = "gpu__time_duration.sum"
    return [
        (row["Kernel Name"], float(row[column].replace(",", "")) / 1e3)
        for row in rows
        if row.get("ID") and row.get(column)
    ]


def run_ncu() -> tuple[dict[str, float], str]:
    """Median time of each kernel by ncu, and what to say where there is none."""
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin:/opt/nvidia/nsight-compute")
    if ncu is None:
        return {}, "there is no ncu on PATH or in /usr/local/cuda/bin"
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--metrics", "gpu__time_duration.sum"]
    command += ["--cache-control", "all", "--clock-control", "none", "--profile-from-start", "off"]
    command += [sys.executable, os.path.abspath(__file__), "--ncu-target"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    except subprocess.TimeoutExpired:
        return {}, "ncu did not end within 150 s"
    rows = parse_ncu(done.stdout)
    names = [EMPTY, *TABLE]
    if len(rows) != NCU_LAUNCHES * len(names):
        tail = (done.stdout + done.stderr).strip().splitlines()[-3:]
        return {}, f"ncu gave {len(rows)} rows instead of {NCU_LAUNCHES * len(names)}: {' / '.join(tail)}"
    times: dict[str, float] = {}
    for place, timed in enumerate(names):
        own = rows[place * NCU_LAUNCHES : (place + 1) * NCU_LAUNCHES]
        if any(timed.kernel not in name for name, _took in own):
            return {}, f"ncu's rows of {timed.name} are of {own[0][0]}"
        times[timed.name] = statistics.median(took for _name, took in own[NCU_SKIPPED:])
    return times, ""


def do_bench_us(timed: Timed, inputs: list[Any]) -> float:
    """Triton's do_bench, median."""
    import triton.testing

    return float(triton.testing.do_bench(lambda: timed.call(inputs), return_mode="median")) * 1e3


def kernelbench_us(timed: Timed, inputs: list[Any]) -> float:
    """KernelBench's timer: three warm-ups, then events around each of 100 calls, a synchronise before each; mean."""
    import torch

    for _ in range(3):
        timed.call(inputs)
        torch.cuda.synchronize()
    took = []
    for _ in range(KERNELBENCH_TRIALS):
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        timed.call(inputs)
        end.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(end) * 1e3)
    return statistics.mean(took)


def ours(clock: Any, timed: Timed, inputs: list[Any], repeats: int) -> dict[str, Any]:
    """Our three figures, and the medians of repeated fast and thorough evaluations."""
    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.timing import Labels

    ring = LocalRing(inputs)
    made = clock.measure(timed.call, ring, n=THOROUGH_N)
    row: dict[str, Any] = {}
    for samples in made:
        values = samples.values_us
        row[f"{samples.figure}_us"] = statistics.median(values) if values else None
        row[f"{samples.figure}_empty_us"] = samples.empty_kernel_us
        row[f"{samples.figure}_timer"] = samples.timer
        row[f"{samples.figure}_discarded"] = len(samples.discarded)
    row["sm_clock_mhz"] = [min(made[0].sm_clock_mhz, default=None), max(made[0].sm_clock_mhz, default=None)]
    row["throttle"] = list(made[0].throttle)
    device = Labels(figures=("device",))
    for name, n in (("fast", FAST_N), ("thorough", THOROUGH_N)):
        medians = []
        walls = []
        for _ in range(repeats):
            start = time.perf_counter()
            (samples,) = clock.measure(timed.call, ring, n=n, labels=device)
            walls.append(time.perf_counter() - start)
            medians.append(statistics.median(samples.values_us))
        row[f"{name}_medians_us"] = medians
        row[f"{name}_spread_us"] = max(medians) - min(medians)
        row[f"{name}_spread"] = (max(medians) - min(medians)) / statistics.median(medians)
        row[f"{name}_wall_s"] = statistics.median(walls)
    return row


def summarise(rows: dict[str, dict[str, Any]], ncu: dict[str, float]) -> dict[str, Any]:
    """The worst of each bar, over the kernels to which it applies."""
    kernels = {name: row for name, row in rows.items() if name != EMPTY.name}
    empty_us, ncu_empty_us = rows[EMPTY.name]["device_us"], ncu.get(EMPTY.name)
    for name, row in kernels.items():
        row["device_less_empty_us"] = row["device_us"] - empty_us
        if ncu and ncu_empty_us is not None:
            row["ncu_us"] = ncu[name]
            row["ncu_less_empty_us"] = ncu[name] - ncu_empty_us
            row["against_ncu_us"] = row["device_less_empty_us"] - row["ncu_less_empty_us"]
            row["against_ncu"] = row["against_ncu_us"] / row["ncu_less_empty_us"]
    long = [row for row in kernels.values() if row["device_us"] >= LONG_US]
    short = [row for row in kernels.values() if row["device_us"] < SHORT_US]
    tens = [row for row in kernels.values() if row["device_us"] >= 10.0]
    has_ncu = bool(ncu)
    return {
        "kernels": len(kernels),
        "empty_us": empty_us,
        "ncu_empty_us": ncu_empty_us,
        "worst_against_ncu_from_5_us": max((abs(row["against_ncu"]) for row in long), default=None)
        if has_ncu
        else None,
        "worst_against_ncu_below_5_us_in_us": max((abs(row["against_ncu_us"]) for row in short), default=None)
        if has_ncu
        else None,
        "worst_fast_spread_from_10_us": max((row["fast_spread"] for row in tens), default=None),
        "worst_thorough_spread_from_10_us": max((row["thorough_spread"] for row in tens), default=None),
        "worst_spread_below_5_us_in_us": max(
            (max(row["fast_spread_us"], row["thorough_spread_us"]) for row in short), default=None
        ),
    }


def show(rows: dict[str, dict[str, Any]], summary: dict[str, Any]) -> None:
    """The table, less each timer's empty kernel where there is one."""
    head = f"{'kernel':20s} {'device':>8s} {'-empty':>8s} {'ncu-e':>8s} {'diff':>7s} {'graph':>8s} {'call':>8s} "
    print(head + f"{'do_bench':>8s} {'KBench':>8s} {'fast5':>6s} {'thor5':>6s}")
    for name, row in rows.items():
        cells = [row.get(key) for key in ("device_us", "device_less_empty_us", "ncu_less_empty_us")]
        text = f"{name:20s} " + " ".join(f"{cell:8.2f}" if cell is not None else f"{'-':>8s}" for cell in cells)
        diff = row.get("against_ncu")
        text += f" {diff:7.1%}" if diff is not None else f" {'-':>7s}"
        for key in ("graph_us", "call_us", "do_bench_us", "kernelbench_us"):
            text += f" {row[key]:8.2f}" if row.get(key) is not None else f" {'-':>8s}"
        print(text + f" {row['fast_spread']:6.1%} {row['thorough_spread']:6.1%}")
    for key, value in summary.items():
        print(f"  {key}: {value}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="")
    parser.add_argument("--quick", action="store_true", help="four kernels, two repeats, no ncu")
    parser.add_argument("--recorder", choices=["auto", "cupti", "proton", "none"], default="auto")
    parser.add_argument("--ncu-target", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ncu_target:
        ncu_target()
        return 0
    from evalcore.gpu.timing import RECORDERS, Clock, ClockOptions

    begin = time.perf_counter()
    wanted = {"auto": RECORDERS, "none": ()}.get(args.recorder, (args.recorder,))
    table = TABLE[3:7] if args.quick else TABLE
    clock = Clock("cuda:0", ClockOptions(recorders=wanted))
    rows: dict[str, dict[str, Any]] = {}
    for timed in (EMPTY, *table):
        inputs = timed.make()
        timed.call(inputs)
        clock.warm()
        row = ours(clock, timed, inputs, 2 if args.quick else REPEATS)
        row["do_bench_us"] = do_bench_us(timed, inputs)
        row["kernelbench_us"] = kernelbench_us(timed, inputs)
        rows[timed.name] = row
    ncu, why = ({}, "--quick") if args.quick else run_ncu()
    summary = summarise(rows, ncu)
    summary |= {"timer": clock.timer, "notes": clock.notes, "ncu": why or "ran"}
    summary["seconds"] = round(time.perf_counter() - begin, 1)
    show(rows, summary)
    if args.out:
        write(args.out, {"benchmark": "timing", "environment": environment(), "summary": summary, "kernels": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
