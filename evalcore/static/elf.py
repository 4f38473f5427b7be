"""Owns reading registers, stack and shared memory per kernel out of a cubin. Standard library; no driver, no tool."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_SYMTAB = 2
_REGISTER_COUNT = 0x2F
_FRAME_SIZE = 0x11
_WITH_SIZE = 0x04
"""An attribute whose value is a length followed by bytes; the other formats are four bytes in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What one kernel of a cubin needs."""

    name: str
    registers: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int = 0
    """Static shared memory; Triton's is dynamic and stands in its metadata."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


def kernel_resources(cubin: bytes) -> list[KernelResources]:
    """Resources of every kernel in a cubin. Raises ValueError where the bytes are no 64-bit little-endian ELF."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF")
    sections = _sections(cubin)
    names = _symbols(cubin, sections)
    registers: dict[str, int] = {}
    stacks: dict[str, int] = {}
    for section in sections:
        if section.name != ".nv.info":
            continue
        for attribute, value in _attributes(cubin[section.offset : section.offset + section.size]):
            if attribute in {_REGISTER_COUNT, _FRAME_SIZE} and len(value) >= 8:
                symbol, number = struct.unpack_from("<II", value)
                table = registers if attribute == _REGISTER_COUNT else stacks
                table[names.get(symbol, str(symbol))] = number
    # from sm_90 on a kernel's section also holds the kilobyte that the system reserves
    reserved = 1024 if any(one.name.startswith(".nv.shared.reserved") for one in sections) else 0
    shared = {
        one.name[len(".nv.shared.") :]: max(one.size - reserved, 0)
        for one in sections
        if one.name.startswith(".nv.shared.")
    }
    kernels = [one.name[len(".text.") :] for one in sections if one.name.startswith(".text.")]
    return [
        KernelResources(
            name=name, registers=registers.get(name), stack_bytes=stacks.get(name), shared_bytes=shared.get(name, 0)
        )
        for name in kernels
    ]


def _sections(data: bytes) -> list[_Section]:
    start = struct.unpack_from("<Q", data, 0x28)[0]
    size, count, strings = struct.unpack_from("<HHH", data, 0x3A)
    raw = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    table = raw[strings]
    names = data[table[4] : table[4] + table[5]]
    return [_Section(_text(names, one[0]), one[1], one[4], one[5], one[6]) for one in raw]


def _symbols(data: bytes, sections: list[_Section]) -> dict[int, str]:
    found: dict[int, str] = {}
    for section in sections:
        if section.kind != _SHT_SYMTAB:
            continue
        strings = sections[section.link]
        names = data[strings.offset : strings.offset + strings.size]
        for index in range(section.size // _SYMBOL.size):
            name = _SYMBOL.unpack_from(data, section.offset + index * _SYMBOL.size)[0]
            found[index] = _text(names, name)
    return found


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    index = 0
    while index + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, index)
        index += 4
        if form == _WITH_SIZE:
            yield attribute, data[index : index + size]
            index += size


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode(errors="replace")
