"""Owns having launch stubs made for the kernels that were just judged, so that the next save compiles none. Never trusts
a compiled file: only signatures come from a case, and a process of ours compiles them again."""

from __future__ import annotations

import os

from evalcore.gpu import scratch
from evalcore.worker.children import ChildEnded
from evalcore.worker.mains import stubs_main
from evalcore.worker.station import Station

_BUILD_S = 60.0
_MOST = 200


class Stubs:
    """Signatures whose stubs lie in the station's folder."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._known: set[tuple[str, ...]] = set()

    def new(self, signatures: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
        """Those that have no stub yet."""
        return [each for each in signatures if each not in self._known] if len(self._known) < _MOST else []

    async def build(self, signatures: list[tuple[str, ...]]) -> None:
        """Compile stubs in a throw-away child and keep them. Each signature is tried once."""
        self._known.update(signatures)
        station = self._station
        folder = station.child_folder("stubs")
        settling = station.settling(folder, "cpu", ())
        child = station.family.fork("stubs", lambda post: stubs_main(post, settling, signatures=signatures))
        try:
            await child.ask({"ask": "stubs"}, timeout_s=_BUILD_S)
            scratch.seed(os.path.join(folder, "triton"), station.stubs)
        except ChildEnded:
            station.say("warning", "compiling launch stubs failed; each save compiles its own")
        finally:
            station.bury(child, folder)
