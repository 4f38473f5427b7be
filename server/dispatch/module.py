"""Owns the text of a dispatch module: readable Python that needs torch and what its candidates import, and no Odyssey.

An unknown shape, dtype, layout or card takes the baseline's path. Never measures and never decides who wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalcore.problem import Problem, ProgramKind, TensorSpec
from server.dispatch.merging import CannotMerge, Part, part, shared_imports
from server.dispatch.surface import Surface, baseline_source, surface

Look = tuple[object, ...]
"""What an argument list looks like to the module: ((shape, dtype, strides), ...) or plain values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One group that a candidate serves."""

    group: str
    sha: str
    text: str
    """The candidate's whole file."""
    seq: int
    """The ledger row that it rests on."""
    words: str
    """'worst case 1.31x on 4096x4096; faster than 1a2b... by interleaved A/B'."""
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Everything that the module is made of."""

    problem: Problem
    card: str
    """The name that torch gives the card, 'cpu' without one."""
    entries: tuple[Entry, ...]
    baseline_groups: tuple[tuple[str, str], ...]
    """(group, why no candidate serves it)."""
    versions: Mapping[str, str]
    at: str


def look_of(specs: Sequence[TensorSpec]) -> Look:
    """How the module sees inputs with these specs. Raises CannotMerge for what it cannot tell apart."""
    found: list[object] = []
    for spec in specs:
        if spec.is_tensor:
            found.append((tuple(spec.shape), spec.dtype, tuple(spec.stride)))
        elif spec.scalar is None or isinstance(spec.scalar, (bool, int, float, str)):
            found.append(spec.scalar)
        else:
            raise CannotMerge(f"input {spec.name} is a {type(spec.scalar).__name__}; a dispatch tells tensors apart")
    return tuple(found)


def module_text(sheet: Sheet) -> str:
    """The module. Raises CannotMerge."""
    shas = list(dict.fromkeys(entry.sha for entry in sheet.entries))
    texts = {entry.sha: entry.text for entry in sheet.entries}
    surfaces = {sha: surface(sheet.problem, texts[sha]) for sha in shas}
    face = _common(surfaces) if shas else surface(sheet.problem, sheet.problem.candidate.text)
    parts = {sha: part(texts[sha], [surfaces[sha].public], f"c{sha[:8]}") for sha in shas}
    text, entry = baseline_source(sheet.problem)
    baseline = part(text, [entry], "baseline")
    imports = shared_imports([baseline, *parts.values()])
    if "import torch" not in imports:
        imports = [*(line for line in imports if line.startswith("from __future__")), "import torch",
                   *(line for line in imports if not line.startswith("from __future__"))]  # fmt: skip
    blocks = [_head(sheet, face), "\n".join(imports) + "\n", _block(baseline, "the baseline: every unknown case")]
    for sha in shas:
        rests = ", ".join(f"row {each.seq}" for each in sheet.entries if each.sha == sha)
        blocks.append(_block(parts[sha], f"candidate {sha[:12]}, {rests}"))
    chosen = {sha: parts[sha].names[surfaces[sha].public] for sha in shas}
    blocks.append(_table(sheet, chosen))
    blocks.append(_SIGNATURE)
    blocks.append(_face(face, baseline.names[entry], backward=sheet.problem.backward))
    return "\n\n".join(block.strip("\n") + "\n" for block in blocks)


def _common(surfaces: Mapping[str, Surface]) -> Surface:
    """Candidates with other parameters cannot stand behind one function."""
    first = next(iter(surfaces.values()))
    for sha, each in surfaces.items():
        if each != first:
            raise CannotMerge(f"candidate {sha[:12]} has other parameters ({each.signature}) than {first.signature}")
    return first


def _head(sheet: Sheet, face: Surface) -> str:
    """The docstring: what takes which path and on what it rests."""
    lines = [
        f"{face.public}, dispatched by shape. Written by Odyssey on {sheet.at[:10]} from measurements on {sheet.card}.",
        "",
        "Plain Python: needs torch and what the candidates import, nothing else. Unknown shapes, dtypes, layouts",
        "and cards take the baseline's path.",
        "",
    ]
    for entry in sheet.entries:
        lines.append(f"{entry.group}: candidate {entry.sha[:12]} (ledger row {entry.seq}): {entry.words}")
    lines += [f"{group}: the baseline: {why}" for group, why in sheet.baseline_groups]
    lines += ["", f"Measured with {', '.join(f'{name} {value}' for name, value in sheet.versions.items())}."]
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'


def _block(made: Part, words: str) -> str:
    return f"# ---- {words} {'-' * max(4, 110 - len(words))}\n\n\n{made.text}"


def _table(sheet: Sheet, chosen: Mapping[str, str]) -> str:
    lines = ["# ---- which candidate serves which inputs " + "-" * 78, "", f"CARD = {sheet.card!r}", "", "CHOICES = {"]
    for entry in sheet.entries:
        lines.append(f"    # {entry.group}")
        lines += [f"    {look!r}: {chosen[entry.sha]}," for look in entry.looks]
    return "\n".join([*lines, "}"]) + "\n"


_SIGNATURE = '''
def _look(*values):
    """What the inputs look like: (shape, dtype, strides) of each tensor, other values as they are."""
    return tuple(
        (tuple(value.shape), str(value.dtype).removeprefix("torch."), tuple(value.stride()))
        if isinstance(value, torch.Tensor)
        else value
        for value in values
    )


_CARDS = {}


def _on_the_card(values):
    """True where every tensor lies on a card of the kind that was measured."""
    for value in values:
        if isinstance(value, torch.Tensor):
            device = value.device
            if device not in _CARDS:
                _CARDS[device] = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
            if _CARDS[device] != CARD:
                return False
    return True


def _chosen(*values):
    """The candidate for these inputs, None for the baseline."""
    try:
        found = CHOICES.get(_look(*values))
    except TypeError:  # an input that cannot be looked up
        return None
    return found if found is not None and _on_the_card(values) else None
'''


def _face(face: Surface, baseline: str, *, backward: bool) -> str:
    """The function or class that callers use."""
    if face.kind is ProgramKind.MODULE:
        return _MODULE.format(public=face.public, baseline=baseline)
    values = ", ".join(face.inputs)
    lines = [
        f"def {face.public}({face.signature}):",
        f'    """The fastest measured path for these inputs, {baseline} for any other."""',
    ]
    if face.fixed:
        names, wanted = (tuple(each[index] for each in face.fixed) for index in (0, 1))
        words = f"{face.public} was judged with {', '.join(f'{name}={value!r}' for name, value in face.fixed)} only"
        lines += [f"    if ({', '.join(map(str, names))},) != {wanted!r}:", f"        raise ValueError({words!r})"]
    if not backward:
        lines += [
            f"    if torch.is_grad_enabled() and any(getattr(value, 'requires_grad', False) for value in [{values}]):",
            f"        return {baseline}({values})",
        ]
    passed = ", ".join(f"{name}={name}" for name in face.parameters)
    lines += [
        f"    chosen = _chosen({values})",
        "    if chosen is None:",
        f"        return {baseline}({values})",
        f"    return chosen({passed})",
    ]
    return "\n".join(lines) + "\n"


_MODULE = '''
class {public}({baseline}):
    """The reference's module; forward takes the fastest measured path for its inputs, the reference's for any other."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__["_arguments"] = (args, kwargs)
        self.__dict__["_built"] = {{}}

    def forward(self, *inputs):
        chosen = _chosen(*inputs) if not self.training or not torch.is_grad_enabled() else None
        if chosen is None:
            return super().forward(*inputs)
        if chosen not in self._built:
            self._built[chosen] = self._build(chosen)
        return self._built[chosen](*inputs)

    def _build(self, kind):
        """A candidate's module that shares this one's parameters and buffers, by name and shape."""
        args, kwargs = self._arguments
        made = kind(*args, **kwargs)
        mine = dict(self.named_parameters()) | dict(self.named_buffers())
        for name, value in [*made.named_parameters(), *made.named_buffers()]:
            if name in mine and mine[name].shape == value.shape:
                place, _, last = name.rpartition(".")
                owner = made.get_submodule(place)
                (owner._parameters if last in owner._parameters else owner._buffers)[last] = mine[name]
        first = next(iter(mine.values()), None)
        made = made if first is None else made.to(first.device)
        return made.train(self.training)
'''
