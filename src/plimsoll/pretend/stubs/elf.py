"""Reads the parts of an ELF file that the stub generator uses: its name, needed libraries, defined and undefined symbols.

Only 64-bit little-endian files (x86-64, aarch64), as in torch's CUDA builds. It needs only the standard library, because any
interpreter may run the generator, and reads only the tables of a 470 MB library (DESIGN.md, section 11).
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

_SHT_PROGBITS, _SHT_SYMTAB, _SHT_DYNAMIC, _SHT_DYNSYM = 1, 2, 6, 11
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECUTABLE = 1, 2, 4
_SHT_VERDEF, _SHT_VERNEED, _SHT_VERSYM = 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 14, 15, 29
_SHN_UNDEF = 0
_BINDINGS = {0: "local", 1: "global", 2: "weak", 10: "global"}
_STV_DEFAULT, _STV_PROTECTED = 0, 3

# The symbol types in use; all others are "other".
_TYPES = {0: "none", 1: "data", 2: "function", 6: "data", 10: "function"}


class ElfError(Exception):
    """The file is not a supported ELF file."""


class Symbol(NamedTuple):
    name: str
    type: str  # "function", "data", "none" (no type in the file), "other"
    weak: bool
    version: str | None  # the version node's name
    file: str | None  # the SONAME of an undefined symbol's library, if the symbol has a version


class _Section(NamedTuple):
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


class Elf:
    """The tables of one file.

    `defined` has the symbols to which other files can link: the dynamic symbols of a shared library, or the visible
    global symbols of an object file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.soname: str | None = None
        self.needed: list[str] = []
        self.search_path: list[str] = []
        self.defined: dict[str, Symbol] = {}
        self.undefined: dict[str, Symbol] = {}
        self._constants: list[_Section] = []
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < 64:
                raise ElfError(f"{path}: too short for an ELF file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                self._read(data)

    def texts(self, pattern: str) -> set[str]:
        """The constant strings of the file that match the regular expression completely."""
        whole = re.compile(rb"(?<=\0)(?:" + pattern.encode() + rb")(?=\0)")
        found: set[str] = set()
        with open(self.path, "rb") as file:
            for section in self._constants:
                file.seek(section.offset)
                found.update(text.decode() for text in whole.findall(b"\0" + file.read(section.size)))
        return found

    def _read(self, data: mmap.mmap) -> None:
        if data[:4] != b"\x7fELF" or data[4] != 2 or data[5] != 1:
            raise ElfError(f"{self.path}: not a 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", data, 0x28)
        entry_bytes, count = struct.unpack_from("<HH", data, 0x3A)
        if table == 0 or count == 0:
            raise ElfError(f"{self.path}: has no section table (a stripped file cannot be read here)")
        sections = []
        for index in range(count):
            _, kind, flags, _, offset, size, link, info, _, _ = _SECTION.unpack_from(data, table + index * entry_bytes)
            sections.append(_Section(kind, flags, offset, size, link, info))
        kinds = _SHF_WRITE | _SHF_ALLOC | _SHF_EXECUTABLE
        self._constants = [s for s in sections if s.type == _SHT_PROGBITS and s.flags & kinds == _SHF_ALLOC]

        by_type = {section.type: section for section in sections}
        if _SHT_DYNAMIC in by_type:
            self._read_dynamic(data, sections, by_type[_SHT_DYNAMIC])
        symbols = by_type.get(_SHT_DYNSYM) or by_type.get(_SHT_SYMTAB)
        if symbols is None:
            return
        versions = {
            **self._version_needs(data, sections, by_type),
            **self._version_definitions(data, sections, by_type),
        }
        self._read_symbols(data, sections, symbols, by_type.get(_SHT_VERSYM), versions)

    def _read_dynamic(self, data: mmap.mmap, sections: list[_Section], dynamic: _Section) -> None:
        strings = sections[dynamic.link].offset
        for offset in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
            tag, value = struct.unpack_from("<QQ", data, offset)
            if tag == _DT_NEEDED:
                self.needed.append(_text(data, strings + value))
            elif tag == _DT_SONAME:
                self.soname = _text(data, strings + value)
            elif tag in (_DT_RPATH, _DT_RUNPATH):
                origin = os.path.dirname(os.path.abspath(self.path))
                folders = _text(data, strings + value).replace("${ORIGIN}", "$ORIGIN").split(":")
                self.search_path += [
                    os.path.normpath(folder.replace("$ORIGIN", origin)) for folder in folders if folder
                ]

    def _version_needs(
        self, data: mmap.mmap, sections: list[_Section], by_type: dict[int, _Section]
    ) -> dict[int, tuple[str, str | None]]:
        found: dict[int, tuple[str, str | None]] = {}
        if _SHT_VERNEED not in by_type:
            return found
        section = by_type[_SHT_VERNEED]
        strings = sections[section.link].offset
        for entry, (_, auxiliaries, file, first, _) in _chain(data, section, "<HHIII"):
            offset = entry + first
            for _ in range(auxiliaries):
                _, _, index, name, following = struct.unpack_from("<IHHII", data, offset)
                found[index & 0x7FFF] = (_text(data, strings + name), _text(data, strings + file))
                offset += following
        return found

    def _version_definitions(
        self, data: mmap.mmap, sections: list[_Section], by_type: dict[int, _Section]
    ) -> dict[int, tuple[str, str | None]]:
        found: dict[int, tuple[str, str | None]] = {}
        if _SHT_VERDEF not in by_type:
            return found
        section = by_type[_SHT_VERDEF]
        strings = sections[section.link].offset
        for entry, (_, flags, index, _, _, first, _) in _chain(data, section, "<HHHHIII"):
            (name,) = struct.unpack_from("<I", data, entry + first)
            if not flags & 1:  # The base definition names the file, not a version.
                found[index & 0x7FFF] = (_text(data, strings + name), None)
        return found

    def _read_symbols(
        self,
        data: mmap.mmap,
        sections: list[_Section],
        table: _Section,
        versym: _Section | None,
        versions: dict[int, tuple[str, str | None]],
    ) -> None:
        strings = sections[table.link].offset
        indices: tuple[int, ...] = ()
        if versym is not None:
            indices = struct.unpack_from(f"<{versym.size // 2}H", data, versym.offset)
        rows = _SYMBOL.iter_unpack(data[table.offset : table.offset + table.size])
        for row, (name_offset, info, other, section, _, _) in enumerate(rows):
            binding = _BINDINGS.get(info >> 4, "local")
            if name_offset == 0 or binding == "local" or (other & 3) not in (_STV_DEFAULT, _STV_PROTECTED):
                continue
            name = _text(data, strings + name_offset)
            version, file = versions.get(indices[row] & 0x7FFF, (None, None)) if indices else (None, None)
            symbol = Symbol(name, _TYPES.get(info & 15, "other"), binding == "weak", version, file)
            (self.undefined if section == _SHN_UNDEF else self.defined)[name] = symbol


def _text(data: mmap.mmap, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode()


def _chain(data: mmap.mmap, section: _Section, layout: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The offsets and fields of a version section's entries. The last field is the distance to the next entry."""
    offset = section.offset
    for _ in range(section.info):
        fields = struct.unpack_from(layout, data, offset)
        yield offset, fields
        offset += fields[-1]
