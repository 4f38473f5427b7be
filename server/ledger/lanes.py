"""Owns where a node of the map stands: lane and row, as a git log draws them, oldest at row 0. Never moves a node.

Row is the order of arrival. A node continues its parent's lane where the parent is still that lane's tip, else it opens
the lowest lane whose branch has ended. Both depend on earlier nodes only, so a picture grows and never jumps.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lanes:
    """The layout so far. O(log lanes) for each node."""

    tips: dict[int, Hashable] = field(default_factory=dict)
    """lane -> the node at its end."""
    lane_of: dict[Hashable, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    """Lanes whose branch has ended, a heap."""
    rows: int = 0

    def place(self, node: Hashable, parents: Sequence[Hashable]) -> tuple[int, int]:
        """(lane, row) of a new node. Parents that were never placed are ignored."""
        lane = next((self.lane_of[p] for p in parents if p in self.lane_of and self._is_tip(p)), None)
        if lane is None:
            lane = heapq.heappop(self.free) if self.free else len(self.tips)
        self.tips[lane] = node
        self.lane_of[node] = lane
        row = self.rows
        self.rows += 1
        return lane, row

    def end(self, node: Hashable) -> None:
        """The branch at `node` is dead: its lane may be used again. Nothing happens where `node` is no tip."""
        if self._is_tip(node):
            lane = self.lane_of[node]
            self.tips[lane] = None
            heapq.heappush(self.free, lane)

    def _is_tip(self, node: Hashable) -> bool:
        lane = self.lane_of.get(node)
        return lane is not None and self.tips.get(lane) == node
