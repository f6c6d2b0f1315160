#!/usr/bin/env python3
"""Fits the pretend libraries to the installed torch, in three steps of the build.

  plan    reads the undefined symbols of torch's libraries, and the names that libc10_cuda.so looks up in the driver and
          NVML at run time. Assigns each to a vendor library, and writes SONAMEs and symbol versions for CMake and the
          linker. A symbol of an unknown library stops the build with the symbol's name.
  stubs   writes stubs for one library: for every symbol that torch needs and the library's own objects do not define.
          For the runtime and the driver also for every other function in CUDA's headers, because extensions may need
          any of them in order to load.
  verify  checks the finished libraries: every vendor symbol of torch must be in the right library with the right
          version. Then loads torch's libraries with them, which must work and print nothing.

Without torch (no --torch-lib) the plan has the default SONAMEs and no symbols.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import subprocess
import sys
from collections import Counter

from elf import Elf, ElfError
from faces import FACES, Face, face_of_soname, face_of_symbol, stub, without_version

SUPPORTED_CUDA = (12, 13)


class GenerateError(Exception):
    """An error with a message for the user of the build."""


# --- plan ------------------------------------------------------------------------------------------------------------


class Needs:
    """The vendor libraries and symbols that torch's libraries need: SONAMEs by face, and symbols with versions by face."""

    def __init__(self, torch_lib: str) -> None:
        paths = sorted(glob.glob(os.path.join(torch_lib, "*.so*")))
        if not paths:
            raise GenerateError(f"no shared library in {torch_lib}: is this the lib folder of an installed torch?")
        # A vendor library inside the wheel is replaced too.
        self.libraries = [Elf(path) for path in paths if face_of_soname(os.path.basename(path)) is None]
        self.sonames: dict[str, str] = {}
        self.symbols: dict[str, dict[str, str | None]] = {name: {} for name in FACES}
        # For each name that is looked up at run time: its possible symbols, of which one must exist.
        self.by_name: dict[str, dict[str, list[str]]] = {name: {} for name in FACES}
        self._find_sonames()
        self._find_symbols()
        self._find_names()

    def _find_sonames(self) -> None:
        for library in self.libraries:
            for soname in library.needed:
                face = face_of_soname(soname)
                if face is None:
                    continue
                if self.sonames.setdefault(face.name, soname) != soname:
                    raise GenerateError(
                        f"torch needs {face.library} as both {self.sonames[face.name]} and {soname}: "
                        "one number is expected"
                    )

    def _find_symbols(self) -> None:
        own_files = {os.path.basename(library.path) for library in self.libraries}
        own_files |= {library.soname for library in self.libraries if library.soname}
        elsewhere = self._defined_elsewhere(own_files)
        unknown: list[str] = []
        for library in self.libraries:
            for symbol in library.undefined.values():
                if symbol.file is not None and face_of_soname(symbol.file) is None:
                    continue  # A symbol of glibc, libstdc++ and so on.
                if symbol.file is None and (symbol.name in elsewhere or _is_python(symbol.name)):
                    continue
                face = face_of_soname(symbol.file) if symbol.file else face_of_symbol(symbol.name)
                if face is None:
                    if not symbol.weak:
                        unknown.append(f"{symbol.name} (needed by {os.path.basename(library.path)})")
                    continue
                if symbol.type == "data":
                    raise GenerateError(
                        f"torch needs {symbol.name} of {face.soname(13)} as data, not as a function: "
                        f"a stub cannot replace it, plimsoll/pretend/{face.name} must define it"
                    )
                if symbol.version is not None or symbol.name not in self.symbols[face.name]:
                    self.symbols[face.name][symbol.name] = symbol.version
        if unknown:
            raise GenerateError(
                "these symbols of torch belong to no library in plimsoll/pretend/stubs/faces.py:\n  "
                + "\n  ".join(sorted(set(unknown)))
            )

    def _find_names(self) -> None:
        for library in self.libraries:
            if os.path.basename(library.path) != "libc10_cuda.so":
                continue
            # torch 2.5 to 2.7 look up the exact name (dlsym); in later versions the runtime finds the function's version.
            runtime_finds_it = any(name.startswith("cudaGetDriverEntryPoint") for name in library.undefined)
            endings = ("_v3", "_v2", "") if runtime_finds_it else ("",)
            for name in library.texts("cu[A-Z][A-Za-z]+[0-9]*(?:_v[0-9])?"):
                self.by_name["driver"][name] = [name + ending for ending in endings]
            for name in library.texts("nvml[A-Z][A-Za-z]+(?:_v[0-9])?"):
                self.by_name["nvml"][name] = [name]

    def _defined_elsewhere(self, own_files: set[str]) -> set[str]:
        """The symbols that torch's own libraries and the other libraries of the machine define."""
        names: set[str] = set()
        for library in self.libraries:
            names.update(library.defined)
        seen = set(own_files)
        for library in self.libraries:
            for soname in library.needed:
                if soname in seen or face_of_soname(soname) is not None:
                    continue
                seen.add(soname)
                path = _find_library(soname, library.search_path)
                if path is not None:
                    names.update(Elf(path).defined)
        return names

    def cuda_major(self) -> int | None:
        """None if this is not a CUDA build."""
        soname = self.sonames.get("runtime")
        if soname is None:
            return None
        major = int(soname.rsplit(".", 1)[1])
        if major not in SUPPORTED_CUDA:
            raise GenerateError(f"torch needs {soname}; CUDA {' and '.join(map(str, SUPPORTED_CUDA))} are supported")
        return major


def _is_python(name: str) -> bool:
    return name.startswith(("Py", "_Py"))


def _find_library(soname: str, search_path: list[str]) -> str | None:
    folders = search_path + ["/lib64", "/usr/lib64", "/lib", "/usr/lib"] + glob.glob("/usr/lib/*-linux-gnu")
    return next((p for p in (os.path.join(folder, soname) for folder in folders) if os.path.exists(p)), None)


def _node(face: Face, soname: str, symbols: dict[str, str | None]) -> str | None:
    """The most frequent version node of the face's symbols in torch."""
    versions = Counter(version for version in symbols.values() if version is not None)
    if versions:
        return versions.most_common(1)[0][0]
    return face.default_node(soname) if not symbols else None


def _version_script(face: Face, node: str | None, symbols: dict[str, str | None]) -> str:
    patterns = " ".join(f"{pattern};" for pattern in face.exports)
    lines = [f"{node + ' ' if node else ''}{{ global: {patterns} local: *; }};"]
    for other in sorted({version for version in symbols.values() if version and version != node}):
        names = " ".join(f"{name};" for name in sorted(symbols) if symbols[name] == other)
        lines.append(f"{other} {{ global: {names} }};")
    return "\n".join(lines) + "\n"


def _cuda_version(torch_lib: str) -> str:
    """CUDA's version number: 12040 for 12.4. Empty if torch does not report it."""
    try:
        with open(os.path.join(torch_lib, os.pardir, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^cuda\b[^=\n]*=\s*'(\d+)\.(\d+)", file.read(), re.MULTILINE)
    except OSError:
        return ""
    return str(int(found[1]) * 1000 + int(found[2]) * 10) if found else ""


def plan(arguments: argparse.Namespace) -> None:
    major = arguments.cuda_major
    needs: Needs | None = None
    if arguments.torch_lib:
        needs = Needs(arguments.torch_lib)
        found = needs.cuda_major()
        if found is None:
            needs = None
            print(f"{arguments.torch_lib} is not a CUDA build of torch: planning without it", file=sys.stderr)
        elif major and major != found:
            raise GenerateError(f"torch in {arguments.torch_lib} is for CUDA {found}, not CUDA {major}")
        else:
            major = found
    major = major or SUPPORTED_CUDA[-1]

    entries = {}
    cmake = [f"set(plimsoll_cuda_major {major})", f"set(plimsoll_faces {' '.join(FACES)})"]
    cmake.append(f"set(plimsoll_has_torch {'ON' if needs else 'OFF'})")
    cmake.append(f"set(plimsoll_cuda_version {_cuda_version(arguments.torch_lib) if needs else ''})")
    for face in FACES.values():
        soname = (needs.sonames.get(face.name) if needs else None) or face.soname(major)
        symbols = needs.symbols[face.name] if needs else {}
        node = _node(face, soname, symbols)
        by_name = needs.by_name[face.name] if needs else {}
        entries[face.name] = {"soname": soname, "node": node, "symbols": symbols, "by_name": by_name}
        _write(os.path.join(arguments.out, f"{face.name}.map"), _version_script(face, node, symbols))
        cmake.append(f"set(plimsoll_{face.name}_soname {soname})")
        cmake.append(f"set(plimsoll_{face.name}_header {face.header or ''})")
    torch_lib = os.path.abspath(arguments.torch_lib) if needs else None
    document = {"torch_lib": torch_lib, "cuda_major": major, "faces": entries}
    _write(os.path.join(arguments.out, "plan.json"), json.dumps(document, indent=1, sort_keys=True) + "\n")
    _write(os.path.join(arguments.out, "libraries.cmake"), "\n".join(cmake) + "\n")
    count = sum(len(entry["symbols"]) for entry in entries.values())
    print(f"CUDA {major}: {count} vendor symbols" if needs else f"CUDA {major}: no torch, no generated stubs")


# --- stubs -----------------------------------------------------------------------------------------------------------


def stubs(arguments: argparse.Namespace) -> None:
    face = FACES[arguments.face]
    entry = _load(arguments.plan)["faces"][face.name]
    by_hand: set[str] = set()
    for path in arguments.objects:
        by_hand.update(Elf(path).defined)
    missing = set(entry["symbols"]) - by_hand
    missing |= {name for name, answers in entry["by_name"].items() if by_hand.isdisjoint(answers)}
    lines = [
        f"/* Generated: the functions of {face.library} that torch needs and plimsoll/pretend/{face.name} does not define. */",
        "int plimsoll_fail_by_name(const char* function, int status);",
        *(stub(name, face) for name in sorted(missing)),
    ]
    if arguments.header:
        with open(arguments.header, encoding="utf-8", errors="replace") as file:
            declared = face.declared(file.read())
        # A lookup in the driver finds the newest form of a function: not a stub if an older form is implemented.
        known = {without_version(name) for name in by_hand | missing}
        others = {name for name in declared if without_version(name) not in known}
        lines += [
            f"/* The other functions of {os.path.basename(arguments.header)}. */",
            *(stub(name, face) for name in sorted(others)),
        ]
    _write(arguments.out, "\n".join(lines) + "\n")


# --- verify ----------------------------------------------------------------------------------------------------------


def verify(arguments: argparse.Namespace) -> None:
    document = _load(arguments.plan)
    defects: list[str] = []
    paths = []
    by_hand = generated = others = 0
    for name, entry in document["faces"].items():
        path = os.path.join(arguments.libraries, entry["soname"])
        library = Elf(path)
        paths.append(path)
        if library.soname != entry["soname"]:
            defects.append(f"{path} has the SONAME {library.soname}, not {entry['soname']}")
        for symbol, version in entry["symbols"].items():
            found = library.defined.get(symbol)
            if found is None:
                defects.append(f"{entry['soname']} lacks {symbol}")
            elif version is not None and found.version != version:  # Without a version, any matches.
                defects.append(f"{entry['soname']} has {symbol} as {found.version or 'unversioned'}, not as {version}")
        for name_needed, answers in entry["by_name"].items():
            if not any(answer in library.defined for answer in answers):
                defects.append(f"{entry['soname']} lacks {name_needed}, which torch looks up by name")
        stub_names = _stub_names(os.path.join(arguments.stubs, f"stubs_{name}.c")) if arguments.stubs else set()
        needed = set(entry["symbols"]) | set(entry["by_name"])
        generated += len(needed & stub_names)
        others += len(stub_names - needed)
        by_hand += len(needed - stub_names)
    if defects:
        raise GenerateError("the pretend libraries do not fit torch:\n  " + "\n  ".join(sorted(defects)))
    if document["torch_lib"]:
        _load_torch(document["torch_lib"], paths)
    rest = f"; {others} that torch does not need fail by name" if others else ""
    print(f"{by_hand} vendor symbols implemented, {generated} fail by name, none missing{rest}")
    if arguments.stamp:
        with open(arguments.stamp, "w", encoding="utf-8") as file:
            file.write("fits\n")


def _stub_names(path: str) -> set[str]:
    with open(path, encoding="utf-8") as file:
        functions = [line.split("(void)")[0] for line in file if "(void)" in line]
    return {function.split()[-1] for function in functions}


def _load_torch(torch_lib: str, pretend: list[str]) -> None:
    """Loads torch's CUDA libraries with all symbols bound at once, in a process that has ours preloaded."""
    order = ("libc10_cuda.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so")
    torch = [path for path in (os.path.join(torch_lib, name) for name in order) if os.path.exists(path)]
    program = (
        "import ctypes, os, sys\nfor p in sys.argv[1:]: ctypes.CDLL(p, mode=os.RTLD_NOW | os.RTLD_GLOBAL)\nos._exit(0)"
    )
    environment = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_DEBUG")}
    environment.update(LD_PRELOAD=":".join(pretend), LD_BIND_NOW="1")
    done = subprocess.run(
        [sys.executable, "-c", program, *torch],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0 or done.stdout:
        raise GenerateError(
            f"loading torch onto the pretend libraries (exit code {done.returncode}) printed:\n{done.stdout}"
        )


# --- the command -----------------------------------------------------------------------------------------------------


def _load(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _write(path: str, text: str) -> None:
    """Does not touch an unchanged file, so that nothing is rebuilt for it."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    planning = commands.add_parser("plan")
    planning.add_argument("--torch-lib", default="", help="the lib folder of an installed torch")
    planning.add_argument("--cuda-major", type=int, choices=SUPPORTED_CUDA, help="without torch; default: the newest")
    planning.add_argument("--out", required=True, help="folder for plan.json, libraries.cmake and the version scripts")
    planning.set_defaults(run=plan)
    stubbing = commands.add_parser("stubs")
    stubbing.add_argument("--plan", required=True)
    stubbing.add_argument("--face", required=True, choices=sorted(FACES))
    stubbing.add_argument("--out", required=True)
    stubbing.add_argument("--header", help="the header with the library's functions")
    stubbing.add_argument("objects", nargs="*", help="the face's compiled objects")
    stubbing.set_defaults(run=stubs)
    verifying = commands.add_parser("verify")
    verifying.add_argument("--plan", required=True)
    verifying.add_argument("--libraries", required=True, help="folder of the finished libraries")
    verifying.add_argument("--stubs", help="folder of the generated sources, to count them")
    verifying.add_argument("--stamp", help="file to write on success")
    verifying.set_defaults(run=verify)
    arguments = parser.parse_args(argv)
    try:
        arguments.run(arguments)
    except (GenerateError, ElfError, OSError) as error:
        print(f"plimsoll: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
