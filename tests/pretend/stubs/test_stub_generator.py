"""The stub generator on a tiny torch, compiled on this machine."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(HOME, "src", "plimsoll", "pretend", "stubs"))

import generate  # noqa: E402
from elf import Elf, ElfError  # noqa: E402
from faces import FACES, face_of_soname, face_of_symbol, stub  # noqa: E402

RUNTIME = "libcudart.so.13 { global: cuda*; local: *; };"


class SmallTorch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.vendor = os.path.join(self.folder, "vendor")
        self.torch_lib = os.path.join(self.folder, "torch", "lib")
        self.plan_folder = os.path.join(self.folder, "plan")
        for folder in (self.vendor, self.torch_lib, self.plan_folder):
            os.makedirs(folder)

    def library(self, folder, soname, source, needs=(), version_script=""):
        """Compiles a shared library, linked to those in `needs`, and returns its path."""
        path = os.path.join(folder, soname)
        command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", path, f"-Wl,-soname,{soname}"]
        if version_script:
            script = os.path.join(self.folder, soname + ".map")
            with open(script, "w", encoding="utf-8") as file:
                file.write(version_script)
            command.append(f"-Wl,--version-script={script}")
        command += ["-x", "none", "-Wl,--no-as-needed", *needs, "-Wl,--allow-shlib-undefined"]
        subprocess.run(command, input=source, text=True, check=True)
        return path

    def object(self, source):
        """Compiles the objects of a face, and returns their path."""
        path = os.path.join(self.folder, "by_hand.o")
        subprocess.run(["cc", "-c", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
        return path

    def runtime(self):
        source = "int cudaMalloc(void) { return 0; } int cudaFree(void) { return 0; } int cudaTable[4];"
        return self.library(self.vendor, "libcudart.so.13", source, version_script=RUNTIME)

    def torch(self, source, needs=None):
        needs = [self.runtime()] if needs is None else needs
        return self.library(self.torch_lib, "libtorch_cuda.so", source, needs)

    def generate(self, *arguments):
        """Returns the exit code and the output."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = generate.main(list(arguments))
        return code, output.getvalue()

    def plan(self, *arguments):
        return self.generate("plan", "--torch-lib", self.torch_lib, "--out", self.plan_folder, *arguments)

    def planned(self):
        with open(os.path.join(self.plan_folder, "plan.json"), encoding="utf-8") as file:
            return json.load(file)

    def text(self, name):
        with open(os.path.join(self.plan_folder, name), encoding="utf-8") as file:
            return file.read()

    def test_a_symbol_is_planned_with_its_library_and_version(self):
        self.torch("int cudaMalloc(void); int use(void) { return cudaMalloc(); }")
        self.assertEqual(self.plan(), (0, "CUDA 13: 1 vendor symbols\n"))
        self.assertEqual(
            self.planned()["faces"]["runtime"],
            {
                "soname": "libcudart.so.13",
                "node": "libcudart.so.13",
                "symbols": {"cudaMalloc": "libcudart.so.13"},
                "by_name": {},
            },
        )
        self.assertEqual(self.text("runtime.map"), "libcudart.so.13 { global: cuda*; __cuda*; local: *; };\n")

    def test_functions_of_the_objects_need_no_stub(self):
        self.torch("int cudaMalloc(void); int cudaFree(void); int use(void) { return cudaMalloc() + cudaFree(); }")
        self.plan()
        source = (
            'int cudaMalloc(void) { return 0; } __attribute__((visibility("hidden"))) int cudaFree(void) { return 0; }'
        )
        by_hand = self.object(source)
        out = os.path.join(self.folder, "stubs_runtime.c")
        plan = os.path.join(self.plan_folder, "plan.json")
        self.assertEqual(self.generate("stubs", "--plan", plan, "--face", "runtime", "--out", out, by_hand)[0], 0)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("cudaMalloc", text)
        self.assertIn('long long cudaFree(void) { return plimsoll_fail_by_name("cudaFree", 801); }', text)

    def test_other_functions_of_a_header_get_a_stub_unless_another_version_is_implemented(self):
        self.torch("int cudaMalloc(void); int use(void) { return cudaMalloc(); }")
        self.plan()
        source = "int cudaMalloc(void) { return 0; } int cudaEventElapsed(void) { return 0; } int cudaPack_v2(void) { return 0; }"
        by_hand = self.object(source)
        header = os.path.join(self.folder, "cuda_runtime_api.h")
        with open(header, "w", encoding="utf-8") as file:
            file.write(
                "extern __host__ cudaError_t CUDARTAPI cudaMalloc(void **p, size_t n);\n"
                "extern __host__ __cudart_builtin__ cudaError_t CUDARTAPI cudaMemAdvise(const void *p);\n"
                "extern cudaError_t CUDARTAPI_CDECL cudaEventElapsed_v2(float *ms);\n"
                "extern cudaError_t CUDARTAPI cudaPack_ptsz(int x);\n"
                "cudaMentioned(1);\n"
            )
        out = os.path.join(self.folder, "stubs_runtime.c")
        plan = os.path.join(self.plan_folder, "plan.json")
        code, output = self.generate(
            "stubs", "--plan", plan, "--face", "runtime", "--out", out, "--header", header, by_hand
        )
        self.assertEqual(code, 0, output)
        self.assertEqual(generate._stub_names(out), {"cudaMemAdvise"})

    def test_a_symbol_of_an_unknown_library_is_named(self):
        self.torch("int nvdreamStart(void); int use(void) { return nvdreamStart(); }")
        code, output = self.plan()
        self.assertEqual(code, 1)
        self.assertIn("nvdreamStart (needed by libtorch_cuda.so)", output)

    def test_torchs_own_symbols_do_not_belong_to_a_vendor(self):
        own = self.library(self.torch_lib, "libc10.so", "int cudnnLookalike(void) { return 0; }")
        self.torch("int cudnnLookalike(void); int use(void) { return cudnnLookalike(); }", [own, self.runtime()])
        self.assertEqual(self.plan()[0], 0)
        self.assertEqual(self.planned()["faces"]["cudnn"]["symbols"], {})

    def test_a_data_symbol_is_refused(self):
        self.torch("extern int cudaTable[4]; int* use(void) { return cudaTable; }")
        code, output = self.plan()
        self.assertEqual(code, 1)
        self.assertIn("cudaTable", output)
        self.assertIn("as data", output)

    def test_a_cpu_build_is_planned_without_torch(self):
        self.torch("int use(void) { return 0; }", [])
        code, output = self.plan()
        self.assertEqual(code, 0)
        self.assertIn("not a CUDA build", output)
        self.assertIn("set(plimsoll_has_torch OFF)", self.text("libraries.cmake"))

    def test_another_major_version_of_cuda_is_refused(self):
        old = self.library(self.vendor, "libcudart.so.11", "int cudaFree(void) { return 0; }")
        self.torch("int cudaFree(void); int use(void) { return cudaFree(); }", [old])
        code, output = self.plan()
        self.assertEqual(code, 1)
        self.assertIn("torch needs libcudart.so.11; CUDA 12 and 13 are supported", output)

    def test_a_vendor_library_inside_the_wheel_is_replaced(self):
        brought = self.library(self.torch_lib, "libcusparseLt-294d6944.so.0", "int cusparseLtInit(void) { return 0; }")
        self.torch("int cusparseLtInit(void); int use(void) { return cusparseLtInit(); }", [brought, self.runtime()])
        self.assertEqual(self.plan()[0], 0)
        entry = self.planned()["faces"]["cusparselt"]
        self.assertEqual(entry["soname"], "libcusparseLt-294d6944.so.0")
        self.assertEqual((entry["node"], entry["symbols"]), (None, {"cusparseLtInit": None}))

    # Names that torch looks up at run time, which are not in the symbol tables.
    BY_NAME = 'const char* const names[] = {"cuMemMap", "cuda is busy", "nvmlInit_v2"}; int cudaFree(void);'

    def test_a_name_that_torch_looks_up_itself_is_needed_exactly(self):
        self.library(
            self.torch_lib, "libc10_cuda.so", self.BY_NAME + "int use(void) { return cudaFree(); }", [self.runtime()]
        )
        self.assertEqual(self.plan()[0], 0)
        self.assertEqual(self.planned()["faces"]["driver"]["by_name"], {"cuMemMap": ["cuMemMap"]})
        self.assertEqual(self.planned()["faces"]["nvml"]["by_name"], {"nvmlInit_v2": ["nvmlInit_v2"]})

    def test_a_name_that_the_runtime_looks_up_can_have_a_version(self):
        source = self.BY_NAME + "int cudaGetDriverEntryPoint(void); int use(void) { return cudaGetDriverEntryPoint(); }"
        self.library(self.torch_lib, "libc10_cuda.so", source, [self.runtime()])
        self.plan()
        self.assertIn("cuMemMap_v2", self.planned()["faces"]["driver"]["by_name"]["cuMemMap"])

    def test_a_name_without_an_implementation_gets_a_stub(self):
        self.library(self.torch_lib, "libc10_cuda.so", self.BY_NAME, [self.runtime()])
        self.plan()
        out = os.path.join(self.folder, "stubs_driver.c")
        plan = os.path.join(self.plan_folder, "plan.json")
        self.assertEqual(self.generate("stubs", "--plan", plan, "--face", "driver", "--out", out)[0], 0)
        with open(out, encoding="utf-8") as file:
            self.assertIn('long long cuMemMap(void) { return plimsoll_fail_by_name("cuMemMap", 801); }', file.read())

    def test_verify_finds_a_missing_symbol_and_a_wrong_version(self):
        self.torch("int cudaMalloc(void); int cudaFree(void); int use(void) { return cudaMalloc() + cudaFree(); }")
        self.library(self.torch_lib, "libc10_cuda.so", self.BY_NAME, [self.runtime()])
        self.plan()
        ours = os.path.join(self.folder, "ours")
        os.makedirs(ours)
        for face in FACES.values():
            source = "int cudaFree(void) { return 0; }" if face.name == "runtime" else "int none;"
            self.library(ours, face.soname(13), source)
        code, output = self.generate(
            "verify", "--plan", os.path.join(self.plan_folder, "plan.json"), "--libraries", ours
        )
        self.assertEqual(code, 1)
        self.assertIn("libcudart.so.13 lacks cudaMalloc", output)
        self.assertIn("libcuda.so.1 lacks cuMemMap, which torch looks up by name", output)
        self.assertIn("libcudart.so.13 has cudaFree as unversioned, not as libcudart.so.13", output)

    def test_a_folder_without_libraries_is_reported(self):
        code, output = self.plan()
        self.assertEqual(code, 1)
        self.assertIn("is this the lib folder of an installed torch?", output)

    def test_a_file_that_is_not_elf_is_reported(self):
        path = os.path.join(self.folder, "text.o")
        with open(path, "w", encoding="utf-8") as file:
            file.write("not machine code " * 8)
        with self.assertRaisesRegex(ElfError, "not a 64-bit little-endian ELF file"):
            Elf(path)


class Faces(unittest.TestCase):
    def test_the_longer_prefix_wins(self):
        self.assertEqual(face_of_symbol("cublasLtMatmul").name, "cublaslt")
        self.assertEqual(face_of_symbol("cusparseLtInit").name, "cusparselt")
        self.assertEqual(face_of_symbol("cuFileRead").name, "cufile")
        self.assertEqual(face_of_symbol("cuMemCreate").name, "driver")
        self.assertEqual(face_of_symbol("__cudaRegisterFunction").name, "runtime")
        self.assertIsNone(face_of_symbol("custard"))

    def test_a_soname_belongs_to_one_face(self):
        self.assertEqual(face_of_soname("libcuda.so.1").name, "driver")
        self.assertEqual(face_of_soname("libcudart.so.12").name, "runtime")
        self.assertIsNone(face_of_soname("libcudadevrt.so.1"))

    def test_a_stub_returns_the_type_of_its_function(self):
        self.assertIn("const char* ncclGetErrorString(void)", stub("ncclGetErrorString", FACES["nccl"]))
        self.assertIn("void* nvshmem_malloc(void)", stub("nvshmem_malloc", FACES["nvshmem"]))
        self.assertIn("return -(long long)plimsoll_fail_by_name", stub("cuFileRead", FACES["cufile"]))
        self.assertIn("return plimsoll_fail_by_name", stub("cuGetErrorString", FACES["driver"]))


if __name__ == "__main__":
    unittest.main()
