"""Owns Landlock by raw system calls: which folders a process may still read or write. Never lifts a restriction.

The kernel's interface is three system calls with fixed numbers on every architecture. Rights that this kernel does not
know are left out, so a newer rule never makes an older kernel refuse the whole set.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FS_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NET_RIGHTS = 0b11
_SCOPES = 0b11

READ = _EXECUTE | _READ_FILE | _READ_DIR
LIST = _READ_DIR
USE = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
"""For /dev and /proc: open and write what is there, make and remove nothing."""
ALL = (1 << 16) - 1
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_fs", ctypes.c_uint64), ("handled_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What stays allowed below one path (or on one file)."""

    path: str
    rights: int


_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def version() -> int:
    """Landlock's interface version in this kernel; 0 where it is absent or turned off."""
    if os.uname().sysname != "Linux":
        return 0
    found = _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(found, 0)


def confine(grants: Iterable[Grant], *, network: bool = False) -> tuple[str, ...]:
    """Deny this thread, and all that it starts, every file access that no grant allows. Needs no-new-privileges.

    Returns the layers that hold now: 'landlock', and where the kernel has them 'landlock-net' (no TCP) and
    'landlock-scope' (no signals and no abstract sockets to the outside). () where nothing could be applied.
    """
    abi = version()
    if abi < 1:
        return ()
    handled = _FS_RIGHTS_BY_ABI[max(level for level in _FS_RIGHTS_BY_ABI if level <= abi)]
    attributes = _RulesetAttributes(handled, 0 if network or abi < 4 else _NET_RIGHTS, 0 if abi < 6 else _SCOPES)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return ()
    try:
        for grant in grants:
            _allow(ruleset, grant, handled)
        if _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) != 0:
            return ()
    finally:
        os.close(ruleset)
    layers = ["landlock"]
    if attributes.handled_net:
        layers.append("landlock-net")
    if attributes.scoped:
        layers.append("landlock-scope")
    return tuple(layers)


def _allow(ruleset: int, grant: Grant, handled: int) -> None:
    try:
        place = os.open(grant.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = grant.rights & handled
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FILE_RIGHTS
        rule = _PathBeneath(rights, place)
        _call(
            _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0)
        )
    finally:
        os.close(place)
