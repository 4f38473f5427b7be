"""Owns the map as text, DOT, SVG and plain values. Pure: never lays out (server.ledger.lanes does), never reads.

Newest on top, as in a git log; a lane is a branch.
"""

from __future__ import annotations

from html import escape
from typing import Any

from server.ledger.lineage import Edge, Map, Node
from server.words import duration, ratio

MARKS = {"correct": "*", "incorrect": "x", "compile_error": "c", "error": "!"}
WORDS = {"correct": "right", "incorrect": "wrong", "compile_error": "does not compile", "error": "error"}
COLOURS = {"correct": "#2e7d32", "incorrect": "#c62828", "compile_error": "#ad6800", "error": "#6a1b9a"}
STEP_X, STEP_Y, RADIUS = 22, 26, 6
MOST_TEXT = 90


def label(node: Node, *, elsewhere: bool = False) -> str:
    """One line about a node: verdict, figures, who, why. A figure of another card stands in ~tildes~."""
    figures = [words for words in (
        duration(node.runtime_us) if node.runtime_us else "", ratio(node.speedup) if node.speedup else ""
    ) if words]  # fmt: skip
    shown = " ".join(figures)
    if shown and elsewhere:
        shown = f"~{shown}~ on {node.card}"
    parts = [
        f"#{node.seq}",
        node.sha[:10],
        WORDS.get(node.status, node.status),
        shown,
        "best" if node.best else "",
        node.author,
    ]
    text = " ".join(part for part in parts if part)
    if node.intent:
        text += f": {' '.join(node.intent.split())[:MOST_TEXT]}"
    if node.buried is not None:
        text += f" [buried: {' '.join(node.buried.split())[:MOST_TEXT]}]"
    return text


def as_text(drawn: Map, cards: frozenset[str] | None = None) -> str:
    """A graph for a terminal. `cards`: UUIDs of the cards at hand; figures of others are struck out (None: of none)."""
    by_row = {node.row: node for node in drawn.nodes}
    at = {(node.file, node.kernel, node.sha): node for node in drawn.nodes}
    into = _parents_of(drawn, at)
    lines: list[str] = []
    living: set[int] = set()
    """Lanes with a line between the row just drawn and the one below."""
    wait: dict[int, int] = {}
    """lane -> row at which its line ends (the parent's row)."""
    for row in range(len(drawn.nodes) - 1, -1, -1):
        node = by_row[row]
        living = {lane for lane, end in wait.items() if end < row}
        cells = ["|" if lane in living else " " for lane in range(drawn.lanes)]
        cells[node.lane] = MARKS.get(node.status, "?")
        far = [parent for parent in into[row] if parent.lane != node.lane]
        note = "".join(f" <- {parent.sha[:10]}" for parent in far)
        lines.append(f"{' '.join(cells).rstrip():<{2 * drawn.lanes}} {label(node, elsewhere=_far(node, cards))}{note}")
        for parent in into[row]:
            wait[parent.lane] = min(wait.get(parent.lane, row), parent.row) if parent.lane in living else parent.row
        living = {lane for lane, end in wait.items() if end < row}
        for parent in far:
            lines.append(_bend(node.lane, parent.lane, living, drawn.lanes))
    return "\n".join(lines) + "\n" if lines else "the map is empty: no kernel was judged here yet\n"


def _parents_of(drawn: Map, at: dict[tuple[str, str, str], Node]) -> dict[int, list[Node]]:
    """row -> the parent nodes drawn for it."""
    found: dict[int, list[Node]] = {node.row: [] for node in drawn.nodes}
    for edge in drawn.edges:
        child, parent = at.get((edge.file, edge.kernel, edge.child)), _parent(drawn, edge, at)
        if child is not None and parent is not None:
            found[child.row].append(parent)
    return found


def _parent(drawn: Map, edge: Edge, at: dict[tuple[str, str, str], Node]) -> Node | None:
    own = at.get((edge.file, edge.kernel, edge.parent))
    return own if own is not None else next((node for node in drawn.nodes if node.sha == edge.parent), None)


def _bend(child: int, parent: int, living: set[int], lanes: int) -> str:
    """The line between a child's row and the next, from its lane to its parent's."""
    cells = [" "] * (2 * lanes)
    for lane in living:
        cells[2 * lane] = "|"
    low, high = sorted((child, parent))
    for place in range(2 * low + 1, 2 * high):
        if cells[place] == " ":
            cells[place] = "_"
    if parent < child:
        cells[2 * child - 1] = "/"
    else:
        cells[2 * parent] = " "
        cells[2 * parent - 1] = "\\"
    return "".join(cells).rstrip()


def _far(node: Node, cards: frozenset[str] | None) -> bool:
    return cards is not None and node.uuid is not None and node.uuid not in cards


def as_dot(drawn: Map) -> str:
    """Graphviz."""
    lines = ["digraph odyssey {", "  rankdir=BT; node [shape=box, style=rounded, fontname=monospace];"]
    for node in drawn.nodes:
        style = "dashed" if node.buried is not None else "bold" if node.best else "rounded"
        text = label(node).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(
            f'  "{_id(node)}" [label="{text}", color="{COLOURS.get(node.status, "#555555")}", style="{style}"];'
        )
    at = {(node.file, node.kernel, node.sha): node for node in drawn.nodes}
    for row, parents in _parents_of(drawn, at).items():
        child = drawn.nodes[row]
        lines += [f'  "{_id(child)}" -> "{_id(parent)}";' for parent in parents]
    return "\n".join([*lines, "}"]) + "\n"


def _id(node: Node) -> str:
    return f"{node.first_seq}"


def as_svg(drawn: Map, cards: frozenset[str] | None = None) -> str:
    """A picture that any browser opens; no script, no font of its own."""
    height = max(len(drawn.nodes), 1) * STEP_Y + 20
    text_x = drawn.lanes * STEP_X + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{text_x + 900}" height="{height}" '
        f'font-family="monospace" font-size="13">'
    ]
    at = {(node.file, node.kernel, node.sha): node for node in drawn.nodes}
    last = len(drawn.nodes) - 1
    for row, parents in _parents_of(drawn, at).items():
        parts += [_line(drawn.nodes[row], parent, last) for parent in parents]
    for node in drawn.nodes:
        x, y = _point(node, last)
        fill = "#ffffff" if node.buried is not None else COLOURS.get(node.status, "#555555")
        ring = ' stroke-width="4"' if node.best else ' stroke-width="2"'
        far = ' text-decoration="line-through"' if _far(node, cards) else ""
        parts.append(_mark(node, (x, y), text_x, (fill, ring, far)))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _mark(node: Node, point: tuple[int, int], text_x: int, look: tuple[str, str, str]) -> str:
    (x, y), (fill, ring, far) = point, look
    faint = ' opacity=".55"' if node.buried is not None else ""
    circle = (
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="{COLOURS.get(node.status, "#555555")}"{ring}/>'
    )
    return f'{circle}<text x="{text_x}" y="{y + 4}"{far}{faint}>{escape(label(node))}</text>'


def _point(node: Node, last: int) -> tuple[int, int]:
    return 14 + node.lane * STEP_X, 18 + (last - node.row) * STEP_Y


def _line(child: Node, parent: Node, last: int) -> str:
    (x1, y1), (x2, y2) = _point(child, last), _point(parent, last)
    bend = f"M{x1} {y1} C{x1} {y1 + STEP_Y}, {x2} {y1}, {x2} {min(y1 + STEP_Y, y2)} L{x2} {y2}"
    return f'<path d="{bend}" fill="none" stroke="#888888"/>'


def as_plain(drawn: Map) -> dict[str, Any]:
    """JSON values."""
    nodes = [
        {"sha": node.sha, "seq": node.seq, "first_seq": node.first_seq, "at": node.at, "file": node.file,
         "kernel": node.kernel, "lane": node.lane, "row": node.row, "parents": list(node.parents),
         "author": node.author, "intent": node.intent, "status": node.status, "reason": node.reason,
         "speedup": node.speedup, "runtime_us": node.runtime_us, "card": node.card, "uuid": node.uuid,
         "buried": node.buried, "best": node.best}
        for node in drawn.nodes
    ]  # fmt: skip
    edges = [{"from": edge.parent, "to": edge.child, "file": edge.file, "kernel": edge.kernel, "kind": edge.kind}
             for edge in drawn.edges]  # fmt: skip
    return {"schema": 1, "lanes": drawn.lanes, "nodes": nodes, "edges": edges}
