"""Owns the first look around and the hello frame: devices, versions, what is missing and how to get it. Never a card."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from typing import Any

from evalcore import wire
from evalcore.facts import Ceilings
from evalcore.worker.children import ChildEnded
from evalcore.worker.mains import devices_main, layers_main
from evalcore.worker.station import Station

_LOOK_S = 60.0


async def look_around(station: Station) -> None:
    """Ask throw-away children for devices and for the layers of the sandbox that hold here."""
    on_card = station.flavour == "compile" and station.stack.torch is not None
    await asyncio.gather(_try_layers(station), *([_look_for_cards(station)] if on_card else []))


async def _try_layers(station: Station) -> None:
    folder = station.child_folder("layers")
    settling = station.settling(folder, "cpu", ())
    child = station.family.fork("layers", lambda post: layers_main(post, settling))
    try:
        letter = await child.ask({"ask": "layers"}, timeout_s=_LOOK_S)
        station.isolation = tuple(letter.body["layers"])
    except ChildEnded:
        station.isolation = ()
    finally:
        station.bury(child, folder)


async def _look_for_cards(station: Station) -> None:
    folder = station.child_folder("cards")
    child = station.family.fork("cards", lambda post: devices_main(post, ceilings_folder=station.cache))
    try:
        letter = await child.ask({"ask": "cards"}, timeout_s=_LOOK_S)
    except ChildEnded:
        last = child.tail.decode(errors="replace").strip().splitlines()[-1:]
        station.why_no_device = last[0] if last else "looking for devices failed"
    else:
        station.devices = letter.body["devices"]
        station.why_no_device = letter.body.get("why", "")
        for device, known in letter.body.get("ceilings", {}).items():
            station.ceilings[device] = wire.decode(Ceilings, known)
    finally:
        station.bury(child, folder)


def hello(station: Station) -> dict[str, Any]:
    """The fields of the hello frame."""
    return {
        "protocol": wire.PROTOCOL,
        "flavour": station.flavour,
        "evaluator_sha": station.evaluator[0],
        "evaluator_md5": station.evaluator[1],
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": station.stack.torch,
        "triton": station.stack.triton,
        "devices": station.devices,
        "scratch": station.folder,
        "isolation": list(station.isolation),
        "fork": hasattr(os, "fork"),
        "missing": missing(station),
    }


def missing(station: Station) -> list[dict[str, str]]:
    """What this interpreter lacks, each with what to do about it."""
    found: list[dict[str, str]] = []
    faults = dict(station.stack.faults)
    for what, remedy in (
        ("torch", "install torch in this Python, or choose another (setting odyssey.python)"),
        ("triton", "install triton beside torch (Linux only); CUDA kernels work without it"),
    ):
        if what in faults:
            found.append({"what": what, "message": f"{sys.executable} has no {what}: {faults[what]}", "remedy": remedy})
    if station.flavour == "compile" and station.stack.torch is not None and not station.devices:
        words = station.why_no_device or "no CUDA device is visible"
        remedy = "kernels are judged by Triton's interpreter on the CPU, without figures"
        found.append({"what": "gpu", "message": f"no CUDA device in {sys.executable}: {words}", "remedy": remedy})
    wanted = {"landlock": "a kernel with Landlock (Linux 5.13 or newer)", "netns": "user namespaces allowed"}
    for layer, remedy in wanted.items():
        if station.options.sandbox and layer not in station.isolation:
            words = f"the sandbox lacks '{layer}' here: a kernel under judgement is less confined"
            found.append({"what": f"sandbox-{layer}", "message": words, "remedy": remedy})
    return found
