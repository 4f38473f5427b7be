"""Owns telling the look of a problem's inputs, case by case, without a card: shapes, dtypes and strides as JSON lines.

Runs the reference's slice only, on the CPU, in a process of its own. Never sees a candidate and never runs a kernel.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Sequence

from evalcore.wire import decode, encode

MOST_CASES = 256


def run(arguments: Sequence[str]) -> int:
    """Reads {"problem", "cases"} from stdin; writes one line {"case", "specs"} or {"case", "error"} for each case."""
    from evalcore.gpu.faults import CandidateFault
    from evalcore.gpu.inputs import UnsupportedInput, to_specs
    from evalcore.gpu.loading import load, make_inputs
    from evalcore.problem import Case, InputsKind, Problem, ProgramKind

    request = json.load(sys.stdin)
    problem = decode(Problem, request["problem"])
    cases = [decode(Case, each) for each in request["cases"][:MOST_CASES]]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the person's code prints is not our answer
    program = problem.reference
    if problem.inputs.kind is InputsKind.GET_INPUTS:
        program = dataclasses.replace(program, kind=ProgramKind.FUNCTION, entry=problem.inputs.function)
    with tempfile.TemporaryDirectory(prefix="odyssey-specs-") as scratch:
        for case in cases:
            sizes = dict(case.sizes)
            try:
                loaded = load(problem, program, sizes=sizes, device="cpu", seed=0, init_inputs=None, scratch=scratch)
                values = make_inputs(loaded, problem, sizes=sizes, seed=0)
                answer = {"case": case.name, "specs": encode(to_specs(values, problem.inputs.names))}
            except CandidateFault as fault:
                answer = {"case": case.name, "error": fault.crash.message}
            except UnsupportedInput as problem_words:
                answer = {"case": case.name, "error": str(problem_words)}
            out.write(json.dumps(answer) + "\n")
            out.flush()
    return 0
