"""No attack is ever plainly correct, no honest candidate is accused, and the worker outlives them all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evalcore.jobs import Measurement
from tests.hostile.corpus import ATTACKS, HONEST, TEXTS, Attack, Honest
from tests.hostile.judging import Worker, problem_of

SECRET = "hush-hush-4711"


def judged(worker: Worker, each: Attack | Honest, *, folder: Path | None = None) -> Measurement:
    """The worker's measurement of one text of the corpus."""
    home = folder or TEXTS
    changes = {"constants": each.constants, "shapes": each.shapes} if isinstance(each, Attack) else {}
    reference = home / f"reference_{each.reference}.py"
    return worker.judge(problem_of(home / each.path.name, reference, format=each.format, **changes), run_s=each.run_s)


def check_attack(found: Measurement, attack: Attack) -> None:
    """What must be said of an attack."""
    codes = {flag.code for flag in found.flags}
    told = f"{found.result} {found.reason} {codes}"
    if found.result.correct:
        assert codes & set(attack.flags), told
        assert found.result.speedup is None or attack.gpu, told
    else:
        assert found.result.status.value in attack.statuses, told
        assert attack.reason is None or (found.reason is not None and found.reason.value == attack.reason), told
    assert SECRET not in repr(found)


def check_honest(found: Measurement, honest: Honest) -> None:
    """What must be said of an honest twin, and what must not."""
    codes = {flag.code for flag in found.flags}
    assert found.result.correct, f"{found.result.error} {codes}"
    assert not [code for code in codes if code.startswith("screen-")], codes
    assert set(honest.flags) <= codes, codes


@pytest.mark.parametrize("attack", [each for each in ATTACKS if not each.gpu], ids=lambda each: each.name)
def test_attack(attack: Attack, interpreting: Worker) -> None:
    check_attack(judged(interpreting, attack), attack)


@pytest.mark.parametrize("honest", [each for each in HONEST if not each.gpu and not each.slow], ids=lambda e: e.name)
def test_honest(honest: Honest, interpreting: Worker) -> None:
    check_honest(judged(interpreting, honest), honest)


@pytest.mark.slow
@pytest.mark.parametrize("honest", [each for each in HONEST if not each.gpu and each.slow], ids=lambda e: e.name)
def test_honest_slow(honest: Honest, interpreting: Worker) -> None:
    check_honest(judged(interpreting, honest), honest)


def test_files_of_the_person_survive(interpreting: Worker, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    attack = next(each for each in ATTACKS if each.name == "deletes_files")
    for name in (attack.path.name, f"reference_{attack.reference}.py"):
        shutil.copy(TEXTS / name, project / name)
    victims = [project / "victim.txt", Path.home() / "odyssey-victim.txt"]
    for victim in victims:
        victim.write_text("precious")
    try:
        judged(interpreting, attack, folder=project)
        if any(layer.startswith("landlock") for layer in interpreting.hello["isolation"]):
            assert [victim.exists() for victim in victims] == [True, True]
    finally:
        for victim in victims:
            victim.unlink(missing_ok=True)


def test_children_of_a_hanging_candidate_are_gone(interpreting: Worker) -> None:
    attack = next(each for each in ATTACKS if each.name == "hangs_children")
    judged(interpreting, attack)
    honest = next(each for each in HONEST if each.name == "honest_softmax")
    check_honest(judged(interpreting, honest), honest)
    sleepers = [pid for pid in os.listdir("/proc") if pid.isdigit() and _belongs(pid, interpreting.process.pid)]
    assert len(sleepers) < 12, "children of the candidate are still there"


def _belongs(pid: str, ancestor: int) -> bool:
    try:
        while pid not in ("0", "1"):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            pid = fields[1]
            if int(pid) == ancestor:
                return True
    except (OSError, IndexError):
        return False
    return False


def test_a_model_is_held_to_the_gates(interpreting: Worker) -> None:
    attack = next(each for each in ATTACKS if each.name == "memo_attribute")
    counter = next(each for each in ATTACKS if each.name == "counts_five")
    found = interpreting.judge(problem_of(counter.path, TEXTS / "reference_affine.py"), trusted=False)
    assert found.reason is not None and found.reason.value == "cheating"
    found = interpreting.judge(problem_of(attack.path, TEXTS / "reference_affine.py"), trusted=False)
    assert not found.result.correct
    honest = next(each for each in HONEST if each.name == "honest_workspace")
    assert interpreting.judge(problem_of(honest.path, TEXTS / "reference_affine.py"), trusted=False).result.correct


@pytest.mark.gpu
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.name)
def test_attack_on_a_card(attack: Attack, on_card: Worker) -> None:
    check_attack(judged(on_card, attack), attack)


@pytest.mark.gpu
@pytest.mark.parametrize("honest", HONEST, ids=lambda each: each.name)
def test_honest_on_a_card(honest: Honest, on_card: Worker) -> None:
    check_honest(judged(on_card, honest), honest)
