"""Owns one evaluation of one text: load, run, export, time, exit. Never judges and never sees an expected value.

Everything here runs in the process that runs the candidate. It is trusted for nothing but bytes and timestamps; the
parent loop checks the form of every message and draws the conclusions.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from evalcore.gpu.ablation import ablated
from evalcore.gpu.arrival import arrive_late, take
from evalcore.gpu.faults import CandidateFault, locate
from evalcore.gpu.gradients import Gradients
from evalcore.gpu.importing import overlay_open
from evalcore.gpu.inputs import UnsupportedInput, allocate, arguments, canaries_intact, raw_bytes
from evalcore.gpu.integrity import changed, snapshot
from evalcore.gpu.loading import Loaded, load
from evalcore.gpu.outputs import Output, flatten
from evalcore.gpu.transfer import Exported, Exporter, TransferError
from evalcore.gpu.tripwire import Tripwire
from evalcore.gpu.uninitialised import poisoned
from evalcore.problem import Problem, TensorSpec
from evalcore.wire import decode, encode
from evalcore.worker.case_buffers import Lent
from evalcore.worker.post import Letter, Post

if TYPE_CHECKING:
    from evalcore.gpu.timing import Clock

Body = dict[str, Any]
_KEEPS_ITS_WORK = ("torch.compile", "CUDAGraph", "cuda.graph", "make_graphed_callables")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOptions:
    """What a case is made with, before its job is known."""

    device: str
    scratch: str
    ipc: bool = True


class Case:
    """The state behind the questions. Each `on_*` takes a letter and returns a body and what travels beside it."""

    def __init__(self, options: CaseOptions, post: Post) -> None:
        self.options = options
        self.post = post
        self.exporter = Exporter(options.device, ipc=options.ipc)
        self.lent: dict[str, Lent] = {}
        self._loaded: Loaded | None = None
        self._problem: Problem | None = None
        self.previous: Loaded | None = None
        """An earlier text of the same program, for a comparison side by side."""
        self._kept: Exported | None = None
        self._burst: list[Any] = []
        self.clock: Clock | None = None
        """Made and warmed by the main, on a card only."""
        self._threads = threading.active_count()
        overlay_open()
        self._before = snapshot()
        self._tripwire: Tripwire | None = None
        self._known = {id(module): module for module in sys.modules.values()}
        """Loaded before any problem was known; kept, so that no id is used again."""
        self.launchers: list[tuple[str, ...]] = []
        """Signatures of kernels that were made ready to launch, where this Triton compiles a stub for each."""
        self.build_s: Callable[[], float] = lambda: 0.0
        """Seconds that compilers have taken so far; replaced by the main where they are watched."""
        self.synchronize = torch.cuda.synchronize if options.device != "cpu" else _nothing

    def answer_to(self, letter: Letter) -> tuple[Body, list[int]]:
        """Answer one question; whatever the candidate raises becomes a crash in the answer."""
        questions: dict[str, Callable[[Body], tuple[Body, Exported | None]]] = {
            "load": self.on_load,
            "make": self.on_make,
            "state": self.on_state,
            "run": self.on_run,
            "burst": self.on_burst,
            "export": self.on_export,
            "time": self.on_time,
            "facts": self.on_facts,
        }
        try:
            body, exported = questions[letter.body["ask"]](letter.body)
        except CandidateFault as fault:
            return {"crash": encode(fault.crash)}, []
        except (TransferError, UnsupportedInput) as fault:
            return {"untransferable": str(fault)}, []
        except (RuntimeError, MemoryError) as fault:
            if self._loaded is None:
                raise
            return {"crash": encode(locate(fault, self._loaded.program))}, []
        return body, exported.descriptors if exported is not None else []

    @property
    def loaded(self) -> Loaded:
        """The program under test."""
        if self._loaded is None:
            raise RuntimeError("nothing was loaded")
        return self._loaded

    @property
    def problem(self) -> Problem:
        """The problem that the program answers."""
        if self._problem is None:
            raise RuntimeError("nothing was loaded")
        return self._problem

    def on_load(self, body: Body) -> tuple[Body, None]:
        """Load one side of the problem at some sizes. The text may do anything from here on."""
        self._problem = problem = decode(Problem, body["problem"])
        program = problem.reference if body.get("side") == "reference" else problem.candidate
        if "text" in body:
            program = replace(program, text=body["text"])
        _prefer(body.get("winners") or {})
        started = time.perf_counter()
        self._loaded = load(
            problem,
            program,
            sizes=body["sizes"],
            device=self.options.device,
            seed=body["seed"],
            init_inputs=self._init_inputs(body),
            scratch=self.options.scratch,
        )
        if body.get("as") == "previous":
            self.previous = self._loaded
        if body.get("side") != "reference":
            self._tripwire = Tripwire(problem, self._loaded.module, self._known)
        state = self._loaded.state
        return {
            "seconds": time.perf_counter() - started,
            "state": [[name, list(value.shape)] for name, value in state.items()],
        }, None

    def _init_inputs(self, body: Body) -> list[Any] | None:
        specs = [decode(TensorSpec, each) for each in body.get("init") or []]
        if not specs:
            return None
        if "init" in self.lent:
            self.lent["init"].pull()
            return self.lent["init"].arguments()
        return arguments(specs, [None] * len(specs))

    def on_make(self, body: Body) -> tuple[Body, Exported]:
        """Make storage for `specs` under a name, guarded and poisoned, and export it."""
        specs = tuple(decode(TensorSpec, each) for each in body["specs"])
        sizes = [raw_bytes(spec) + body.get("margin", 0) for spec in specs if spec.is_tensor]
        raws, exported = self.exporter.storage(sizes)
        shared = self.exporter.shares_device_memory or self.options.device == "cpu"
        own = iter(raws if shared else [torch.empty_like(raw, device=self.options.device) for raw in raws])
        per_spec = [next(own) if spec.is_tensor else None for spec in specs]
        inner = [raw[: raw_bytes(spec)] if raw is not None else None for spec, raw in zip(specs, per_spec, strict=True)]
        buffers = allocate(specs, self.options.device, raw=inner)
        if "margin" in body:
            buffers.raw = per_spec
        self.lent[body["name"]] = Lent(specs=specs, buffers=buffers, raws=raws)
        self.synchronize()
        return {"handles": exported.handles}, exported

    def on_state(self, body: Body) -> tuple[Body, None]:
        """Take over the reference's parameters, those that the loop found to match by name and shape."""
        lent = self.lent["state"]
        lent.pull()
        with torch.no_grad():
            for spec, tensor in zip(lent.specs, lent.buffers.tensors, strict=True):
                target = self.loaded.state.get(spec.name)
                if target is not None and tensor is not None:
                    target.data.copy_(tensor)
        self.synchronize()
        return {}, None

    def on_run(self, body: Body) -> tuple[Body, Exported]:
        """One call on the inputs that lie in the named storage; outputs are exported, inputs shown as they are now."""
        lent = self.lent[body["inputs"]]
        lent.pull()
        values = lent.next_arguments()
        if self.options.device == "cpu":
            _guard(lent.tensors())
        late = arrive_late([raw for raw in lent.buffers.raw if raw is not None]) if lent.calls % 2 == 0 else []
        if self._tripwire is not None:
            self._tripwire.arm()
        build_s = self.build_s()
        started = time.perf_counter()
        with self._poisoned(), ablated() if body.get("ablate") else _forced(body.get("force")):
            outputs = take(flatten(self._program(body).call(values)))
            self.synchronize()
        seconds = time.perf_counter() - started
        late.clear()
        lent.push()
        found, exported = self._publish(outputs)
        facts = {"seconds": seconds, "build_s": self.build_s() - build_s, "canaries": canaries_intact(lent.buffers)}
        return {**found, **facts}, exported

    def _program(self, body: Body) -> Loaded | Gradients:
        """The program as it is asked for: itself, or its gradients."""
        back = body.get("backward")
        if back is None:
            return self.loaded
        return Gradients(
            program=self.loaded, inputs=tuple(back["inputs"]), parameters=tuple(back["parameters"]), seed=back["seed"]
        )

    def _poisoned(self) -> AbstractContextManager[None]:
        """Uninitialised memory is NaN, but not where that would stay: in what is compiled or captured for later."""
        text = self.loaded.program.text
        return contextlib.nullcontext() if any(word in text for word in _KEEPS_ITS_WORK) else poisoned()

    def publish(self, out: Any) -> tuple[Body, Exported]:
        """What the program returned, described and exported; it stays alive until the next one is."""
        return self._publish(flatten(out))

    def _publish(self, outputs: list[Output]) -> tuple[Body, Exported]:
        self.synchronize()
        self._kept = self.exporter.publish([each.tensor for each in outputs if each.tensor is not None])
        self.synchronize()
        return {"outputs": describe(outputs), "handles": self._kept.handles}, self._kept

    def on_burst(self, body: Body) -> tuple[Body, None]:
        """Launch the program once on each of the named inputs, in a row, and keep what came out.

        For the outside clock: the loop measures how long the answer takes, with names and without any.
        """
        ready = [self.lent[name] for name in body["inputs"]]
        for lent in ready:
            lent.pull()
        values = [lent.arguments() for lent in ready]
        self.synchronize()
        self._burst = []
        self.post.ask({"post": "request", "want": "start"})
        self._burst = [self.loaded.call(each) for each in values]
        self.synchronize()
        return {}, None

    def on_export(self, body: Body) -> tuple[Body, Exported]:
        """One of the outputs of the latest burst."""
        self.lent[body["inputs"]].push()
        return self.publish(self._burst[body["index"]])

    def on_time(self, body: Body) -> tuple[Body, None]:
        """The timed part, as `body["what"]` says; see `evalcore.worker.case_timing`."""
        from evalcore.worker.case_timing import TIMED

        return TIMED[body["what"]](self, body), None

    def on_facts(self, body: Body) -> tuple[Body, None]:
        """What is known after the runs: kernels, files, remarks, threads."""
        loaded = self.loaded
        return {
            "kernels": encode(loaded.kernel_facts()),
            "files": encode(loaded.files()),
            "notes": encode(loaded.notes),
            "threads_left": max(threading.active_count() - self._threads, 0),
            "tampered": changed(self._before),
            "reference_called": self._tripwire is not None and self._tripwire.called,
            "tuned": _tuned(),
            "launchers": [list(each) for each in self.launchers],
        }, None


def describe(outputs: list[Output]) -> list[Body]:
    """Outputs as plain data; `handle` counts the tensors among them."""
    found: list[Body] = []
    tensors = 0
    for each in outputs:
        body: Body = {"name": each.name, "problem": each.problem}
        if each.tensor is not None:
            body.update(
                handle=tensors,
                shape=list(each.tensor.shape),
                dtype=str(each.tensor.dtype).removeprefix("torch."),
                stride=list(each.stride) if each.stride is not None else None,
                device=each.device,
                number=each.number,
            )
            tensors += 1
        found.append(body)
    return found


def _guard(tensors: list[torch.Tensor]) -> None:
    """Tell the interpreter's sanitizer where the inputs really end: between their canaries."""
    sanitizer = sys.modules.get("evalcore.gpu.sanitizer")
    if sanitizer is not None:
        sanitizer.guard(tensors)


def _nothing() -> None:
    """There is no card to wait for."""


def _prefer(winners: dict[str, str]) -> None:
    from evalcore.gpu import autotune

    autotune.prefer(winners)


def _forced(force: list[str] | None) -> Any:
    from evalcore.gpu import autotune

    return autotune.forced(force[0], force[1]) if force else contextlib.nullcontext()


def _tuned() -> list[Body]:
    from evalcore.gpu import autotune

    return [
        {"name": each.name, "configs": each.configs, "chosen": each.chosen, "timings_us": each.timings_us}
        for each in autotune.seen().values()
    ]
