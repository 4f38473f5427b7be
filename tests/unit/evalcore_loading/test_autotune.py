"""Autotuned kernels run one config at a time, hooks and heuristics honoured, and Triton times nothing itself."""

from __future__ import annotations

import loading_problems as problems
import pytest

pytest.importorskip("triton")

TEXT = '''\
import torch
import triton
import triton.language as tl


def hook(nargs):
    nargs["out_ptr"].fill_(nargs["BLOCK"])


configs = [
    triton.Config({"BLOCK": 16}, num_warps=2, num_stages=1, pre_hook=hook),
    triton.Config({"BLOCK": 32}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK": 512}, num_warps=4, num_stages=2),
]


def prune(configs, named_args, **kwargs):
    assert named_args["n"] == 64
    return [one for one in configs if one.kwargs["BLOCK"] <= named_args["n"]]


def never(*args, **kwargs):
    raise SystemExit("Triton must not time anything")


@triton.autotune(configs, key=["n"], prune_configs_by={"early_config_prune": prune}, do_bench=never,
                 reset_to_zero=["out_ptr"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + tl.load(out_ptr + i, mask=i < n) + EVEN, mask=i < n)


def run(x):
    out = torch.zeros_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
'''


def body_choice() -> None:
    import torch

    from evalcore.gpu import autotune

    problem = problems.expression("/nowhere/t.py", TEXT, "run(x)", "x + 17", "x = torch.rand(64)", names=("x",))
    wanted, got, loaded = problems.both(problem)
    assert torch.equal(wanted, got)  # the first config: its hook filled 16, and 64 is even
    seen = autotune.seen()["kernel"]
    assert seen.configs == ["BLOCK=16, num_warps=2, num_stages=1", "BLOCK=32, num_warps=4, num_stages=2"]
    assert seen.chosen == seen.configs[0] and seen.timings_us == {}
    x = torch.rand(64)
    with autotune.forced("kernel", seen.configs[1]):
        assert torch.equal(loaded.call([x]), x + 1)
    autotune.prefer({"kernel": seen.configs[1]})
    assert torch.equal(loaded.call([x]), x + 1)
    autotune.prefer({"kernel": "BLOCK=1"})  # no longer listed: as if there were no winner
    assert torch.equal(loaded.call([x]), x + 17)


def test_one_config_runs_hooks_and_pruning_are_honoured(interpreted):
    interpreted(body_choice)


def body_warmup() -> None:
    """The persistent softmax of the tutorials: warm up, read resources, launch the compiled kernel by hand."""
    import torch

    text = TEXT.split("def hook")[0] + (
        "properties = triton.runtime.driver.active.utils.get_device_properties(0)\n"
        "NUM_SM = properties['multiprocessor_count']\n"
        "@triton.jit\ndef twice(out_ptr, x_ptr, n, BLOCK: tl.constexpr, stages: tl.constexpr):\n"
        "    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=stages):\n"
        "        i = start + tl.arange(0, BLOCK)\n"
        "        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)\n"
        "def run(x):\n    out = torch.empty_like(x)\n"
        "    kernel = twice.warmup(out, x, x.numel(), BLOCK=16, stages=2, num_warps=4, grid=(1,))\n"
        "    kernel._init_handles()\n    per_sm = min(8, 65536 // max(kernel.n_regs, 1), 1 + kernel.metadata.shared)\n"
        "    kernel[(min(NUM_SM * per_sm, 3), 1, 1)](out, x, x.numel(), 16, 2)\n    return out\n"
    )
    problem = problems.expression("/nowhere/w.py", text, "run(x)", "x * 2", "x = torch.rand(100)", names=("x",))
    wanted, got, loaded = problems.both(problem)
    assert torch.equal(wanted, got)
    assert [(one.name, one.launches) for one in loaded.kernel_facts()] == [("twice", 1)]


def test_a_kernel_launched_by_hand_after_its_warm_up(interpreted):
    interpreted(body_warmup)


def body_graph(text: str) -> list:
    problem = problems.expression("/nowhere/g.py", text, "run(x)", "x", "x = torch.rand(4)", names=("x",))
    crash = problems.crash_of(problem)
    return [crash.kind, crash.message, problems.marked(problem, crash)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("g = torch.cuda.CUDAGraph()", "CUDA graphs cannot be interpreted"),
        ("torch.cuda.Event(enable_timing=True).elapsed_time(None)", "nothing is timed without a GPU"),
    ],
)
def test_what_only_a_gpu_can_do_is_said(interpreted, line, words):
    kind, message, marked = interpreted(body_graph, f"import torch\n\ndef run(x):\n    {line}\n    return x\n")
    assert kind == "cannot_interpret" and words in message
    assert marked.split("(")[0] in line


def test_old_numpy_with_old_triton_is_said_clearly(monkeypatch):
    import numpy
    import triton

    from evalcore.gpu import interpreter

    monkeypatch.setattr(triton, "__version__", "3.5.1")
    monkeypatch.setattr(numpy, "__version__", "2.4.0")
    with pytest.raises(interpreter.WrongVersions, match=r"install 'numpy<2.4' or Triton 3.7"):
        interpreter._check_versions()


def body_two_shapes() -> None:
    import torch

    from evalcore.gpu import autotune

    text = TEXT.replace('assert named_args["n"] == 64\n', "COUNT.append(1)\n")
    text = text.replace("def hook", "COUNT = []\n\n\ndef hook")
    problem = problems.expression(
        "/nowhere/t.py", text, "run(x) + run(y).sum()", "x", "x = torch.rand(64)\ny = torch.rand(100)", names=("x", "y")
    )
    autotune.prefer({"kernel#2": "BLOCK=32, num_warps=4, num_stages=2"})
    _, _, loaded = problems.both(problem)
    seen = autotune.seen()
    assert set(seen) == {"kernel", "kernel#2"}
    assert seen["kernel"].chosen.startswith("BLOCK=16") and seen["kernel#2"].chosen.startswith("BLOCK=32")
    counted = len(loaded.module.COUNT)
    loaded.call([torch.rand(64), torch.rand(100)])
    assert len(loaded.module.COUNT) == counted == 2  # pruned once per key, as Triton does


def test_each_shape_has_its_own_choice(interpreted):
    interpreted(body_two_shapes)


def body_cache_key() -> None:
    from evalcore.gpu import compile_faults, fake_cuda, importing

    text = "import triton\nimport triton.language as tl\nN = tl.constexpr(1)\n@triton.jit\ndef k(p):\n    tl.store(p, N)\n"
    compile_faults.watch_compiler()
    fake_cuda.install()
    keys = []
    for one in (text, text.replace("(1)", "(2)"), text):
        project = importing.begin("/nowhere/k.py", "/nowhere", ())
        keys.append(importing.run_main(project, one).k.cache_key)
    assert keys[0] == keys[2] != keys[1]


def test_an_edited_global_is_another_kernel_in_triton_s_cache(compiled):
    compiled(body_cache_key)
