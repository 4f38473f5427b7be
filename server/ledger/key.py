"""Owns the user's ledger key: 32 random bytes in the state folder, outside of any workspace. Never shows it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

KEY_BYTES = 32
FILE_NAME = "ledger.key"


def user_key(state_dir: Path) -> bytes | None:
    """The key in `state_dir`, made on first use (mode 0600). None where the folder cannot be used: no seals then.

    Two processes that start at once agree: the file is linked into place whole, and the loser reads the winner's.
    """
    path = state_dir / FILE_NAME
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = _read(path)
        if found is not None:
            return found
        draft = state_dir / f"{FILE_NAME}.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, secrets.token_bytes(KEY_BYTES))
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)
        return _read(path)
    except OSError:
        return None


def _read(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    try:
        key = os.read(handle, KEY_BYTES + 1)
    finally:
        os.close(handle)
    return key if len(key) == KEY_BYTES else None
