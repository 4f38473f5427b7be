"""Owns which cards this machine has, as nvidia-smi says. Never opens a CUDA context and never guesses."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from server.host import Host

TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHere:
    """One card at hand."""

    name: str
    uuid: str
    driver: str


def cards_here(host: Host) -> tuple[CardHere, ...]:
    """The cards, () where there is none or the driver does not answer."""
    command = host.which("nvidia-smi")
    if command is None:
        return ()
    argv = [command, "--query-gpu=name,uuid,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=host.environ)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = [[part.strip() for part in line.split(",")] for line in done.stdout.splitlines()]
    return tuple(CardHere(name=p[0], uuid=p[1], driver=p[2]) for p in lines if len(p) == 3 and p[1].startswith("GPU-"))


def uuids_here(host: Host) -> frozenset[str]:
    """The UUIDs of the cards at hand."""
    return frozenset(card.uuid for card in cards_here(host))
