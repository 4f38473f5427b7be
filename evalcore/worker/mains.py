"""Owns the main functions of children: case, referee, facts. Never runs in the loop itself, only after a fork.

What they need of torch and of the rest is imported here, inside the functions, so that the loop's own imports stay free
of anything that opens a card.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

from evalcore.worker.post import Letter, Post
from evalcore.worker.settle import Settling, confine, open_device

_EVERYWHERE = ("evalcore.gpu.nvrtc", "evalcore.gpu.faults", "evalcore.gpu.frontend")
_LAZY = ("torch.utils._device", "torch._prims_common.wrappers", "torch.fx.experimental.symbolic_shapes")
"""What torch imports (sympy among it, 0.3 s) when the size of inputs is first worked out on tensors without memory."""
_CHILDREN = ("evalcore.worker.case", "evalcore.worker.case_timing", "evalcore.worker.referee", "evalcore.gpu.launched")
_BY_FLAVOUR = {"interpret": ("evalcore.gpu.interpreter",), "compile": ("evalcore.gpu.timing", "evalcore.gpu.autotune")}


def preload(flavour: str) -> None:
    """Import, once in the loop, what every fork would import for itself. None of these opens a card when imported."""
    for name in (*_EVERYWHERE, *_LAZY, *_CHILDREN, *_BY_FLAVOUR[flavour]):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from evalcore.gpu.nvrtc_library import prepare

    prepare()


def case_main(post: Post, settling: Settling, *, ipc: bool, clock: bool) -> None:
    """A spare: settle, warm, answer "warm", then serve one job until the loop ends us."""
    layers = confine(settling)
    from evalcore.gpu.stubs import watch_launchers
    from evalcore.worker.case import Case, CaseOptions

    open_device(settling)
    case = Case(CaseOptions(device=settling.device, scratch=settling.policy.scratch, ipc=ipc), post)
    notes: list[str] = []
    if clock and settling.device != "cpu":
        from evalcore.gpu.timing import Clock, ClockOptions

        case.clock = Clock(settling.device, ClockOptions(scratch=settling.policy.scratch, own_root=os.getppid()))
        case.clock.warm()
        notes = list(case.clock.notes)
    case.build_s = watch_builds(post)
    case.launchers = watch_launchers() if settling.device != "cpu" else []
    warmed = {"layers": list(layers), "notes": notes, "device": _device_facts(settling.device)}

    def answer(letter: Letter) -> tuple[dict[str, Any], list[int]]:
        return (warmed, []) if letter.body["ask"] == "warm" else case.answer_to(letter)

    _serve(post, answer)


def referee_main(post: Post, settling: Settling, *, problem: Any, seed: int) -> None:
    """A referee: settle, then answer for one problem until the loop ends us."""
    layers = confine(settling)
    from evalcore.worker.processes import set_dumpable
    from evalcore.worker.referee import Referee, RefereeOptions

    open_device(settling)
    # expected values live here: from now on no other process of this user may look into this one
    set_dumpable(False)
    options = RefereeOptions(problem=problem, device=settling.device, scratch=settling.policy.scratch, seed=seed)
    referee = Referee(options)

    def answer(letter: Letter) -> tuple[dict[str, Any], list[int]]:
        if letter.body["ask"] == "warm":
            return {"layers": list(layers), "device": _device_facts(settling.device)}, []
        return referee.answer_to(letter), []

    _serve(post, answer)


def _serve(post: Post, answer: Any) -> None:
    while True:
        letter = post.receive()
        if letter is None:
            return
        body, descriptors = answer(letter)
        letter.close()
        post.send({"post": "answer", **body}, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def watch_builds(post: Post) -> Callable[[], float]:
    """Tell the loop when Triton's compiler starts and ends: building has a time limit of its own.

    Returns a function that says how many seconds it took so far.
    """
    spent = [0.0]
    try:
        import triton.compiler as compiler
    except ImportError:
        return lambda: spent[0]
    compile_now, clock = compiler.compile, time.perf_counter

    def compile_told(*arguments: Any, **options: Any) -> Any:
        post.send({"post": "note", "building": True})
        started = clock()
        try:
            return compile_now(*arguments, **options)
        finally:
            spent[0] += clock() - started
            post.send({"post": "note", "building": False})

    compiler.compile = compile_told
    return lambda: spent[0]


def _device_facts(device: str) -> dict[str, Any]:
    """Memory of the card now; {} without one."""
    if device == "cpu":
        return {}
    import torch

    free, total = torch.cuda.mem_get_info(device)
    return {"free_bytes": free, "total_bytes": total}


def devices_main(post: Post, *, ceilings_folder: str) -> None:
    """A throw-away child that looks for cards and for roofs that were measured before. Runs nobody's code."""
    from evalcore.gpu.device import describe, why_no_device

    found: dict[str, Any] = {"devices": describe()}
    if found["devices"]:
        found["ceilings"] = _known_ceilings(found["devices"], ceilings_folder)
    else:
        found["why"] = why_no_device()
    _serve(post, lambda letter: (found, []))


def layers_main(post: Post, settling: Settling) -> None:
    """A throw-away child that tries the sandbox. Apart from the one that looks for cards: that one gets threads."""
    found = {"layers": list(confine(settling))}
    _serve(post, lambda letter: (found, []))


def stubs_main(post: Post, settling: Settling, *, signatures: list[tuple[str, ...]]) -> None:
    """A throw-away child that compiles launch stubs from signatures into its own cache. Runs nobody's code."""
    confine(settling)
    from evalcore.gpu.stubs import build

    found = {"built": build(signatures)}
    _serve(post, lambda letter: (found, []))


def _known_ceilings(devices: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    from evalcore.gpu.ceilings import cached
    from evalcore.gpu.nvml import Nvml
    from evalcore.wire import encode

    known: dict[str, Any] = {}
    for device in devices:
        card = Nvml().card_by_uuid(device["uuid"])
        ceilings = cached(card.facts(), folder) if card is not None else None
        if ceilings is not None:
            known[f"cuda:{device['index']}"] = encode(ceilings)
    return known


def ceilings_main(post: Post, device: str, folder: str) -> None:
    """A throw-away child that measures the card's roofs. Runs our own code only, so it may write its cache."""
    from evalcore.gpu.ceilings import measure_ceilings
    from evalcore.wire import encode

    try:
        found = {"ceilings": encode(measure_ceilings(device, cache_folder=folder))}
    except RuntimeError as fault:
        found = {"ceilings": None, "reason": str(fault).splitlines()[0]}
    _serve(post, lambda letter: (found, []))


def check_main(post: Post, settling: Settling, frame: dict[str, Any]) -> None:
    """Look at a text with Triton's front end or NVRTC, in the sandbox, without running it."""
    from evalcore.wire import encode

    confine(settling)
    path, text, target = frame["path"], frame["text"], frame.get("target")
    overlays = [(str(where), str(what)) for where, what in frame.get("overlays") or []]
    kernels = [str(each) for each in frame.get("kernels") or []]
    captured = [(str(name), str(signature)) for name, signature in frame.get("signatures") or []]
    if captured:
        from evalcore.gpu.ahead import compile_captured

        diagnostics, facts = compile_captured(path, text, overlays, captured, target)
    elif frame["language"] == "cuda":
        from evalcore.gpu.nvrtc import check_cuda

        diagnostics, facts = check_cuda(path, text, overlays, kernels, target)
    else:
        from evalcore.gpu.frontend import check_triton

        diagnostics, facts = check_triton(path, text, overlays, kernels, target)
    found = {"diagnostics": encode(diagnostics), "kernels": encode(facts)}
    _serve(post, lambda letter: (found, []))
