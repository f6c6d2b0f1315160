"""The vendor libraries of the pretend GPU: one entry for each face, a folder in plimsoll/pretend."""

from __future__ import annotations

import re
from typing import NamedTuple


class Face(NamedTuple):
    name: str  # the folder
    library: str  # the SONAME without its number
    numbers: tuple[str, str]  # the SONAME's number for CUDA 12 and CUDA 13, if torch does not need the library
    symbols: str  # regular expression of the library's symbols
    exports: tuple[str, ...]  # the same as linker globs, which have no character classes
    status: int  # the library's status for an unsupported call
    version_node: str | None  # "soname": the symbols have the SONAME as version; None: no version
    header: str | None = None  # the CUDA header that declares it and that its sources include

    def declared(self, text: str) -> set[str]:
        """The functions that a header declares."""
        names = re.findall(r"\b(?:CUDARTAPI|CUDARTAPI_CDECL|CUDAAPI)\s+(\w+)\s*\(", text)
        return {name for name in names if re.fullmatch(self.symbols, name)}

    def soname(self, cuda_major: int) -> str:
        return f"{self.library}.{self.numbers[cuda_major - 12]}"

    def default_node(self, soname: str) -> str | None:
        return soname if self.version_node == "soname" else self.version_node

    def is_soname(self, soname: str) -> bool:
        """Also true for a library inside a wheel, with a hash in its name: libcusparseLt-294d6944.so.0."""
        stem = self.library[: -len(".so")]
        return re.fullmatch(re.escape(stem) + r"(-[0-9a-f]{8})?\.so(\.\d+)*", soname) is not None


# In the lookup order for symbols without a version: longer prefixes first.
# The status is "not supported" if the library has that code (CUDA 801, cuBLAS 15, cuDNN 3000, cuSPARSE 10, cuSOLVER 9,
# cuFFT 16, NVML 3, CUPTI 27, cuFile 5008, NVSHMEM 3), otherwise the nearest code: cuRAND's architecture mismatch,
# NCCL's invalid usage, NVRTC's and nvJitLink's internal error, NVTX's "not tracked".
_FACES = (
    Face(
        "runtime",
        "libcudart.so",
        ("12", "13"),
        r"(__)?cuda[A-Z]\w*",
        ("cuda*", "__cuda*"),
        801,
        "soname",
        "cuda_runtime_api.h",
    ),
    Face("cublaslt", "libcublasLt.so", ("12", "13"), r"cublasLt\w+", ("cublasLt*",), 15, "soname"),
    Face("cublas", "libcublas.so", ("12", "13"), r"cublas\w+", ("cublas*",), 15, "soname"),
    Face("cudnn", "libcudnn.so", ("9", "9"), r"cudnn\w+", ("cudnn*",), 3000, "soname"),
    Face("cusparselt", "libcusparseLt.so", ("0", "0"), r"cusparseLt\w+", ("cusparseLt*",), 10, None),
    Face("cusparse", "libcusparse.so", ("12", "12"), r"cusparse\w+", ("cusparse*",), 10, "soname"),
    Face("cusolver", "libcusolver.so", ("11", "12"), r"cusolver\w+", ("cusolver*",), 9, "soname"),
    Face("cufft", "libcufft.so", ("11", "12"), r"cufft\w+", ("cufft*",), 16, "soname"),
    Face("curand", "libcurand.so", ("10", "10"), r"curand\w+", ("curand*",), 204, "soname"),
    Face("cupti", "libcupti.so", ("12", "13"), r"cupti\w+", ("cupti*",), 27, "soname"),
    Face("cufile", "libcufile.so", ("0", "0"), r"cuFile\w+", ("cuFile*",), 5008, None),
    Face("nccl", "libnccl.so", ("2", "2"), r"p?nccl\w+", ("nccl*", "pnccl*"), 5, None),
    Face("nvml", "libnvidia-ml.so", ("1", "1"), r"nvml\w+", ("nvml*",), 3, None),
    Face("nvtx", "libnvToolsExt.so", ("1", "1"), r"nvtx\w+", ("nvtx*",), -2, None),
    Face("nvrtc", "libnvrtc.so", ("12", "13"), r"nvrtc\w+", ("nvrtc*",), 11, "soname"),
    Face(
        "nvjitlink", "libnvJitLink.so", ("12", "13"), r"(__)?nvJitLink\w+", ("nvJitLink*", "__nvJitLink*"), 6, "soname"
    ),
    Face("nvshmem", "libnvshmem_host.so", ("3", "3"), r"nvshmem\w+", ("nvshmem*",), 3, "NVSHMEM"),
    Face("driver", "libcuda.so", ("1", "1"), r"cu[A-Z]\w*", ("cu*",), 801, None, "cuda.h"),
)

FACES: dict[str, Face] = {face.name: face for face in _FACES}


def face_of_soname(soname: str) -> Face | None:
    return next((face for face in FACES.values() if face.is_soname(soname)), None)


def face_of_symbol(name: str) -> Face | None:
    return next((face for face in FACES.values() if re.fullmatch(face.symbols, name)), None)


def without_version(name: str) -> str:
    """A function's name in source code: cuMemAlloc for cuMemAlloc_v2 and for the forms of the per-thread stream."""
    return re.sub(r"(_v\d+)?(_ptds|_ptsz)?$", "", name)


# Functions that return text, a pointer (null: an error) or a count (negative: an error).
_TEXT = re.compile(
    r"(cudaGetError|cublas(Lt)?GetStatus|cusparse(Lt)?GetError|cudnnGetError|ncclGetError|nvrtcGetError|nvmlError)"
    r"(String|Name)|ncclGetLastError"
)
_POINTER = re.compile(r"nvshmemx?_(malloc|calloc|align|\w*ptr)")
_COUNT = re.compile(r"cuFile(Read|Write)")


def stub(name: str, face: Face) -> str:
    """The C function of a stub."""
    call = f'plimsoll_fail_by_name("{name}", {face.status})'
    if _TEXT.fullmatch(name):
        return f'const char* {name}(void) {{ {call}; return "{name} is not implemented by Plimsoll"; }}'
    if _POINTER.fullmatch(name):
        return f"void* {name}(void) {{ {call}; return 0; }}"
    if _COUNT.fullmatch(name):
        return f"long long {name}(void) {{ return -(long long){call}; }}"
    return f"long long {name}(void) {{ return {call}; }}"
