"""Exercise the timing half on a card, part by part in processes of their own, and print a compact report.

    python scripts/gpu_smoke_timing.py [--parts cupti,proton,...] [--json FILE]

Each part prints lines `part | what | value`; a part that fails prints its traceback and the rest goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PART_TIMEOUT_S = 100


def say(what: str, value: Any) -> None:
    if isinstance(value, float):
        value = f"{value:.4g}"
    print(f"{PART:9s}| {what:44s} | {value}", flush=True)


def ms(function: Any, *args: Any, **kwargs: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    got = function(*args, **kwargs)
    return (time.perf_counter() - start) * 1e3, got


def kernels() -> dict[str, tuple[Any, list[Any]]]:
    import torch

    from benchmarks.timed_kernels import softmax

    def rand(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda")

    return {
        "A softmax 4096x4096": (softmax, [rand(4096, 4096)]),
        "  softmax 1024x1024": (softmax, [rand(1024, 1024)]),
        "B softmax 128x1024": (softmax, [rand(128, 1024)]),
        "C torch add 64Mi": (lambda i: i[0] + i[1], [rand(64 << 20), rand(64 << 20)]),
        "  torch chain of 4": (lambda i: (i[0] * 2 + 1).relu() - i[0], [rand(1024, 1024)]),
    }


def report_samples(name: str, made: list[Any]) -> None:
    for samples in made:
        values = samples.values_us
        if not values:
            say(f"{name} {samples.figure}", f"none: {samples.discarded[-1:]}")
            continue
        middle = statistics.median(values)
        spread = (max(values) - min(values)) / middle
        clocks = f"{min(samples.sm_clock_mhz, default=0)}..{max(samples.sm_clock_mhz, default=0)}"
        say(
            f"{name} {samples.figure} [{samples.timer}]",
            f"{middle:8.2f} us  n={len(values)} spread={spread:.1%} empty={samples.empty_kernel_us} "
            f"clock={clocks} {','.join(samples.throttle)} discarded={len(samples.discarded)}",
        )


def measure_all(clock: Any) -> None:
    import torch

    from evalcore.gpu.ring import LocalRing

    for name, (call, inputs) in kernels().items():
        first, _ = ms(call, inputs)
        torch.cuda.synchronize()
        fast_ms, made = ms(clock.measure, call, LocalRing(inputs), n=10)
        report_samples(name, made)
        say(f"{name} wall", f"first call {first:.0f} ms, n=10 three figures {fast_ms:.0f} ms")
    spreads = []
    call, inputs = kernels()["A softmax 4096x4096"]
    for _ in range(5):
        made = clock.measure(call, LocalRing(inputs), n=10)
        spreads.append(statistics.median(made[0].values_us))
    say("A five fast evaluations, device", " ".join(f"{value:.2f}" for value in spreads))
    wall, made = ms(clock.measure, call, LocalRing(inputs), n=100)
    report_samples("A n=100", made)
    say("A n=100 wall", f"{wall:.0f} ms; notes {clock.notes}; stray {[each.name[:30] for each in clock.stray[:4]]}")


def launch_cost_us(clock: Any) -> float:
    cache = clock.bench.cache
    cache.drain()
    start = time.perf_counter()
    for _ in range(200):
        cache.mark()
    took = (time.perf_counter() - start) / 200 * 1e6
    cache.drain()
    return took


def part_card() -> None:
    import torch

    from evalcore.gpu.flush import L2Flush
    from evalcore.gpu.nvml import Nvml

    cost, nvml = ms(Nvml)
    say("NVML open", f"{cost:.2f} ms, present {bool(nvml)}, cards {nvml.count()}")
    card = nvml.card(0)
    if card is not None:
        say("NVML facts", card.facts())
        cost, state = ms(card.state)
        say("NVML state", f"{cost:.3f} ms {state}")
        cost, state = ms(card.state)
        say("NVML state again", f"{cost:.3f} ms, clock only {ms(card.sm_clock_mhz)[0]:.3f} ms")
        say("foreign processes", card.foreign_processes())
    say("torch", f"{torch.__version__} cuda {torch.version.cuda} python {sys.version.split()[0]}")
    import triton

    say("triton", triton.__version__)
    torch.cuda.init()
    facts = torch.cuda.get_device_properties(0)
    say("torch uuid / L2 / SMs", f"{getattr(facts, 'uuid', None)} {facts.L2_cache_size} {facts.multi_processor_count}")
    if card is not None:
        found = nvml.card_by_uuid(str(facts.uuid))
        say("card found by torch's uuid", found is not None)
    say("ncu on PATH", subprocess.run(["which", "ncu"], capture_output=True, text=True).stdout.strip() or "no")
    for size in (None, 4 * facts.L2_cache_size, 512 << 20):
        cost, flush = ms(L2Flush, "cuda:0", flush_bytes=size)
        flush.flush()
        flush.drain()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            flush.flush()
        end.record()
        flush.drain()
        took = start.elapsed_time(end) / 20 * 1e3
        speed = flush.flush_bytes / took / 1e3
        say(f"flush {flush.flush_bytes >> 20} MiB", f"made in {cost:.1f} ms, {took:.1f} us, {speed:.0f} GB/s")
    say("reset persisting L2", flush.driver.reset_persisting_l2())
    say("host threads", f"{os.cpu_count()} cpus, torch {torch.get_num_threads()}")


def part_cupti() -> None:
    import dataclasses

    import torch

    from evalcore.gpu.flush import L2Flush
    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.timing import Clock, ClockOptions

    torch.zeros(1, device="cuda")
    clock = Clock("cuda:0", ClockOptions(recorders=("cupti",)))
    cost, _ = ms(clock.warm)
    say("warm", f"{cost:.1f} ms, timer {clock.timer}, notes {clock.notes}")
    recorder = clock.bench.recorder
    if recorder is None:
        return
    say("library", recorder.path)
    say("launch cost closed", launch_cost_us(clock))
    cost, _ = ms(recorder.open)
    say("open", f"{cost:.2f} ms; launch cost open {launch_cost_us(clock):.2f} us")
    cost, recording = ms(recorder.take)
    middle = statistics.median(recording.empty_us)
    say("take of 200 markers", f"{cost:.2f} ms; {len(recording.empty_us)} seen; {middle:.3f} us")
    say("close", f"{ms(recorder.close)[0]:.2f} ms; launch cost {launch_cost_us(clock):.2f} us")
    measure_all(clock)
    x = torch.randn(1 << 20, device="cuda", requires_grad=True)

    def backward(inputs: list[Any]) -> Any:
        inputs[0].grad = None
        (inputs[0] * inputs[0]).sum().backward()
        return inputs[0].grad

    for name, call, inputs in (
        ("clone (memcpy) 4 MiB", lambda i: i[0].clone(), [torch.randn(1 << 20, device="cuda")]),
        ("backward (other thread)", backward, [x]),
        ("returns its input", lambda i: i[0], [torch.randn(8, device="cuda")]),
    ):
        made = clock.measure(call, LocalRing(inputs), n=10)
        report_samples(name, made)
        say(f"{name} launches", [f"{each.name[:40]} {each.device_us:.2f}" for each in (clock.launches or [()])[0]])
    for size in (2, 3, 4, 6, 8, 10):
        flush = L2Flush("cuda:0", flush_bytes=size * clock.bench.cache.l2_bytes)
        other = dataclasses.replace(clock.bench, cache=flush)
        clock._bench = other
        row = []
        for name, (call, inputs) in list(kernels().items())[:3]:
            made = clock.measure(call, LocalRing(inputs), n=40)
            row.append(f"{name.strip()} {statistics.median(made[0].values_us):.2f}")
        say(f"flush {size}x L2 = {flush.flush_bytes >> 20} MiB, device", "; ".join(row))
        del flush


def part_proton() -> None:
    import torch

    from evalcore.gpu.timing import Clock, ClockOptions

    torch.zeros(1, device="cuda")
    clock = Clock("cuda:0", ClockOptions(recorders=("proton",)))
    cost, _ = ms(clock.warm)
    say("warm", f"{cost:.1f} ms, timer {clock.timer}, notes {clock.notes}")
    recorder = clock.bench.recorder
    if recorder is None:
        return
    say("adapter", type(recorder).__name__)
    say("launch cost closed", launch_cost_us(clock))
    for turn in range(2):
        opened, _ = ms(recorder.open)
        with recorder.call():
            clock.bench.cache.mark()
        clock.bench.cache.drain()
        taken, recording = ms(recorder.take)
        closed, _ = ms(recorder.close)
        say(f"open/take/close {turn}", f"{opened:.1f} / {taken:.1f} / {closed:.1f} ms; calls {recording.calls}")
    measure_all(clock)


def part_events() -> None:
    import torch

    from evalcore.gpu.timing import Clock, ClockOptions

    torch.zeros(1, device="cuda")
    clock = Clock("cuda:0", ClockOptions(recorders=()))
    cost, _ = ms(clock.warm)
    say("warm", f"{cost:.1f} ms, timer {clock.timer}")
    measure_all(clock)


def part_ab() -> None:
    import torch

    from benchmarks.timed_kernels import softmax, work
    from evalcore.gpu.ab import Sides, interleave
    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.timing import Clock
    from evalcore.stats import compare_pairs

    clock = Clock("cuda:0")
    clock.warm()
    x = torch.randn(4 << 20, device="cuda")
    big = torch.randn(4096, 4096, device="cuda")
    for name, a, b, inputs in (
        ("A/A softmax", softmax, softmax, [big]),
        ("work 200 against 204 rounds (+2 %)", work(200), work(204), [x]),
        ("work 200 against 210 rounds (+5 %)", work(200), work(210), [x]),
    ):
        a(inputs), b(inputs)
        cost, (of_a, of_b) = ms(interleave, clock, Sides(a=a, b=b, ring=LocalRing(inputs)))
        got = compare_pairs(of_a.values_us, of_b.values_us)
        middle = statistics.median(of_a.values_us)
        say(name, f"{got.verdict} {got.ratio:.4f} [{got.low:.4f}, {got.high:.4f}] A {middle:.2f} us, {cost:.0f} ms")


def part_ceilings() -> None:
    import tempfile

    from evalcore.gpu.ceilings import measure_ceilings

    with tempfile.TemporaryDirectory() as folder:
        cost, ceilings = ms(measure_ceilings, "cuda:0", cache_folder=folder)
        say("measured in", f"{cost:.0f} ms (with the context)")
        say("copy roof / peak GB/s", f"{ceilings.copy_gb_per_s} / {ceilings.peak_gb_per_s}")
        say("streams", ceilings.detail["streams_gb_per_s"])
        say("TFLOP/s", {name: round(value, 1) for name, value in ceilings.tflops})
        say("peak TFLOP/s", {name: round(value, 1) for name, value in ceilings.peak_tflops})
        say("detail", {key: ceilings.detail[key] for key in ("timer", "seconds", "notes", "power_limit_w")})
        cost, again = ms(measure_ceilings, "cuda:0", cache_folder=folder)
        say("from the cache in", f"{cost:.1f} ms, same {again == ceilings}")


def part_profile() -> None:
    import torch

    from evalcore.gpu.kernel_profile import from_launches, launched_kernels
    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.timing import Clock, Labels

    clock = Clock("cuda:0")
    torch.zeros(1, device="cuda")
    clock.warm()
    for name, (call, inputs) in kernels().items():
        clock.measure(call, LocalRing(inputs), n=10, labels=Labels(figures=("device",)))
        say(
            f"{name} kernels",
            [(row[0][:40], row[1], round(row[2], 2)) for row in from_launches(clock.launches, "x").kernels],
        )
        for fact in launched_kernels(clock.launches, "sm_90"):
            say(
                f"{name} facts",
                f"{fact.registers} regs {fact.shared_bytes} B {fact.theoretical_occupancy} {fact.config}",
            )


def part_stalls() -> None:
    import torch

    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.stalls import sample_stalls

    call, inputs = kernels()["A softmax 4096x4096"]
    torch.zeros(1, device="cuda")
    ring = LocalRing(inputs)
    cost, profile = ms(sample_stalls, call, ring)
    say("sampled in", f"{cost:.0f} ms, samples {profile.metrics['stall_samples']}")
    say("stalls", [(reason, round(share, 3)) for reason, share in profile.stalls[:6]])
    for row in profile.metrics["stall_lines"][:5]:
        say("line", f"{Path(row['path']).name}:{row['line']} {row['share']:.2f} {row['reason']}")
    cost, profile = ms(sample_stalls, call, ring)
    say("sampled again in", f"{cost:.0f} ms, samples {profile.metrics['stall_samples']}")


def part_retired() -> None:
    """Stalls in a process whose clock was used before, as in a warmed case."""
    import torch

    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.stalls import sample_stalls
    from evalcore.gpu.timing import Clock

    call, inputs = kernels()["A softmax 4096x4096"]
    torch.zeros(1, device="cuda")
    clock = Clock("cuda:0")
    clock.warm()
    report_samples("before", clock.measure(call, LocalRing(inputs), n=10))
    say("retire", f"{ms(clock.retire)[0]:.1f} ms, timer {clock.timer}")
    cost, profile = ms(sample_stalls, call, LocalRing(inputs))
    say("sampled in", f"{cost:.0f} ms {[(reason, round(share, 3)) for reason, share in profile.stalls[:4]]}")


def part_opponents() -> None:
    import torch

    from evalcore.gpu.opponents import measure_opponent
    from evalcore.gpu.ring import LocalRing
    from evalcore.gpu.timing import Clock

    inputs = [torch.randn(4096, 4096, device="cuda")]
    clock = Clock("cuda:0")
    clock.warm()
    for name in ("eager", "torch.compile default", "torch.compile reduce-overhead"):
        cost, row = ms(
            measure_opponent, name, lambda i: torch.softmax(i[0], dim=1), LocalRing(inputs), clock, lambda i, out: ()
        )
        row.pop("flags")
        say(name, f"{cost:.0f} ms {row}")


def part_fork() -> None:
    """The shape in which a case runs: forked from a process that imported torch and triton and opened nothing."""
    import torch
    import triton  # noqa: F401

    say("before fork", f"cuda initialised {torch.cuda.is_initialized()}")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        from evalcore.gpu.timing import Clock

        try:
            cost, _ = ms(torch.zeros, 1, device="cuda")
            say("child: context", f"{cost:.0f} ms")
            clock = Clock("cuda:0")
            cost, _ = ms(clock.warm)
            say("child: clock warm", f"{cost:.0f} ms {clock.timer} {clock.notes}")
            from evalcore.gpu.ring import LocalRing

            call, inputs = kernels()["A softmax 4096x4096"]
            call(inputs)
            cost, made = ms(clock.measure, call, LocalRing(inputs), n=10)
            report_samples("child: A", made)
            say("child: measure", f"{cost:.0f} ms")
        except BaseException:  # noqa: BLE001 - a child's main: whatever it was, print it and leave
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(child, 0)


PARTS = {name.removeprefix("part_"): function for name, function in list(globals().items()) if name.startswith("part_")}
PART = ""


def main() -> int:
    global PART
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--one", default="", help="run this part in this process")
    parser.add_argument("--json", default="", help="also write the lines here")
    args = parser.parse_args()
    if args.one:
        PART = args.one
        PARTS[args.one]()
        return 0
    failed = 0
    lines: dict[str, list[str]] = {}
    for part in args.parts.split(","):
        start = time.perf_counter()
        command = [sys.executable, os.path.abspath(__file__), "--one", part]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PART_TIMEOUT_S, cwd=ROOT)
            out, err, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            out = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            err, code = f"no end within {PART_TIMEOUT_S} s", 124
        print(out, end="")
        if code or "Traceback" in err:
            failed += 1
            print(f"{part:9s}| FAILED rc {code}\n" + "\n".join(err.strip().splitlines()[-15:]))
        elif err.strip():
            print(f"{part:9s}| stderr: " + err.strip().splitlines()[-1][:200])
        print(f"{part:9s}| took {time.perf_counter() - start:.1f} s", flush=True)
        lines[part] = out.splitlines()
    if args.json:
        Path(args.json).write_text(json.dumps(lines, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
