"""Owns a reader child's life: frames in, analysis or bindings out. Never imports a person's code, never runs a kernel.

Parsing holds Python's lock (200 ms were seen for one large file), so it happens here and not in the server's process.

server -> child:  analyse {path, language, generation, text | null, edits}, close {path},
                  bind {request, path, text, root, overlays}, starter {request, text, kernel},
                  lean {request, path, kernels}, sha {request, packed, texts}
child -> server:  analysed {path, generation, sites, findings, parses}, resend {path, generation},
                  bound {request, bounds, texts}, started {request, text | null},
                  leaned {request, text | null}, hashed {request, sha}, failed {of}
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any, BinaryIO

from evalcore.fingerprint import problem_sha
from server.compact import pack_findings, pack_sites
from server.reading import Reader
from server.sites import pack_bounds, unpacked

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Serve until stdin closes. Descriptor 1 is kept for the channel alone: a print anywhere lands on stderr."""
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    _die_with_parent()
    reader = Reader()
    for line in sys.stdin.buffer:
        frame = json.loads(line)
        try:
            answer = _answer(reader, frame)
        except Exception:  # noqa: BLE001 - the child's fence: one bad text must not end the analysis of all others
            traceback.print_exc()
            answer = {"frame": "failed", "of": frame.get("frame"), **_identity(frame)}
        if answer is not None:
            _send(channel, answer)
    return 0


def _answer(reader: Reader, frame: dict[str, Any]) -> dict[str, Any] | None:
    name = frame["frame"]
    if name == "analyse":
        return _analyse(reader, frame)
    if name == "bind":
        bounds = reader.bind(frame["path"], frame["text"], root=frame["root"], overlays=dict(frame["overlays"]))
        return {"frame": "bound", **pack_bounds(bounds, frame["text"]), **_identity(frame)}
    if name == "sha":
        return {"frame": "hashed", "sha": problem_sha(unpacked(frame["packed"], frame["texts"])), **_identity(frame)}
    if name == "lean":
        return {"frame": "leaned", "text": reader.lean(frame["path"], frame["kernels"]), **_identity(frame)}
    if name == "starter":
        return {"frame": "started", "text": reader.starter(frame["text"], frame["kernel"]), **_identity(frame)}
    if name == "close":
        reader.close(frame["path"])
    return None


def _analyse(reader: Reader, frame: dict[str, Any]) -> dict[str, Any]:
    path = frame["path"]
    if frame["text"] is not None:
        reader.open(path, frame["language"], frame["text"])
    elif not reader.knows(path):
        return {"frame": "resend", **_identity(frame)}
    else:
        reader.edit(path, [(start, end, text) for start, end, text in frame["edits"]])
    found = reader.analyse(path)
    return {
        "frame": "analysed",
        "sites": pack_sites(found.sites),
        "findings": pack_findings(found.findings),
        "parses": found.parses,
        **_identity(frame),
    }


def _identity(frame: dict[str, Any]) -> dict[str, Any]:
    return {key: frame[key] for key in ("path", "generation", "request") if key in frame}


def _send(channel: BinaryIO, answer: dict[str, Any]) -> None:
    line = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
    view = memoryview(line)
    while view:
        view = view[channel.write(view) or 0 :]


def _die_with_parent() -> None:
    """Ask Linux for SIGKILL when the server dies, and check that it has not died already."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return  # not Linux: the closed stdin ends us
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
