"""Owns expected outputs and the comparison: one long-lived process per problem. Never sees a candidate's text.

The loop asks, this process answers. It holds the reference, input sets with their keys made ahead of need, and opens what
a case exported; a set with a key is used for one text and then dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from evalcore.facts import Crash, Trial
from evalcore.gpu.answer import Key, answer, same_bits
from evalcore.gpu.compare import compare
from evalcore.gpu.counting import count
from evalcore.gpu.dispatch_modes import keep_compiler_out
from evalcore.gpu.faults import CandidateFault, locate
from evalcore.gpu.gradients import Gradients
from evalcore.gpu.inputs import UnsupportedInput, fill_, flat_values, to_specs
from evalcore.gpu.loading import Loaded, init_inputs, load, make_inputs
from evalcore.gpu.outputs import Output
from evalcore.gpu.precision import precision_flags
from evalcore.gpu.probes import probes
from evalcore.gpu.transfer import TransferError
from evalcore.problem import Case, InputsKind, Problem, ProgramKind, Work
from evalcore.wire import WireError, decode, encode
from evalcore.worker.post import Letter
from evalcore.worker.referee_buffers import Borrowed
from evalcore.worker.referee_sizes import Rotation, estimate_elements
from evalcore.worker.referee_variants import differences, twisted

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
    making_s: list[float] = field(default_factory=list)
    """How long each set of inputs took to make."""

    @property
    def sizes(self) -> dict[str, int]:
        """The case's size overrides."""
        return dict(self.case.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSet:
    """Inputs with the answer to them."""

    inputs: list[Any]
    key: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnTensors:
    """A reference as the counter sees it, to be counted on a real run: tensors without memory cost an import of torch's
    compiler, a second or two in each process, and the inputs are here anyway."""

    call: Callable[[list[Any]], Any]
    state: dict[str, torch.Tensor]


class Referee:
    """The state behind the questions. Each `on_*` takes a letter and returns the body of the answer."""

    def __init__(self, options: RefereeOptions) -> None:
        self._options = options
        self._problem = options.problem
        self._sides: dict[str, Side] = {}
        self._sets: dict[tuple[str, int], InputSet] = {}
        self._made: dict[tuple[str, int], list[Any]] = {}
        """Inputs that were filled and whose answer was not worked out yet."""
        self._kept: dict[tuple[str, int], list[Output]] = {}
        """Outputs of a first run, to compare a second one with."""
        self._turned: set[tuple[str, int]] = set()
        """(case, seed) of sets that were filled as rotated copies: they are expected as such."""
        self._borrowed = Borrowed(options.device)
        keep_compiler_out()

    def answer_to(self, letter: Letter) -> Body:
        """Answer one question; whatever the reference raises becomes a crash in the answer."""
        questions: dict[str, Callable[[Letter], Body]] = {
            "size": self.on_size,
            "study": self.on_study,
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
        case = decode(Case, letter.body["case"])
        recipe = self._load(case, [], entry=self._recipe())
        elements, size_bytes = estimate_elements(recipe, self._problem, dict(case.sizes), self._options.seed)
        return {"elements": elements, "bytes": size_bytes}

    def _recipe(self) -> str | None:
        """What to load for the inputs alone; None for the reference itself."""
        inputs = self._problem.inputs
        return inputs.function if inputs.kind is InputsKind.GET_INPUTS else None

    def on_study(self, letter: Letter) -> Body:
        """Counted work of a case, and whether plainly wrong answers would fail its check."""
        side = self._side(letter.body)
        one, other = (self._set(side, seed) for seed in letter.body["seeds"])
        return {
            "work": encode(self._work(side, one.inputs)),
            "probes": encode(
                probes(
                    one.key,
                    other.key.outputs,
                    self._problem.tolerance,
                    format=self._problem.format,
                    case=side.case.name,
                )
            ),
        }

    def _work(self, side: Side, inputs: list[Any]) -> Work | None:
        try:
            return count(_OnTensors(call=side.loaded.call, state=side.loaded.state), inputs)
        except CandidateFault:
            return None

    def on_open(self, letter: Letter) -> Body:
        """The reference at a case's sizes: its constructor inputs and its parameters, as specs."""
        side = self._side(letter.body)
        state = side.loaded.state
        return {
            "init": encode(to_specs(side.init)),
            "state": encode(to_specs(list(state.values()), list(state))),
            "files": encode(side.loaded.files()),
            "flags": precision_flags(),
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
        inputs = [each for each in flat_values(found.inputs) if isinstance(each, torch.Tensor)]
        return {
            "specs": encode(to_specs(found.inputs, self._problem.inputs.names)),
            "input_bytes": sum(each.numel() * each.element_size() for each in inputs),
            "output_bytes": sum(each.numel() * each.element_size() for each in outputs),
            "seconds": found.key.seconds,
        }

    def _set(self, side: Side, seed: int, twist: str | None = None) -> InputSet:
        key = (side.case.name, seed)
        if key not in self._sets:
            inputs = self._made.pop(key, None) or self._inputs(side, seed, timed=False)
            if twist is not None:
                inputs = twisted(inputs, twist, seed)
            self._sets[key] = InputSet(inputs=inputs, key=answer(side.loaded, inputs, seed=seed))
        return self._sets[key]

    def _inputs(self, side: Side, seed: int, *, timed: bool) -> list[Any]:
        if timed and side.rotation is not None:
            self._turned.add((side.case.name, seed))
            return side.rotation.turn(seed)
        started = time.perf_counter()
        made = make_inputs(side.loaded, self._problem, sizes=side.sizes, seed=seed)
        side.making_s.append(time.perf_counter() - started)
        if side.rotation is None:
            side.rotation = Rotation.where_slow(made, side.making_s)
        return made

    def on_lend(self, letter: Letter) -> Body:
        """Open storage that a case lends us under a name, to be filled as often as wanted."""
        self._borrowed.lend(letter.body, letter.descriptors)
        return {}

    def on_fill(self, letter: Letter) -> Body:
        """Write values into lent storage, each of `fills` naming the storage, what goes in, and at which offset."""
        side = self._side(letter.body)
        for each in letter.body["fills"]:
            values = self._values(side, each)
            names = list(side.loaded.state) if each["what"] == "state" else self._problem.inputs.names
            specs = to_specs([_plain(value) for value in values], names)
            flat = [_plain(value) for value in flat_values(values)]
            fill_(self._borrowed.laid(letter.body["owner"], each, specs), flat)
        self._drain()
        return {}

    def _values(self, side: Side, fill: Body) -> list[Any]:
        if fill["what"] == "state":
            return list(side.loaded.state.values())
        if fill["what"] == "init":
            return side.init
        if fill.get("twist") is not None:
            return self._set(side, fill["seed"], fill["twist"]).inputs
        key = (side.case.name, fill["seed"])
        if key in self._sets:
            return self._sets[key].inputs
        if fill["what"] == "timed":
            return self._inputs(side, fill["seed"], timed=True)
        self._made[key] = self._inputs(side, fill["seed"], timed=False)
        return self._made[key]

    def on_compare(self, letter: Letter) -> Body:
        """Judge nothing, measure everything: one Trial from a case's outputs and its inputs after the run."""
        body = letter.body
        side, seed = self._side(body), int(body["seed"])
        found = self._expected(side, seed, body)
        after = self._after(body, found)
        outputs = self._borrowed.outputs(body, letter.descriptors)
        mutated = self._mutated(found, after)
        if found.key.in_place_only:
            outputs = [_changed_input(index, after[index]) for index in found.key.mutated]
        kept = self._kept.pop((side.case.name, seed), None)
        if body.get("keep"):
            self._kept[side.case.name, seed] = outputs
        else:
            self._sets.pop((side.case.name, seed), None)
        if kept is not None:
            errors = differences(kept, outputs)
        else:
            errors = compare(outputs, found.key, self._problem.tolerance, format=self._problem.format)
        if body["kind"] == "backward":
            errors = tuple(replace(each, output=_inner(each.output)) for each in errors)
        name = body.get("twist") or side.case.name
        trial = Trial(
            case=name, seed=seed, outputs=errors, mutated_inputs=mutated, kind=body["kind"], origin=side.case.origin
        )
        return {"trial": encode(trial)}

    def _expected(self, side: Side, seed: int, body: Body) -> InputSet:
        """Inputs as the candidate got them, with their key."""
        if (side.case.name, seed) in self._sets:
            return self._sets[side.case.name, seed]
        if side.rotation is not None and (side.case.name, seed) in self._turned:
            inputs = side.rotation.turn(seed)
            return InputSet(inputs=inputs, key=answer(side.loaded, inputs, seed=seed))
        if body["kind"] == "backward":
            return self._gradients(side, seed, body["backward"])
        return self._set(side, seed, body.get("twist"))

    def _gradients(self, side: Side, seed: int, back: Body) -> InputSet:
        """The same inputs, with the reference's gradients for an answer."""
        inputs = self._made.pop((side.case.name, seed), None) or self._inputs(side, seed, timed=False)
        program = Gradients(
            program=side.loaded, inputs=tuple(back["inputs"]), parameters=tuple(back["parameters"]), seed=back["seed"]
        )
        return InputSet(inputs=inputs, key=answer(program, inputs, seed=seed))

    def _after(self, body: Body, found: InputSet) -> dict[int, torch.Tensor]:
        """Flat input index -> the case's tensor as it is now."""
        specs = to_specs(found.inputs, self._problem.inputs.names)
        laid = self._borrowed.laid(body["owner"], {"name": body["inputs"], "offset": body.get("offset", 0)}, specs)
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
        """Let go of all that one case lent or exported, of sets that were made for it, and of sizes not wanted again."""
        owner = letter.body["owner"]
        seeds, names = set(letter.body.get("seeds", ())), set(letter.body.get("cases", ()))
        self._sets = {key: each for key, each in self._sets.items() if key[1] not in seeds and key[0] not in names}
        self._turned.clear()
        self._made.clear()
        for name in names:
            self._sides.pop(name, None)
        self._borrowed.close(owner)
        if self._options.device != "cpu":
            # what the allocator keeps would count against the card's other users while nothing happens
            torch.cuda.empty_cache()
        return {}

    def _drain(self) -> None:
        if self._options.device != "cpu":
            torch.cuda.synchronize()


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _inner(output: str) -> str:
    """'grad x' from "out['grad x']"."""
    return output.removeprefix("out['").removesuffix("']")


def _changed_input(index: int, tensor: torch.Tensor) -> Output:
    """An input after the run, as an output: for references that return nothing."""
    return Output(name=f"input {index}", tensor=tensor.clone(), stride=tuple(tensor.stride()))
