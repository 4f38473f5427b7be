"""Owns the opt-in trace file of what the server does, for reports. Never holds a text of the person's."""

from __future__ import annotations

import contextlib
import logging
from logging.handlers import RotatingFileHandler

from server.host import Host

FILE = "trace.log"
MOST_BYTES = 4 << 20

_ROOT = logging.getLogger("odyssey")


def set_tracing(host: Host, *, on: bool) -> None:
    """Begin or end to write `trace.log` in the state folder: messages by name, jobs, workers, with their times."""
    standing = [each for each in _ROOT.handlers if isinstance(each, RotatingFileHandler)]
    if on == bool(standing):
        return
    for handler in standing:
        _ROOT.removeHandler(handler)
        handler.close()
    _ROOT.setLevel(logging.NOTSET)
    if on:
        with contextlib.suppress(OSError):
            handler = RotatingFileHandler(host.state_dir() / FILE, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8")
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            _ROOT.addHandler(handler)
            _ROOT.setLevel(logging.DEBUG)
