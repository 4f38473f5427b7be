"""Owns when an old verdict still holds: same text, problem, evaluator, card, environment and loaded modules, own seal.

A row of somebody else's, an imported row, a row whose values do not match its seal, and a verdict of status error are
never reused: the first three prove nothing, the last may have been the machine's fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlite_utils import Database

from evalcore.jobs import Mode
from server.ledger.chain import Entry, link, sealed_by
from server.ledger.columns import FORMS

LOOK_BACK = 50
"""Rows of one text and problem that are looked at, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseKey:
    """What must be the same for a verdict to hold."""

    kernel: str
    kernel_sha: str
    problem_sha: str
    evaluator_sha: str
    uuid: str | None
    """The card's UUID; None for an interpreted verdict."""
    driver: str | None
    torch: str | None
    triton: str | None
    interpreted: bool
    mode: Mode
    """A thorough row also serves a fast request, never the other way."""
    sha_of: Callable[[str], str | None]
    """Present sha of a project module by its path (an unsaved buffer wins over the disk); None where it is gone."""
    case: str | None = None
    """The case that stands on the line, None for the problem's first."""
    python: str | None = None
    """The interpreter's version; None does not compare it."""


def find_reusable(db: Database, key: ReuseKey, user_key: bytes | None, first: bytes) -> int | None:
    """The seq of a row that holds for `key`, or None. `first` is the chain's genesis."""
    if user_key is None:
        return None
    modes = ("thorough",) if key.mode is Mode.THOROUGH else ("fast", "thorough")
    found = db.execute(
        "select seq, body from rows where kernel_sha = ? and kernel = ? and problem_sha = ? and evaluator_sha = ?"
        " and uuid is ? and driver is ? and torch is ? and triton is ? and interpreted = ? and status <> 'error'"
        f" and mode in ({','.join('?' * len(modes))}) and (? is null or python = ?) order by seq desc limit ?",
        (key.kernel_sha, key.kernel, key.problem_sha, key.evaluator_sha, key.uuid, key.driver, key.torch, key.triton,
         int(key.interpreted), *modes, key.python, key.python, LOOK_BACK),
    ).fetchall()  # fmt: skip
    for seq, body in found:
        if _still_holds(json.loads(body), key) and _is_ours(db, int(seq), user_key, first):
            return int(seq)
    return None


def _still_holds(body: dict[str, Any], key: ReuseKey) -> bool:
    timed_case = (body.get("timing") or {}).get("case")
    if key.case is not None and timed_case is not None and timed_case != key.case:
        return False
    return all(key.sha_of(str(path)) == sha for path, sha in body.get("dependencies", ()))


def _is_ours(db: Database, seq: int, user_key: bytes, first: bytes) -> bool:
    """True where the stored values give the stored hash and our key sealed it."""
    found = db.execute(
        "select position, form, hash, seal, key_name from chain where kind = 'rows' and ref = ?", (seq,)
    ).fetchone()
    if found is None or found[1] not in FORMS:
        return False
    position, form, hash_, given, name = found
    before = db.execute("select hash from chain where position = ?", (position - 1,)).fetchone()
    previous = bytes(before[0]) if before else first
    values = db.execute(f"select {', '.join(FORMS[form]['rows'])} from rows where seq = ?", (seq,)).fetchone()
    right = link(previous, Entry(position=position, form=form, kind="rows", ref=seq, key_name=name), values)
    return right == hash_ and sealed_by(user_key, right, given)
