"""Owns races between the programs of one launch: who wrote and read which address, compared once at the end.

Exempt: programs that store the same value, stores that change nothing, and launches that use atomics, which order
programs in ways that addresses alone do not show.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Access:
    """One load, store or atomic of one program: lanes as arrays of one shape."""

    kind: str
    addresses: Any
    mask: Any
    value: Any
    size: int
    line: int
    before: Any = None
    """For a store: what lay there, where that was worth reading."""


@dataclass(slots=True)
class _Lanes:
    """Columns that grow by one array per access."""

    addresses: list[Any] = field(default_factory=list)
    programs: list[Any] = field(default_factory=list)
    bits: list[Any] = field(default_factory=list)
    changed: list[Any] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)


class RaceLog:
    """The accesses of one launch."""

    def __init__(self, *, limit: int) -> None:
        self.left = limit
        self.open = True
        self.stores = _Lanes()
        self.loads = _Lanes()
        self.names: dict[int, str] = {}
        self.grid = (1, 1)

    def add(self, access: Access, name: str, program: int, grid: tuple[int, int]) -> None:
        """Records an access of linear `program`; `grid` is (x, y), to name programs later."""
        if not self.open:
            return
        if access.kind == "atomic":
            self.close()
            return
        lanes = access.addresses[access.mask].reshape(-1).astype(np.uint64)
        self.left -= lanes.size
        if self.left < 0:
            self.close()
            return
        self.grid = grid
        self.names[access.line] = name
        table = self.stores if access.kind == "store" else self.loads
        table.addresses.append(lanes)
        table.programs.append(np.full(lanes.size, program, dtype=np.int64))
        table.lines.append(np.full(lanes.size, access.line, dtype=np.int32))
        if access.kind == "store":
            bits = _bits(access.value, access)
            table.bits.append(bits)
            same = access.before is not None and bits == _bits(access.before, access)
            table.changed.append(~same if access.before is not None else np.ones(lanes.size, dtype=bool))

    def close(self) -> None:
        """Stops the check for this launch and frees what it holds."""
        self.open = False
        self.stores, self.loads = _Lanes(), _Lanes()

    def race(self) -> str | None:
        """The first race in words, or None."""
        if not self.open or not self.stores.addresses:
            return None
        addresses, programs, bits, lines, changed = _joined(
            self.stores.addresses, self.stores.programs, self.stores.bits, self.stores.lines, self.stores.changed
        )
        order = np.argsort(addresses, kind="stable")
        addresses, programs, bits, lines = addresses[order], programs[order], bits[order], lines[order]
        clash = (addresses[1:] == addresses[:-1]) & (programs[1:] != programs[:-1]) & (bits[1:] != bits[:-1])
        if clash.any():
            at = int(np.argmax(clash))
            return self._write_write(int(programs[at]), int(programs[at + 1]), int(lines[at + 1]), int(clash.sum()))
        matters = changed[order]
        return self._read_write(addresses[matters], programs[matters], lines[matters])

    def _read_write(self, addresses: Any, programs: Any, lines: Any) -> str | None:
        if not self.loads.addresses or not addresses.size:
            return None
        starts = np.concatenate([[0], np.nonzero(addresses[1:] != addresses[:-1])[0] + 1])
        first, last = np.minimum.reduceat(programs, starts), np.maximum.reduceat(programs, starts)
        wrote, line = addresses[starts], lines[starts]
        read, reader, read_line = _joined(self.loads.addresses, self.loads.programs, self.loads.lines)
        place = np.minimum(np.searchsorted(wrote, read), wrote.size - 1)
        clash = (wrote[place] == read) & ((first[place] != reader) | (last[place] != reader))
        if not clash.any():
            return None
        at = int(np.argmax(clash))
        writer = int(first[place[at]]) if first[place[at]] != reader[at] else int(last[place[at]])
        name = self.names.get(int(read_line[at]), "")
        return (
            f"race: program {self._program(int(reader[at]))} reads on line {int(read_line[at])} what program "
            f"{self._program(writer)} writes on line {int(line[place[at]])}{_of(name)}; on a GPU their order is open"
        )

    def _write_write(self, one: int, other: int, line: int, count: int) -> str:
        name = self.names.get(line, "")
        return (
            f"race: programs {self._program(one)} and {self._program(other)} store different values to the same "
            f"place{_of(name)} on line {line} ({count} places in all); on a GPU their order is open"
        )

    def _program(self, linear: int) -> tuple[int, int, int]:
        wide, high = self.grid
        return linear % wide, linear // wide % high, linear // (wide * high)


def _of(name: str) -> str:
    return f" of `{name}`" if name else ""


def _joined(*columns: list[Any]) -> list[Any]:
    return [np.concatenate(column) for column in columns]


def _bits(values: Any, access: Access) -> Any:
    """The values of the lanes that take part, as integers: equal bits are the same value."""
    value = np.asarray(values)
    value = np.broadcast_to(value, access.addresses.shape) if value.shape != access.addresses.shape else value
    taken = np.ascontiguousarray(value[access.mask].reshape(-1))
    if taken.dtype == np.bool_:
        return taken.astype(np.uint64)
    return taken.view(f"u{taken.dtype.itemsize}").astype(np.uint64)
