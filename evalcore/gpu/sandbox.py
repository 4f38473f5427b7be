"""Owns what a child that runs somebody's code may still do, and says which layers really hold. Never fails for lack.

Order matters: all of it right after the fork and before a CUDA context opens (a user namespace needs one single thread,
and Landlock binds only the calling thread and what it starts). A layer that this machine refuses is left out and missing
from the list that `apply` returns; that list stands in every row.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import resource
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evalcore.gpu import landlock
from evalcore.gpu.landlock import Grant

LAYERS = ("rlimits", "no-new-privs", "namespaces", "landlock")
"""What may be asked for, in the order in which it is given up where a driver does not bear it: the last first."""

_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000
_MOST_PROCESSES = 4096
_MOST_FILE_BYTES = 8 << 30
_MOST_FILE_BYTES_CARD = 128 << 30
"""Where device memory cannot be shared, a tensor crosses in one memory file."""

_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store", "/gnu/store", "/run/opengl-driver", "/run/nvidia",
    "/opt/nvidia", "/opt/cuda", "/opt/rocm", "/opt/intel", "/sys", "/snap/core20", "/snap/core22", "/snap/core24",
)  # fmt: skip
_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "passwd", "group", "nsswitch.conf", "localtime",
    "timezone", "alternatives", "os-release", "hosts", "host.conf", "resolv.conf", "nvidia", "OpenCL", "ssl/certs",
    "gai.conf", "locale.alias", "python3", "python3.10", "python3.11", "python3.12", "python3.13", "magic", "mime.types",
)  # fmt: skip
_HIDDEN = frozenset(
    {".git", ".hg", ".svn", ".odyssey", ".ssh", ".aws", ".gnupg", ".netrc", ".config", ".kube", ".docker"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What one child is for."""

    scratch: str
    """The only folder it may write to; it exists, with its subfolders."""
    readable: tuple[str, ...] = ()
    """Project folders whose files it may read (secrets and version control in them excepted)."""
    cuda: bool = False
    """True where a CUDA context will be opened: then /dev/shm must be writable as well."""
    layers: tuple[str, ...] = LAYERS


def apply(policy: Policy) -> tuple[str, ...]:
    """Confine this process. Returns the layers that hold now, e.g. ('rlimits', 'no-new-privs', 'userns', 'landlock')."""
    held: list[str] = []
    if "namespaces" in policy.layers:
        held += _leave_namespaces()
    if "rlimits" in policy.layers:
        held += _limit(policy, in_user_namespace="userns" in held)
    if "no-new-privs" in policy.layers and _no_new_privileges():
        held.append("no-new-privs")
        if "landlock" in policy.layers:
            held += landlock.confine(grants(policy))
    return tuple(held)


def _no_new_privileges() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return hasattr(libc, "prctl") and libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0) == 0


def _leave_namespaces() -> Iterator[str]:
    """A user namespace of its own, with network and IPC namespaces inside it; whoever is root needs no user namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        return
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC) == 0:
        yield from ("userns", "netns", "ipcns")
        with contextlib.suppress(OSError):
            _write("/proc/self/setgroups", "deny")
        with contextlib.suppress(OSError):
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
    elif libc.unshare(_CLONE_NEWNET | _CLONE_NEWIPC) == 0:
        yield from ("netns", "ipcns")


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _limit(policy: Policy, *, in_user_namespace: bool) -> Iterator[str]:
    """No core files, no endless files. Processes are counted per user namespace, so only there they can be limited."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _MOST_FILE_BYTES_CARD if policy.cuda else _MOST_FILE_BYTES,
    }
    if in_user_namespace:
        wanted[resource.RLIMIT_NPROC] = _MOST_PROCESSES
    for what, most in wanted.items():
        _soft, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))
    yield "rlimits"


def grants(policy: Policy) -> Iterator[Grant]:
    """Everything that stays allowed: system and interpreter to read, the project to read, scratch to write."""
    for path in {*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *_interpreter(), *_toolkits()}:
        yield Grant(path=path, rights=landlock.READ)
    # threads, maps and limits of its own; other processes' secrets are behind the ptrace rule, which Landlock enforces
    yield Grant(path="/proc", rights=landlock.USE)
    yield Grant(path="/dev", rights=landlock.USE)
    if policy.cuda:
        yield Grant(path="/dev/shm", rights=landlock.ALL)
    for root in policy.readable:
        yield from project_grants(root)
    yield Grant(path=policy.scratch, rights=landlock.ALL)


def _interpreter() -> set[str]:
    """Where this interpreter and its packages live, also when that is inside a home; never a home itself."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(sys.executable)}
    found |= {os.path.dirname(os.path.realpath(sys.executable)), str(Path(__file__).resolve().parents[1])}
    found |= {each for each in sys.path if each and os.path.isabs(each)}
    return {path for path in found if path and not too_wide(path)}


def _toolkits() -> set[str]:
    """Folders of compilers and CUDA that the environment names."""
    found: set[str] = set()
    for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV"):
        found.add(os.environ.get(name, ""))
    for name in ("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "PATH"):
        found |= set(os.environ.get(name, "").split(os.pathsep))
    found |= {os.path.realpath(path) for path in found if os.path.isabs(path)} | _compilers()
    return {path for path in found if os.path.isabs(path) and not too_wide(path)}


def _compilers() -> set[str]:
    """Prefixes of the compilers that Triton and torch call: their own headers may lie beside them, outside /usr."""
    found = {os.path.realpath(path) for path in glob.glob("/usr/lib/gcc/*/*")}
    for name in (os.environ.get("CC", ""), os.environ.get("CXX", ""), "cc", "gcc", "g++", "c++", "clang", "nvcc"):
        place = shutil.which(name) if name else None
        for path in (place, os.path.realpath(place)) if place else ():
            prefix = os.path.dirname(os.path.dirname(path))
            if not prefix.startswith(os.path.expanduser("~")):  # a home's ~/.local holds more than a compiler
                found.add(prefix)
    return found


def too_wide(path: str) -> bool:
    """True for a home folder and for anything above one: granting it would grant keys and other projects."""
    place = os.path.realpath(path)
    homes = {os.path.realpath(os.path.expanduser(f"~{name}")) for name in ("", "root")} | {"/home", "/Users"}
    return any(home == place or home.startswith(place.rstrip("/") + "/") for home in homes) or place == "/"


def project_grants(root: str) -> Iterator[Grant]:
    """The project's files to read: each visible entry of the folder, so that `.git`, `.env*` and ledgers stay closed.

    For a folder that is a home (or above one) only the plain files that lie in it.
    """
    shallow = too_wide(root)
    if not shallow:
        yield Grant(path=root, rights=landlock.LIST)
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if not _is_hidden(entry.name) and (not shallow or entry.is_file(follow_symlinks=False)):
                yield Grant(path=entry.path, rights=landlock.READ)


def _is_hidden(name: str) -> bool:
    return name in _HIDDEN or name.startswith((".env", "id_rsa", "id_ed25519", ".npmrc", ".pypirc"))


def entries(roots: Iterable[str]) -> dict[str, int]:
    """Path -> inode of what `project_grants` opens. A rule holds for an inode: a file that is saved by renaming another
    over it, or that is new, cannot be read by a child that was confined before."""
    found: dict[str, int] = {}
    for root in roots:
        for grant in project_grants(root):
            with contextlib.suppress(OSError):
                found[grant.path] = os.stat(grant.path).st_ino
    return found


def unreadable_since(before: dict[str, int], roots: Iterable[str]) -> set[str]:
    """Paths that a child confined at the time of `before` cannot read now, though the project shows them."""
    return {path for path, inode in entries(roots).items() if before.get(path) != inode}
