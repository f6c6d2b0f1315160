"""pretend_for.py reports the torch that it found, without importing it."""

import os
import subprocess
import sys
import tempfile
import unittest

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class PretendFor(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def python_with_torch(self, version, cuda, has_cuda_library=True):
        """An interpreter with a torch that cannot be imported."""
        package = os.path.join(self.folder, "site", "torch")
        os.makedirs(os.path.join(package, "lib"))
        self.write(os.path.join(package, "__init__.py"), "raise RuntimeError('must not be imported')\n")
        self.write(
            os.path.join(package, "version.py"),
            f"from typing import Optional\n__version__ = '{version}'\ncuda: Optional[str] = {cuda!r}\n",
        )
        if has_cuda_library:
            self.write(os.path.join(package, "lib", "libtorch_cuda.so"), "")
        return self.python(os.path.join(self.folder, "site"))

    def python(self, path):
        """This interpreter, alone with the packages in `path`."""
        program = os.path.join(self.folder, "python")
        self.write(program, f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -S "$@"\n')
        os.chmod(program, 0o755)
        return program

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def refusal(self, python):
        script = os.path.join(HOME, "scripts", "pretend_for.py")
        done = subprocess.run([sys.executable, "-B", script, "--python", python], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr

    def test_no_such_interpreter(self):
        self.assertIn("/no/such/python cannot be started", self.refusal("/no/such/python"))

    def test_no_torch(self):
        said = self.refusal(self.python(""))
        self.assertIn("has no torch installed; supported are the CUDA 12 and CUDA 13 builds of torch 2.5 to", said)

    def test_an_old_python(self):
        python = os.path.join(self.folder, "python")
        self.write(python, "#!/bin/sh\necho 3.9\necho /torch/__init__.py\n")
        os.chmod(python, 0o755)
        self.assertIn(f"{python} is Python 3.9, and plimsoll needs Python 3.10 or newer", self.refusal(python))

    def test_a_cpu_build(self):
        self.assertIn("torch 2.13.0+cpu in", self.refusal(self.python_with_torch("2.13.0+cpu", None, False)))

    def check_not_supported(self, version, cuda):
        said = self.refusal(self.python_with_torch(version, cuda))
        self.assertIn(f"torch {version}", said)
        self.assertIn("is not supported; supported are", said)

    def test_a_version_too_old(self):
        self.check_not_supported("2.4.1+cu121", "12.1")

    def test_a_version_too_new(self):
        self.check_not_supported("2.99.0+cu130", "13.0")

    def test_another_cuda(self):
        self.assertIn("was built for CUDA 11.8", self.refusal(self.python_with_torch("2.5.1+cu118", "11.8")))


if __name__ == "__main__":
    unittest.main()
