"""Machine code of two candidates: the way there on a machine without a card, and what is said about listings."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from evalcore.jobs import Refusal
from server.dispatch.assembly import Code, code_of, opcodes, side_by_side
from server.evaluators.running import Confinement
from server.host import Host
from tests.unit.server_ledger.test_dispatch import PROBLEM, TRIAL, text_of

LISTING = """
        Function:softmax_kernel
--:-:-:-:1\tMOV R1, c[0x0][0x28];
--:-:0:-:1\t@P0 LDG.E.128 R4, [R2.64];
01:-:-:Y:4\t@!P1 FADD R8, R4, R5;
--:-:-:-:5\tHGMMA.64x64x16.F32 R24, gdesc[UR4], R24;
        /*0040*/                   EXIT ;                  /* 0x000000000000794d */
"""


def test_instructions_are_counted() -> None:
    assert opcodes(LISTING) == {"MOV": 1, "LDG": 1, "FADD": 1, "HGMMA": 1, "EXIT": 1}


def test_two_listings_side_by_side() -> None:
    a = (Code(name="k", launches=1, sass=LISTING),)
    b = (Code(name="k", launches=1, sass=LISTING + "--:-:-:-:1\tLDG.E R9, [R2.64];\n"),)
    made = side_by_side(a, b)
    assert made["instructions"] == [5, 6] and made["changed"] == [{"opcode": "LDG", "a": 1, "b": 2}]
    assert "+--:-:-:-:1\tLDG.E R9, [R2.64];" in made["diff"]
    assert side_by_side(a, a)["changed"] == [] and side_by_side(a, a)["diff"] == ""
    long = (Code(name="k", launches=1, sass="NOP;\n" * 7000),)
    assert side_by_side(a, long)["diff"] is None


async def test_without_a_card_the_candidate_runs_and_has_no_machine_code(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(text_of("a"))
    problem = replace(PROBLEM, candidate=replace(TRIAL, path=str(path), text=text_of("a")),
                      reference=replace(PROBLEM.reference, path=str(path)))  # fmt: skip
    where = Confinement(host=Host(), python=sys.executable, cuda=False)
    assert await code_of(problem, problem.cases[0], where) == ()
    broken = replace(problem, candidate=replace(problem.candidate, text="def act(x, scale): raise ValueError('no luck')\n"))
    refused = await code_of(broken, problem.cases[0], where)
    assert isinstance(refused, Refusal) and "no luck" in refused.message
