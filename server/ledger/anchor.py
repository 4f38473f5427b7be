"""Owns the memory of a ledger's head outside the workspace: how far this user's Odyssey has seen it.

It finds what no file inside a workspace can show: that ledger and exports were cut back together.
Never goes back to a smaller position.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

WIDTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A position of a chain and its hash there (hexadecimal)."""

    position: int
    hash: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """One small file in the state folder for one ledger at one place."""

    path: Path

    @classmethod
    def of(cls, state_dir: Path, workspace: str, ledger_id: str) -> Anchor:
        """The anchor of ledger `ledger_id` of the workspace named `workspace` (place.workspace_id)."""
        return cls(state_dir / "anchors" / f"{workspace}-{ledger_id[:12]}")

    def read(self) -> Head | None:
        """The head last seen, None where there is none (or it cannot be read)."""
        try:
            words = self.path.read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            return None
        if len(words) != 2 or not words[0].isdigit():
            return None
        return Head(position=int(words[0]), hash=words[1])

    def write(self, head: Head) -> bool:
        """Remember `head`, in one write in place; the caller holds the lock. False where it cannot be kept."""
        known = self.read()
        if known is not None and known.position >= head.position:
            return True
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError:
            return False
        try:
            os.pwrite(handle, f"{head.position:0{WIDTH}d} {head.hash}\n".encode("ascii"), 0)
        finally:
            os.close(handle)
        return True

    def predecessors(self) -> list[Path]:
        """Anchors of other ledgers that stood at the same place: deleted or replaced since."""
        workspace = self.path.name.rsplit("-", 1)[0]
        try:
            names = sorted(path.name for path in self.path.parent.iterdir())
        except OSError:
            return []
        others = [name for name in names if name != self.path.name and name.rsplit("-", 1)[0] == workspace]
        return [self.path.with_name(name) for name in others]
