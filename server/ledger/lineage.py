"""Owns the map: every judged text a node, with parents, maker, verdict and burial. Reads the ledger, never writes it.

A node is a text of one kernel of one file. Judged again, it keeps its place and shows its newest verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlite_utils import Database

from server.ledger.columns import fitting, parents_in
from server.ledger.lanes import Lanes

NodeKey = tuple[str, str, str]
"""(file, kernel, sha)."""

ROW_STEP = (
    "select (select position from chain where kind = 'rows' and ref = rows.seq), seq, at, file, kernel, kernel_sha,"
    " author, intent, parents, status, reason, speedup, runtime_us, card, uuid from rows where seq > ?"
)
"""A subquery and no join: a join makes SQLite walk the chain instead of the kernel's own rows."""
NAMES = ("seq", "at", "file", "kernel", "kernel_sha", "author", "intent", "parents", "status", "reason", "speedup",
         "runtime_us", "card", "uuid")  # fmt: skip
BURIAL_STEP = (
    "select (select position from chain where kind = 'burials' and ref = burials.id), id, sha, reason"
    " from burials where id > ? order by id"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One candidate."""

    sha: str
    seq: int
    """Newest row about it."""
    first_seq: int
    at: str
    file: str
    kernel: str
    lane: int
    row: int
    parents: tuple[str, ...]
    author: str
    """'person' | 'tuner' | 'model' | 'agent'."""
    intent: str
    status: str
    reason: str | None
    speedup: float | None
    runtime_us: float | None
    card: str | None
    uuid: str | None
    buried: str | None = None
    """The reason of its burial, None where the branch lives."""
    best: bool = False
    """The fastest right one on its card among those of the same kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """From a text to one made from it."""

    parent: str
    child: str
    file: str
    kernel: str
    kind: str
    """'edit' (a person), 'tune', 'rewrite' (a model), 'agent', 'merge' (one of several parents)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """The candidates of one kernel, or of the whole ledger, in order of arrival."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    lanes: int

    def node(self, sha: str) -> Node | None:
        """The node of a text, by its sha or the beginning of it."""
        return next((node for node in self.nodes if node.sha.startswith(sha)), None)


@dataclass(slots=True)
class _Sheet:
    """The map of one (file, kernel) filter as far as it was read."""

    file: str | None
    kernel: str | None
    seq: int = 0
    burial: int = 0
    lanes: Lanes = field(default_factory=Lanes)
    nodes: dict[NodeKey, dict[str, Any]] = field(default_factory=dict)
    by_sha: dict[str, list[NodeKey]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    width: int = 0
    drawn: Map | None = None
    """The map as of the last look, None where something came since."""

    def read(self, db: Database) -> None:
        """Take in what was appended since the last time, in the order of the chain."""
        tests = "".join(
            f" and {name} = ?" for name, value in (("file", self.file), ("kernel", self.kernel)) if value is not None
        )
        given = [value for value in (self.file, self.kernel) if value is not None]
        rows = db.execute(f"{ROW_STEP}{tests} order by seq", (self.seq, *given)).fetchall()
        burials = db.execute(BURIAL_STEP, (self.burial,)).fetchall()
        for _, is_row, values in sorted(
            [(row[0], True, row[1:]) for row in rows] + [(burial[0], False, burial[1:]) for burial in burials]
        ):
            self.drawn = None
            if is_row:
                self.seq = values[0]
                self._row(values)
            else:
                self.burial = values[0]
                self._burial(str(values[1]), str(values[2]))

    def _row(self, values: tuple[Any, ...]) -> None:
        fitted = [fitting(name, value) for name, value in zip(NAMES, values, strict=True)]
        seq, at, file, kernel, sha, author, intent, parents, status, reason, speedup, runtime_us, card, uuid = fitted
        key = (file, kernel, sha)
        newest = {"seq": seq, "status": status, "reason": reason, "speedup": speedup, "runtime_us": runtime_us,
                  "card": card, "uuid": uuid}  # fmt: skip
        node = self.nodes.get(key)
        if node is not None:
            node.update(newest)
            return
        above = [k for sha_above in parents_in(parents) for k in self._parent_keys(file, kernel, sha_above, key)]
        lane, row = self.lanes.place(key, above)
        self.width = max(self.width, lane + 1)
        self.nodes[key] = {
            **newest, "sha": sha, "first_seq": seq, "at": at, "file": file, "kernel": kernel, "lane": lane, "row": row,
            "parents": tuple(k[2] for k in above), "author": author, "intent": intent, "buried": None,
        }  # fmt: skip
        self.by_sha.setdefault(sha, []).append(key)
        kind = "merge" if len(above) > 1 else EDGE_KINDS.get(author, "agent")
        self.edges.extend(Edge(parent=k[2], child=sha, file=file, kernel=kernel, kind=kind) for k in above)
        if author != "person" and status != "correct":
            self.lanes.end(key)  # a machine's failed attempt is nearly never built upon

    def _parent_keys(self, file: str, kernel: str, sha: str, child: NodeKey) -> Iterator[NodeKey]:
        """The node that a parent's sha means: the one of the same kernel, else of the same file, else any."""
        keys = [key for key in self.by_sha.get(sha, ()) if key != child]
        keys.sort(key=lambda key: (key[1] != kernel, key[0] != file))
        yield from keys[:1]

    def _burial(self, sha: str, reason: str) -> None:
        for key in self.by_sha.get(sha, ()):
            self.nodes[key]["buried"] = reason
            self.lanes.end(key)

    def map(self) -> Map:
        """The map of all that was read."""
        if self.drawn is None:
            self.drawn = self._draw()
        return self.drawn

    def _draw(self) -> Map:
        best: dict[tuple[str, str, str | None], NodeKey] = {}
        for key, node in self.nodes.items():
            if node["status"] != "correct" or node["runtime_us"] is None:
                continue
            group = (key[0], key[1], node["uuid"])
            if group not in best or node["runtime_us"] < self.nodes[best[group]]["runtime_us"]:
                best[group] = key
        chosen = set(best.values())
        nodes = tuple(Node(**node, best=key in chosen) for key, node in self.nodes.items())
        return Map(nodes=nodes, edges=tuple(self.edges), lanes=self.width)


EDGE_KINDS = {"person": "edit", "tuner": "tune", "model": "rewrite"}


class MapMaker:
    """Maps by filter, each read on from where it stood."""

    MOST = 64
    """Maps kept; an editor shows a few kernels at a time."""

    def __init__(self) -> None:
        self._sheets: dict[tuple[str | None, str | None], _Sheet] = {}

    def make(self, db: Database, file: str | None, kernel: str | None) -> Map:
        """The map of what the filter lets through, up to the newest entry."""
        sheet = self._sheets.pop((file, kernel), None) or _Sheet(file, kernel)
        sheet.read(db)
        self._sheets[(file, kernel)] = sheet
        while len(self._sheets) > self.MOST:
            del self._sheets[next(iter(self._sheets))]
        return sheet.map()
