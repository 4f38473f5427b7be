"""Owns asking a throw-away child for the card's roofs. Never measures itself."""

from __future__ import annotations

from evalcore.facts import Ceilings
from evalcore.wire import decode
from evalcore.worker.children import ChildEnded
from evalcore.worker.mains import ceilings_main
from evalcore.worker.stages import Stages
from evalcore.worker.station import Station

_MEASURE_S = 120.0


async def measure_roofs(station: Station, device: str) -> tuple[Ceilings | None, str | None]:
    """(roofs, why there are none). Remembered for this loop, and by the child for the next."""
    if device in station.ceilings:
        return station.ceilings[device], None
    if station.card(device) is None:
        return None, station.why_no_device or f"no device {device} here"
    folder = station.child_folder("roofs")
    async with station.alone(device, Stages(station.loop)):
        child = station.family.fork("roofs", lambda post: ceilings_main(post, device, station.cache))
        try:
            letter = await child.ask({"ask": "ceilings"}, timeout_s=_MEASURE_S)
        except ChildEnded:
            ending = await child.ended()
            return None, f"measuring failed: {ending.message or ending}"
        finally:
            station.bury(child, folder)
    found = letter.body.get("ceilings")
    if found is None:
        return None, str(letter.body.get("reason"))
    station.ceilings[device] = decode(Ceilings, found)
    return station.ceilings[device], None
