"""Owns where CUDA's own headers come from: those that NVRTC brings, kept in memory, else a wheel's or a toolkit's folder.

Small headers (fp16, mma, cooperative groups: 1 MB) are read once and handed to the compiler from memory, so that a
process in a sandbox needs no folder for them. The large ones (CCCL, 25 MB) are written out only where a text wants them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import importlib.util
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcore.gpu.nvrtc_library import Nvrtc

_LARGE = "cccl"
_FROM_LARGE = ("nv/target", "nv/detail/__target_macros", "nv/detail/__preprocessor")
"""Headers below CCCL's folder that the small ones include."""


def toolkits() -> list[str]:
    """CUDA toolkits of this machine, the one that CUDA_HOME names first."""
    named = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [home for home in [*named, "/usr/local/cuda"] if home and os.path.isdir(home)]


@functools.lru_cache(maxsize=1)
def bundled_headers(library: Nvrtc) -> dict[str, str]:
    """Name as included -> text of the small headers that the library brings; {} before NVRTC 13.

    A quarter of a second the first time, milliseconds once this machine keeps a copy.
    """
    kept = _cache_folders()[0] / f"nvrtc-{library.version[0]}.{library.version[1]}-small.json"
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, str] = json.loads(kept.read_text("utf-8"))
        return found
    found = _unpacked(library)
    if found:
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            fresh = kept.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(found), "utf-8")
            fresh.replace(kept)
    return found


def _unpacked(library: Nvrtc) -> dict[str, str]:
    """The small headers, by way of a folder in memory where there is one: the library can only write them out."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as folder:
        target = Path(folder) / "include"
        if not _install(library, target):
            return {}
        found = {
            path.relative_to(target).as_posix(): path.read_text("utf-8", errors="replace")
            for path in target.rglob("*")
            if path.is_file() and path.relative_to(target).parts[0] != _LARGE
        }
        for name in _FROM_LARGE:
            path = target / _LARGE / name
            if path.is_file():
                found[name] = path.read_text("utf-8", errors="replace")
        return found


def _install(library: Nvrtc, target: Path) -> bool:
    if not hasattr(library.lib, "nvrtcInstallBundledHeaders"):
        return False
    told = ctypes.c_char_p()
    status: int = library.lib.nvrtcInstallBundledHeaders(str(target).encode(), 0, ctypes.byref(told))
    return status == 0


def include_folders(library: Nvrtc) -> list[str]:
    """Folders with all of CUDA's headers. Writes the library's own out where it has them, 26 MB, once per machine."""
    own = _written(library)
    if own:
        return [folder for folder in (own, os.path.join(own, _LARGE)) if os.path.isdir(folder)]
    homes = [os.path.join(home, "include") for home in toolkits()]
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        homes += sorted(glob.glob(os.path.join(folder, "*", "include")))
    found = [home for home in homes if os.path.isfile(os.path.join(home, "cuda_fp16.h"))]
    return [path for home in found[:1] for path in (home, os.path.join(home, _LARGE)) if os.path.isdir(path)]


def _written(library: Nvrtc) -> str | None:
    name = f"nvrtc-{library.version[0]}.{library.version[1]}-include"
    for base in _cache_folders():
        folder = base / name
        if (folder / "cuda_fp16.h").is_file():
            return str(folder)
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if _install(library, folder):
            return str(folder)
    return None


def _cache_folders() -> list[Path]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [Path(home) / "odyssey", Path(tempfile.gettempdir()) / f"odyssey-{os.getuid()}"]
