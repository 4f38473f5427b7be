"""Owns watching how long the server's event loop is held: starts the real server and times each callback it runs.

    python benchmarks/latency_watch.py OUT.json lsp --stdio

Written at the end, and whenever SIGUSR1 arrives: {"count", "p50_ms", "p99_ms", "max_ms", "over_5_ms", "longest": [...]}.
"""

from __future__ import annotations

import asyncio.events
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

HELD_MS = 5.0
LONGEST = 20


class Watch:
    """Durations of all callbacks since the last look."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.held: list[float] = []
        self.longest: list[tuple[float, str]] = []

    def install(self) -> None:
        """Time every callback of every event loop in this process."""
        plain = asyncio.events.Handle._run

        def timed(handle: Any) -> None:
            begin = time.perf_counter()
            plain(handle)
            took = (time.perf_counter() - begin) * 1e3
            self.held.append(took)
            if took > 1.0:
                self.longest.append((took, _name(handle)))
                if len(self.longest) > 20 * LONGEST:
                    self.longest = sorted(self.longest, reverse=True)[:LONGEST]

        asyncio.events.Handle._run = timed  # type: ignore[method-assign]

    def write(self, *_: Any) -> None:
        """What was seen, and begin anew."""
        held, self.held = sorted(self.held), []
        longest, self.longest = sorted(self.longest, reverse=True)[:LONGEST], []
        if not held:
            return
        facts = {
            "count": len(held),
            "p50_ms": round(held[len(held) // 2], 4),
            "p99_ms": round(held[min(len(held) * 99 // 100, len(held) - 1)], 3),
            "max_ms": round(held[-1], 2),
            f"over_{HELD_MS:.0f}_ms": sum(each > HELD_MS for each in held),
            "longest": [[round(took, 2), name] for took, name in longest],
        }
        self.out.write_text(json.dumps(facts), encoding="utf-8")


def _name(handle: Any) -> str:
    callback = handle._callback
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return str(owner.get_coro()).split(" at ")[0]
    return str(getattr(callback, "__qualname__", callback))[:120]


def main() -> int:
    """Install the watch, then be the server."""
    watch = Watch(Path(sys.argv[1]))
    watch.install()
    signal.signal(signal.SIGUSR1, watch.write)
    from server.cli import run

    try:
        return run(sys.argv[2:])
    finally:
        watch.write()


if __name__ == "__main__":
    sys.exit(main())
