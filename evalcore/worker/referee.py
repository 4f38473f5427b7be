"""Owns expected outputs and the comparison: one long-lived process per problem. Never sees a candidate's text.

The loop asks, this process answers. It holds the reference, input sets with their keys made ahead of need, and opens what
a case exported; a set with a key is used for one text and then dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from evalcore.facts import Crash, Trial
from evalcore.gpu.answer import Key, answer, same_bits
from evalcore.gpu.compare import compare
from evalcore.gpu.faults import CandidateFault, locate
from evalcore.gpu.inputs import Buffers, UnsupportedInput, fill_, flat_values, raw_bytes, to_specs, view
from evalcore.gpu.loading import Loaded, init_inputs, load, make_inputs
from evalcore.gpu.outputs import Output
from evalcore.gpu.transfer import Importer, TransferError
from evalcore.problem import Case, Problem, ProgramKind, TensorSpec
from evalcore.wire import WireError, decode, encode
from evalcore.worker.post import Letter
from evalcore.worker.referee_sizes import Rotation, estimate_elements

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefereeOptions:
    """What a referee is made with."""

    problem: Problem
    device: str
    scratch: str
    seed: int
    """Set before the reference's constructor; the candidate's constructor gets the same."""


@dataclass(slots=True, kw_only=True)
class Side:
    """The reference at one size setting."""

    case: Case
    loaded: Loaded
    init: list[Any]
    rotation: Rotation | None = None
    """Where making inputs is slow: rotated copies of one set for timed calls."""

    @property
    def sizes(self) -> dict[str, int]:
        """The case's size overrides."""
        return dict(self.case.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSet:
    """Inputs with the answer to them."""

    inputs: list[Any]
    key: Key


class Referee:
    """The state behind the questions. Each `on_*` takes a letter and returns the body of the answer."""

    def __init__(self, options: RefereeOptions) -> None:
        self._options = options
        self._problem = options.problem
        self._sides: dict[str, Side] = {}
        self._sets: dict[tuple[str, int], InputSet] = {}
        self._raws: dict[tuple[str, str], list[torch.Tensor]] = {}
        """(owner, name) -> guarded storage that a case lent us."""
        self._importer = Importer(options.device)

    def answer_to(self, letter: Letter) -> Body:
        """Answer one question; whatever the reference raises becomes a crash in the answer."""
        questions: dict[str, Callable[[Letter], Body]] = {
            "size": self.on_size,
            "open": self.on_open,
            "stock": self.on_stock,
            "lend": self.on_lend,
            "fill": self.on_fill,
            "compare": self.on_compare,
            "forget": self.on_forget,
        }
        try:
            return questions[letter.body["ask"]](letter)
        except CandidateFault as fault:
            return {"crash": encode(fault.crash)}
        except UnsupportedInput as fault:
            return {"crash": encode(Crash(kind="exception", message=str(fault)))}
        except TransferError as fault:
            return {"breach": str(fault)}
        except (RuntimeError, ValueError, TypeError, MemoryError, WireError) as fault:
            return {"crash": encode(locate(fault, self._problem.reference))}

    def on_size(self, letter: Letter) -> Body:
        """How many input elements and bytes a case has, without making them; None where that cannot be told."""
        side = self._side(letter.body)
        elements, size_bytes = estimate_elements(side.loaded, self._problem, side.sizes, self._options.seed)
        return {"elements": elements, "bytes": size_bytes}

    def on_open(self, letter: Letter) -> Body:
        """The reference at a case's sizes: its constructor inputs and its parameters, as specs."""
        side = self._side(letter.body)
        state = side.loaded.state
        return {
            "init": encode(to_specs(side.init)),
            "state": encode(to_specs([each.detach() for each in state.values()], list(state))),
            "files": encode(side.loaded.files()),
            "notes": encode(side.loaded.notes),
        }

    def _side(self, body: Body) -> Side:
        case = decode(Case, body["case"])
        if case.name not in self._sides:
            init = self._init_inputs(case)
            self._sides[case.name] = Side(case=case, loaded=self._load(case, init), init=init)
        return self._sides[case.name]

    def _load(self, case: Case, init: list[Any], *, entry: str | None = None) -> Loaded:
        options, reference = self._options, self._problem.reference
        if entry is not None:
            reference = replace(reference, kind=ProgramKind.FUNCTION, entry=entry)
        return load(
            self._problem,
            reference,
            sizes=dict(case.sizes),
            device=options.device,
            seed=options.seed,
            init_inputs=init,
            scratch=options.scratch,
        )

    def _init_inputs(self, case: Case) -> list[Any]:
        """The constructor's arguments, from a slice that holds nothing but their function."""
        function = self._problem.inputs.init_function
        if function is None or self._problem.reference.kind is not ProgramKind.MODULE:
            return []
        return init_inputs(self._load(case, [], entry=function))

    def on_stock(self, letter: Letter) -> Body:
        """Make one set of inputs with its key, if it is not there yet. Returns the inputs' specs."""
        side, seed = self._side(letter.body), int(letter.body["seed"])
        found = self._set(side, seed)
        outputs = [each.tensor for each in found.key.outputs if each.tensor is not None]
        return {
            "specs": encode(to_specs(found.inputs, self._problem.inputs.names)),
            "output_elements": sum(each.numel() for each in outputs),
            "output_bytes": sum(each.numel() * each.element_size() for each in outputs),
            "seconds": found.key.seconds,
        }

    def _set(self, side: Side, seed: int) -> InputSet:
        key = (side.case.name, seed)
        if key not in self._sets:
            inputs = self._inputs(side, seed, timed=False)
            self._sets[key] = InputSet(inputs=inputs, key=answer(side.loaded, inputs, seed=seed))
        return self._sets[key]

    def _inputs(self, side: Side, seed: int, *, timed: bool) -> list[Any]:
        if timed and side.rotation is not None:
            return side.rotation.turn(seed)
        started = time.perf_counter()
        made = make_inputs(side.loaded, self._problem, sizes=side.sizes, seed=seed)
        if side.rotation is None:
            side.rotation = Rotation.where_slow(made, time.perf_counter() - started)
        return made

    def on_lend(self, letter: Letter) -> Body:
        """Open storage that a case lends us under a name, to be filled as often as wanted."""
        body = letter.body
        self._raws[body["owner"], body["name"]] = self._importer.open(
            body["owner"], body["handles"], letter.descriptors
        )
        return {}

    def on_fill(self, letter: Letter) -> Body:
        """Write values into lent storage, each of `fills` naming the storage, what goes in, and at which offset."""
        side = self._side(letter.body)
        for each in letter.body["fills"]:
            values = self._values(side, each)
            specs = to_specs(values, self._problem.inputs.names)
            flat = [value.detach() if isinstance(value, torch.Tensor) else value for value in flat_values(values)]
            fill_(self._laid(letter.body["owner"], each, specs), flat)
        self._drain()
        return {}

    def _values(self, side: Side, fill: Body) -> list[Any]:
        if fill["what"] == "state":
            return list(side.loaded.state.values())
        if fill["what"] == "init":
            return side.init
        found = self._sets.get((side.case.name, fill["seed"]))
        return found.inputs if found is not None else self._inputs(side, fill["seed"], timed=fill["what"] == "timed")

    def _laid(self, owner: str, fill: Body, specs: list[TensorSpec]) -> Buffers:
        """The specs' tensors over the storage lent under a name."""
        raws = self._raws[owner, fill["name"]]
        chosen = [index for index, spec in enumerate(specs) if spec.is_tensor]
        wanted = fill.get("only")
        if wanted is not None:
            chosen = [index for index in chosen if specs[index].name in wanted]
        tensors: list[torch.Tensor | None] = [None] * len(specs)
        offset = int(fill.get("offset", 0))
        for raw, index in zip(raws, chosen, strict=True):
            if offset + raw_bytes(specs[index]) > raw.numel():
                raise TransferError("storage that is too small for what should go into it")
            tensors[index] = view(specs[index], raw[offset : offset + raw_bytes(specs[index])])
        return Buffers(specs=tuple(specs), tensors=tensors)

    def on_compare(self, letter: Letter) -> Body:
        """Judge nothing, measure everything: one Trial from a case's outputs and its inputs after the run."""
        body = letter.body
        side, seed = self._side(body), int(body["seed"])
        timed = body["kind"] == "timed"
        if timed and side.rotation is not None and (side.case.name, seed) not in self._sets:
            inputs = side.rotation.turn(seed)
            found = InputSet(inputs=inputs, key=answer(side.loaded, inputs, seed=seed))
        else:
            found = self._set(side, seed)
        outputs = self._outputs(letter)
        after = self._after(body, found)
        mutated = self._mutated(found, after)
        if found.key.in_place_only:
            outputs = [
                Output(name=f"input {index}", tensor=after[index].clone(), stride=tuple(after[index].stride()))
                for index in found.key.mutated
            ]
        errors = compare(outputs, found.key, self._problem.tolerance, format=self._problem.format)
        if not body.get("keep"):
            self._sets.pop((side.case.name, seed), None)
        trial = Trial(
            case=side.case.name,
            seed=seed,
            outputs=errors,
            mutated_inputs=mutated,
            kind=body["kind"],
            origin=side.case.origin,
        )
        return {"trial": encode(trial)}

    def _outputs(self, letter: Letter) -> list[Output]:
        """A copy of our own of everything that the case returned: what it writes later changes nothing."""
        raws = self._importer.open(letter.body["owner"], letter.body["handles"], letter.descriptors)
        found = []
        for described in letter.body["outputs"]:
            tensor = None
            if described.get("handle") is not None:
                dtype = _dtype(described["dtype"])
                raw = raws[described["handle"]].clone()
                tensor = raw.view(dtype).reshape(described["shape"])
            found.append(
                Output(
                    name=described["name"],
                    tensor=tensor,
                    problem=described.get("problem"),
                    stride=tuple(described["stride"]) if described.get("stride") is not None else None,
                    device=described.get("device", ""),
                    number=bool(described.get("number")),
                )
            )
        return found

    def _after(self, body: Body, found: InputSet) -> dict[int, torch.Tensor]:
        """Flat input index -> the case's tensor as it is now."""
        specs = to_specs(found.inputs, self._problem.inputs.names)
        laid = self._laid(body["owner"], {"name": body["inputs"], "offset": body.get("offset", 0)}, specs)
        return {index: tensor for index, tensor in enumerate(laid.tensors) if tensor is not None}

    def _mutated(self, found: InputSet, after: dict[int, torch.Tensor]) -> tuple[str, ...]:
        """Names of inputs that the candidate changed and the reference does not."""
        values = flat_values(found.inputs)
        names = [spec.name for spec in to_specs(found.inputs, self._problem.inputs.names)]
        return tuple(
            names[index]
            for index, tensor in after.items()
            if index not in found.key.mutated and not same_bits(values[index].detach(), tensor)
        )

    def on_forget(self, letter: Letter) -> Body:
        """Let go of all that one case lent or exported."""
        owner = letter.body["owner"]
        self._raws = {key: raws for key, raws in self._raws.items() if key[0] != owner}
        self._importer.close(owner)
        return {}

    def _drain(self) -> None:
        if self._options.device != "cpu":
            torch.cuda.synchronize()


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TransferError(f"an unknown dtype {name[:40]!r}")
    return found
