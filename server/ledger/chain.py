"""Owns the hash chain: canonical bytes of stored values, the hash of an entry, its seal by a key. Never touches a file.

An entry's hash covers its position, its kind, its writer's key name, the row it speaks of, every stored value of that
row and the hash of the entry before. So a changed byte, a missing entry and a swapped pair all break it; the seal (an
HMAC over the hash) says whose key wrote it.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable
from dataclasses import dataclass

Value = None | int | float | str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link: which row of which table it speaks of, under which list of columns (form)."""

    position: int
    form: int
    kind: str
    """Table name: 'texts', 'rows', 'burials', ..."""
    ref: int
    """rowid in that table."""
    key_name: str | None
    """Whose seal stands beside the hash (see `key_name`); None for an unsealed entry."""


def canonical(values: Iterable[Value]) -> bytes:
    """Bytes that differ whenever type or value of any item differs; SQLite's five storage classes, length-prefixed."""
    parts: list[bytes] = []
    for value in values:
        if value is None:
            parts.append(b"n;")
        elif isinstance(value, str):
            encoded = value.encode("utf-8", "surrogateescape")  # verify reads damaged bytes so
            parts.append(b"s%d:" % len(encoded))
            parts.append(encoded)
        elif isinstance(value, float):
            parts.append(b"f" + struct.pack(">d", value))
        elif isinstance(value, int):
            parts.append(b"i%d;" % value)
        else:
            parts.append(b"b%d:" % len(value))
            parts.append(value)
    return b"".join(parts)


def genesis(meta: Iterable[tuple[str, str]]) -> bytes:
    """What stands for 'the hash before' at position 1: it ties the chain to its ledger's name and birth."""
    digest = hashlib.sha256(b"odyssey-ledger\n")
    for name, value in sorted(meta):
        digest.update(canonical((name, value)))
    return digest.digest()


def link(previous: bytes, entry: Entry, values: Iterable[Value]) -> bytes:
    """The hash of an entry, 32 bytes."""
    digest = hashlib.sha256(previous)
    digest.update(canonical((entry.position, entry.form, entry.kind, entry.ref, entry.key_name)))
    digest.update(canonical(values))
    return digest.digest()


def seal(key: bytes, hash_: bytes) -> bytes:
    """What only a holder of `key` can write beside `hash_`, 32 bytes."""
    return hmac.new(key, b"odyssey-ledger-entry\n" + hash_, hashlib.sha256).digest()


def sealed_by(key: bytes, hash_: bytes, given: bytes | None) -> bool:
    """True where `given` is this key's seal on `hash_`."""
    return given is not None and hmac.compare_digest(seal(key, hash_), given)


def key_name(key: bytes) -> str:
    """A public name of a key, 16 hexadecimal digits: tells one user's rows from another's and gives nothing away."""
    return hmac.new(key, b"odyssey-ledger-key-name", hashlib.sha256).hexdigest()[:16]
