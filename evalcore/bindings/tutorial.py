"""Owns the Triton tutorial style: a wrapper compared with a torch expression, or timed beside one, in the same file.

The comparison gives reference, candidate and inputs; a `perf_report` beside it gives more sizes. Never runs either.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from evalcore.bindings.binding import Binding, Reader, Source, stores, unparse
from evalcore.bindings.calls import HostMap, flat_module
from evalcore.bindings.compares import Compare, find_compares
from evalcore.bindings.constants import assigned, module_constants
from evalcore.bindings.programs import make_program, write
from evalcore.bindings.root import project_root
from evalcore.bindings.scopes import Scope, scope_of
from evalcore.bindings.sizes import Sizes, make_cases, name_sizes, wrapper_hints
from evalcore.bindings.slices import Flow, Split
from evalcore.bindings.sweeps import Sweep, find_sweeps, sweep_hints, sweep_settings
from evalcore.names import dotted
from evalcore.problem import Inputs, InputsKind, Problem, Tolerance

FORMAT = "tutorial"
_MOST_COMPARES = 400
_MOST_WAYS = 4
"""Ways to judge the same kernels that are offered; more would only fill the picker."""


@dataclass(frozen=True, slots=True)
class _File:
    """What all comparisons of one file share."""

    source: Source
    hosts: HostMap
    module_names: frozenset[str]
    sweeps: list[Sweep]
    root: str
    format: str


def bind_tutorial(source: Source, read: Reader, hosts: HostMap, *, format: str = FORMAT) -> list[Binding]:
    """A binding for each comparison of a kernel's work with something else, in file order; then for benchmarks."""
    if not hosts.kernels:
        return []
    names = _module_names(source)
    sweeps = find_sweeps(source.tree, hosts, module_constants(source.tree.body))
    file = _File(source, hosts, names, sweeps, project_root(source.path, read), format)
    found: list[Binding] = []
    for compare in find_compares(source.tree)[:_MOST_COMPARES]:
        binding = _bind_compare(file, compare)
        alike = [other for other in found if binding is not None and other.kernels == binding.kernels]
        if binding is not None and len(alike) < _MOST_WAYS and not any(_same(binding, other) for other in alike):
            found.append(binding)
    bound = {kernel for binding in found for kernel in binding.kernels}
    for sweep in sweeps:
        binding = _bind_sweep(file, sweep)
        if binding is not None and not set(binding.kernels) <= bound:
            found.append(binding)
    return found


def why_not(source: Source, hosts: HostMap) -> str:
    """Why the first comparison that runs a kernel could not be used, for a person; '' where there is none."""
    names = _module_names(source)
    for compare in find_compares(source.tree)[:_MOST_COMPARES]:
        scope = scope_of(compare.path, source.tree, hosts)
        flow = Flow(scope.statements, hosts, names) if scope is not None else None
        if flow is None or not (flow.is_candidate(compare.left) or flow.is_candidate(compare.right)):
            continue
        got, want = compare.left, compare.right
        if not flow.is_candidate(got):
            got, want = want, got
        split = flow.split(got, want)
        if isinstance(split, str):
            return f"{compare.form} in line {compare.line} cannot be used: {split}"
    return ""


def _module_names(source: Source) -> frozenset[str]:
    return frozenset().union(*(stores(each) for each in flat_module(source.tree.body)), frozenset())


def bind_triton(source: Source, read: Reader, hosts: HostMap) -> list[Binding]:
    """Bindings whose kernels are all Triton's."""
    if not any(kernel.language == "triton" for kernel in hosts.kernels.values()):
        return []
    found = bind_tutorial(source, read, hosts)
    return [each for each in found if all(hosts.kernels[name].language == "triton" for name in each.kernels)]


def _same(one: Binding, other: Binding) -> bool:
    a, b = one.problem, other.problem
    return (a.candidate.call, a.candidate.entry, a.reference.call, a.inputs) == (
        b.candidate.call, b.candidate.entry, b.reference.call, b.inputs,
    )  # fmt: skip


def _bind_compare(file: _File, compare: Compare) -> Binding | None:
    scope = scope_of(compare.path, file.source.tree, file.hosts)
    if scope is None:
        return None
    flow = Flow(scope.statements, file.hosts, file.module_names)
    for got, want in ((compare.left, compare.right), (compare.right, compare.left)):
        split = flow.split(got, want)
        if isinstance(split, Split) and split.kernels:
            return _binding(file, compare, scope, flow, split)
    return None


def _binding(file: _File, compare: Compare, scope: Scope, flow: Flow, split: Split) -> Binding:
    wrapper = _wrapper(flow, split)
    statements = [flow.statements[index] for index in split.input_statements]
    call = _main_call(flow, split)
    hints = {**(wrapper_hints(call, file.hosts) if call else {}), **sweep_hints(file.sweeps)}
    sizes = name_sizes(statements, hints, file.module_names | _local_names(flow))
    literals = _literals(flow, split, sizes)
    reference, candidate = write(flow, split.reference, literals), write(flow, split.candidate, literals)
    used = candidate.used | reference.used
    names = [name for name, _version in split.inputs if name not in literals and name in used]
    settings = list(scope.sizes)
    for sweep in file.sweeps:
        if _mentions_reference(sweep, flow, split):
            settings += sweep_settings(sweep, sizes.dims, sizes.constants)
    cases = make_cases(sizes.constants, settings)
    evidence = f"{compare.form} in line {compare.line}"
    problem = Problem(
        id=f"{file.source.name}::{wrapper}",
        format=file.format,
        reference=make_program(file.source, flow, reference, names, literals, "odyssey_reference"),
        candidate=make_program(file.source, flow, candidate, names, literals, "odyssey_candidate"),
        inputs=Inputs(
            kind=InputsKind.STATEMENTS,
            statements=sizes.text,
            names=tuple(names),
            constants=tuple(sizes.constants.items()),
            batch_like=sizes.batch_like,
        ),
        cases=cases,
        tolerance=_tolerance(compare, cases),
        kernels=file.hosts.launched(split.kernels),
        project_root=file.root,
        backward=split.backward,
        reference_line=compare.line,
        notes=_notes(compare, cases, evidence),
    )
    return Binding(
        problem=problem,
        kernels=file.hosts.in_order(split.kernels),
        wrapper=wrapper,
        evidence=evidence,
        line=compare.line,
    )


def _local_names(flow: Flow) -> frozenset[str]:
    return frozenset().union(*(stores(each) for each in flow.statements), frozenset())


def _main_call(flow: Flow, split: Split) -> ast.expr | None:
    """The expression or statement value in which the candidate's first kernel work happens."""
    for index in split.candidate.statements:
        if flow.reach(index):
            return getattr(flow.statements[index], "value", None)
    return split.candidate.result


def _wrapper(flow: Flow, split: Split) -> str:
    """What is called, by name; the kernel's own name where the file launches it bare."""
    call = _main_call(flow, split)
    for each in ast.walk(call) if call is not None else ():
        if isinstance(each, ast.Call):
            func = each.func.value if isinstance(each.func, ast.Subscript) else each.func
            name = dotted(func)
            if name and flow.reaches(func):
                return name
    return sorted(split.kernels)[0]


def _literals(flow: Flow, split: Split, sizes: Sizes) -> dict[str, int]:
    """Whole-number inputs that no shape depends on (k of a top-k, a seed): written into the call instead."""
    found = {}
    for name, index in split.inputs:
        if flow.is_size(index) and name not in sizes.constants:
            _target, value = assigned(flow.statements[index])
            found[name] = flow.value(value)
    return found


def _mentions_reference(sweep: Sweep, flow: Flow, split: Split) -> bool:
    """Whether the benchmark also runs the reference: only then are its sizes fit for judging by it."""
    side = split.reference
    nodes = [side.result, *(flow.statements[index] for index in side.statements)]
    callees = {dotted(each.func) for node in nodes for each in ast.walk(node) if isinstance(each, ast.Call)} - {""}
    inside = {dotted(each.func) for each in ast.walk(sweep.function) if isinstance(each, ast.Call)}
    if sum(not flow.is_plain(index) for index in side.statements) > 3:
        return False
    if callees:
        return bool(callees & inside)
    shown = {unparse(node) for node in ast.walk(sweep.function) if isinstance(node, ast.BinOp)}
    return any(unparse(each) in shown for node in nodes for each in ast.walk(node) if isinstance(each, ast.BinOp))


def _tolerance(compare: Compare, cases: tuple) -> Tolerance | None:
    """The person's own numbers, where they are written and only their size is judged; else the judge derives one."""
    if (compare.atol is None and compare.rtol is None) or any(case.sizes for case in cases):
        return None
    return Tolerance(atol=compare.atol or 0.0, rtol=compare.rtol or 0.0, origin="person")


def _notes(compare: Compare, cases: tuple, evidence: str) -> tuple[str, ...]:
    notes = [f"bound by {evidence}"]
    if (compare.atol is not None or compare.rtol is not None) and any(case.sizes for case in cases):
        notes.append(f"the file's own tolerance (atol={compare.atol}, rtol={compare.rtol}) is for its own size only")
    return tuple(notes)


def _bind_sweep(file: _File, sweep: Sweep) -> Binding | None:
    """Two callables that one `perf_report` times: the one that reaches a kernel against the one that does not."""
    timed = list(_timed(sweep.function))
    got = next((pair for pair in timed if file.hosts.reach(pair[0])), None)
    want = next((pair for pair in timed if not file.hosts.reach(pair[0])), None)
    if got is None or want is None or not sweep.settings:
        return None
    compare = Compare(
        left=got[0], right=want[0], form="triton.testing.perf_report", line=sweep.function.lineno,
        atol=None, rtol=None, path=(sweep.function, got[1]),
    )  # fmt: skip
    return _bind_timed(file, compare, sweep)


def _timed(function: ast.FunctionDef) -> list[tuple[ast.expr, ast.stmt]]:
    """(body of the lambda, top statement of the function) for each `do_bench(lambda: ...)`."""
    return [
        (each.args[0].body, statement)
        for statement in function.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Call)
        and dotted(each.func).rsplit(".", 1)[-1].startswith("do_bench")
        and each.args
        and isinstance(each.args[0], ast.Lambda)
    ]


def _bind_timed(file: _File, compare: Compare, sweep: Sweep) -> Binding | None:
    setting = sweep.settings[-1]
    values = {name: ast.parse(repr(value), mode="eval").body for name, value in setting.items()}
    scope = scope_of(compare.path, file.source.tree, file.hosts, given=values)
    if scope is None:
        return None
    flow = Flow(scope.statements, file.hosts, file.module_names)
    split = flow.split(compare.left, compare.right)
    return _binding(file, compare, scope, flow, split) if isinstance(split, Split) and split.kernels else None
