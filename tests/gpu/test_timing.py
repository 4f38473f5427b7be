"""The clock on a real card: each recorder sees what runs, cold, and the figures agree where they must."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from evalcore.facts import Samples
from evalcore.gpu.ring import LocalRing
from evalcore.gpu.timing import Clock, ClockOptions, Labels
from evalcore.stats import FAST, compare_pairs

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

ROOT = Path(__file__).resolve().parents[2]
DEVICE = Labels(figures=("device",))


@pytest.fixture(scope="module")
def clock() -> Clock:
    torch.zeros(1, device="cuda")
    made = Clock("cuda:0")
    made.warm()
    return made


def timed(name: str) -> tuple[Any, list[Any]]:
    from benchmarks.timed_kernels import TABLE

    found = next(each for each in TABLE if each.name == name)
    inputs = found.make()
    found.call(inputs)
    torch.cuda.synchronize()
    return found.call, inputs


def median(samples: Samples) -> float:
    assert samples.values_us, samples.discarded
    return statistics.median(samples.values_us)


def device_us(clock: Clock, call: Any, inputs: list[Any], n: int = 30) -> float:
    (samples,) = clock.measure(call, LocalRing(inputs), n=n, labels=DEVICE)
    return median(samples)


def test_a_recorder_was_found(clock: Clock) -> None:
    assert clock.timer in ("cupti", "proton-cupti"), clock.notes


def test_three_figures_in_their_order(clock: Clock) -> None:
    call, inputs = timed("softmax 4096x4096")
    device, host, graph = clock.measure(call, LocalRing(inputs), n=20, stop=FAST)
    assert [each.figure for each in (device, host, graph)] == ["device", "call", "graph"]
    assert device.empty_kernel_us is not None and 0.2 < device.empty_kernel_us < 3.0
    assert median(host) > median(device)
    assert median(graph) == pytest.approx(median(device), rel=0.15)
    assert len(device.values_us) + len(device.discarded) == 11  # FAST: ten and the warm-up


def test_no_time_beats_the_card(clock: Clock) -> None:
    """128 MiB read and written cannot take less than the reported peak allows, nor ten times that."""
    from evalcore.gpu.ceilings import peak_gb_per_s
    from evalcore.gpu.nvml import Nvml

    card = Nvml().card_by_uuid(str(torch.cuda.get_device_properties(0).uuid))
    peak = peak_gb_per_s(card.facts()) if card is not None else None
    call, inputs = timed("softmax 4096x4096")
    took = device_us(clock, call, inputs)
    if peak is not None:
        floor = 2 * 4 * 4096 * 4096 / peak / 1e3
        assert floor * 0.98 < took < 10 * floor


def test_the_cache_is_cold(clock: Clock) -> None:
    """4 MiB fit the L2: without a flush the same kernel is faster."""
    from evalcore.gpu.figures import Bench, Run, device_figure

    call, inputs = timed("softmax 1024x1024")

    class Warm:
        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.flush_is_next = False

        def drain(self) -> None:
            self.inner.drain()

        def reset_persisting(self) -> None:
            self.inner.flush()
            self.inner.drain()

        def flush(self) -> None:
            """The recorder needs the flush's record: it comes early, then the inputs are read into the cache."""
            call(inputs)
            self.inner.drain()

        def mark(self) -> None:
            self.inner.mark()

    class Same:
        def next(self, index: int) -> list[Any]:
            return inputs

    cold = device_figure(clock.bench, Run(call=call, ring=Same(), n=30))
    bench = Bench(cache=Warm(clock.bench.cache), state=clock.state, recorder=clock.bench.recorder)
    both = device_figure(bench, Run(call=call, ring=Same(), n=30))
    warm = [calls[-1].device_us for calls in both.calls]
    assert statistics.median(warm) < statistics.median(cold.values)


def test_copies_are_counted(clock: Clock) -> None:
    if clock.timer != "cupti":
        pytest.xfail("Proton records kernels only")
    x = torch.randn(64 << 20, device="cuda")
    assert device_us(clock, lambda inputs: inputs[0].clone(), [x]) > 50.0


def test_work_of_other_threads_is_counted(clock: Clock) -> None:
    if clock.timer != "cupti":
        pytest.xfail("Proton's scopes are the calling thread's")
    x = torch.randn(16 << 20, device="cuda", requires_grad=True)

    def forward(inputs: list[Any]) -> Any:
        return (inputs[0] * inputs[0]).sum()

    def both(inputs: list[Any]) -> Any:
        return torch.autograd.grad(forward(inputs), inputs[0])

    assert device_us(clock, both, [x]) > 1.5 * device_us(clock, forward, [x])


def test_work_on_a_side_stream_is_counted(clock: Clock) -> None:
    x = torch.randn(16 << 20, device="cuda")
    side = torch.cuda.Stream()

    def aside(inputs: list[Any]) -> Any:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            return inputs[0] * 2.0

    plain = device_us(clock, lambda inputs: inputs[0] * 2.0, [x])
    assert device_us(clock, aside, [x]) == pytest.approx(plain, rel=0.15)


def test_a_call_without_kernels_has_no_device_time(clock: Clock) -> None:
    (samples,) = clock.measure(lambda inputs: inputs[0], LocalRing([torch.ones(8, device="cuda")]), n=5, labels=DEVICE)
    assert samples.values_us == ()
    assert {reason for _value, reason in samples.discarded[1:]} == {"no kernel activity was seen"}


def test_what_cannot_be_captured_has_a_reason(clock: Clock) -> None:
    x = torch.randn(1 << 20, device="cuda")

    def waits(inputs: list[Any]) -> Any:
        return inputs[0] * float(inputs[0].sum().item())

    made = clock.measure(waits, LocalRing([x]), n=5)
    assert made[2].values_us == ()
    assert "captured" in made[2].discarded[-1][1]
    assert device_us(clock, lambda inputs: inputs[0] * 2.0, [x]) > 0  # the device is as good as before


def test_repeated_evaluations_agree(clock: Clock) -> None:
    call, inputs = timed("softmax 4096x4096")
    medians = [device_us(clock, call, inputs, n=10) for _ in range(5)]
    assert (max(medians) - min(medians)) / statistics.median(medians) < 0.03


def test_a_text_against_itself_and_against_a_slower_one(clock: Clock) -> None:
    from benchmarks.timed_kernels import work
    from evalcore.gpu.ab import Sides, interleave

    inputs = [torch.randn(4 << 20, device="cuda")]
    for rounds in (400, 440):
        work(rounds)(inputs)
    ring = LocalRing(inputs)
    same = compare_pairs(*(s.values_us for s in interleave(clock, Sides(a=work(400), b=work(400), ring=ring))))
    assert same.verdict in ("same", "ambiguous")
    slower = compare_pairs(*(s.values_us for s in interleave(clock, Sides(a=work(400), b=work(440), ring=ring))))
    assert slower.verdict == "slower"


def test_recorded_launches_give_facts(clock: Clock) -> None:
    from evalcore.gpu.kernel_profile import from_launches, launched_kernels

    call, inputs = timed("softmax 4096x4096")
    device_us(clock, call, inputs, n=10)
    profile = from_launches(clock.launches, clock.timer)
    assert [row[0] for row in profile.kernels] == ["softmax_kernel"]
    if clock.timer == "cupti":
        (facts,) = launched_kernels(clock.launches, "sm_90")
        assert facts.registers and facts.warps == 8 and facts.theoretical_occupancy


def test_measured_roofs_are_below_the_reported_peaks(clock: Clock, tmp_path: Path) -> None:
    from evalcore.gpu.ceilings import measure_ceilings

    roofs = measure_ceilings("cuda:0", cache_folder=str(tmp_path), clock=clock)
    assert roofs.copy_gb_per_s is not None
    if roofs.peak_gb_per_s is not None:
        assert 0.5 * roofs.peak_gb_per_s < roofs.copy_gb_per_s < roofs.peak_gb_per_s
    peaks = dict(roofs.peak_tflops)
    for lane, rate in roofs.tflops:
        assert rate < peaks.get(lane, float("inf")), lane
    assert measure_ceilings("cuda:0", cache_folder=str(tmp_path)) == roofs


SCRIPT = """
import json, statistics, sys
sys.path.insert(0, {root!r})
import torch
from benchmarks.timed_kernels import softmax
from evalcore.gpu.ring import LocalRing
from evalcore.gpu.timing import Clock, ClockOptions
inputs = [torch.randn(4096, 4096, device="cuda")]
softmax(inputs)
clock = Clock("cuda:0", ClockOptions(recorders={recorders!r}))
clock.warm()
made = clock.measure(softmax, LocalRing(inputs), n=20)
print(json.dumps({{"timer": clock.timer, "notes": clock.notes, "us": statistics.median(made[0].values_us)}}))
"""


def alone(*recorders: str) -> dict[str, Any]:
    """The same kernel by other recorders, in a process of its own: two of them in one would fight for CUPTI."""
    script = SCRIPT.format(root=str(ROOT), recorders=recorders)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    got: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return got


def test_proton_and_events_agree_with_this_clock(clock: Clock) -> None:
    call, inputs = timed("softmax 4096x4096")
    mine = device_us(clock, call, inputs)
    proton = alone("proton")
    assert proton["timer"] == "proton-cupti", proton["notes"]
    assert proton["us"] == pytest.approx(mine, rel=0.03)
    events = alone()
    assert events["timer"] == "events"
    assert mine < events["us"] < mine + 15.0


def test_stalls_are_sampled() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import torch\n"
        "from benchmarks.timed_kernels import softmax\n"
        "from evalcore.gpu.ring import LocalRing\n"
        "from evalcore.gpu.stalls import sample_stalls\n"
        "inputs = [torch.randn(4096, 4096, device='cuda')]\n"
        "print(sample_stalls(softmax, LocalRing(inputs)).stalls[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "long_scoreboard" in done.stdout


def test_an_unwarmed_clock_says_so() -> None:
    with pytest.raises(RuntimeError, match="not warmed"):
        Clock("cuda:0", ClockOptions()).measure(lambda inputs: None, LocalRing([]), n=1)
