"""Every place that names torch's version agrees with scripts/setup.sh. docs/howto/torch_version.md has the order of the changes."""

import os
import re
import unittest

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text_of(path):
    with open(os.path.join(HOME, path), encoding="utf-8") as file:
        return file.read()


def found(path, pattern):
    return re.findall(pattern, text_of(path), re.MULTILINE)


class TorchVersion(unittest.TestCase):
    def setUp(self):
        (self.version,) = found("scripts/setup.sh", r"^torch_version=(\S+)")
        self.minor = ".".join(self.version.split(".")[:2])  # "2.13"

    def test_each_declaration_names_the_version_of_setup(self):
        exact = [("python/plimsoll/api/installation.py", r'^TORCH = "(.*)"')]
        by_minor = [
            ("pyproject.toml", r'"torch==([\d.]+)\.\*"'),
            ("cmake/PlimsollWheel.cmake", r"plimsoll_wheel_torch ([\d.]+)\)"),
            ("python/plimsoll/native.py", r'^TORCH = "(.*)"'),
            ("src/plimsoll/cli/installation.cpp", r"CUDA build of torch ([\d.]+\d)"),
        ]
        for path, pattern in exact:
            with self.subTest(path):
                self.assertEqual(found(path, pattern), [self.version])
        for path, pattern in by_minor:
            with self.subTest(path):
                self.assertEqual(found(path, pattern), [self.minor])

    def test_each_text_about_the_supported_range_ends_with_the_newest(self):
        oldest, newest = (f"{a}.{b}" for a, b in found("scripts/pretend_for.py", r"\((\d+), (\d+)\)")[:2])
        places = ["src/plimsoll/cli/installation.cpp", "python/plimsoll/run/__init__.py", "README.md", "DESIGN.md"]
        for path in [*places, "docs/run.md", "docs/pretend_gpu.md"]:
            with self.subTest(path):
                self.assertEqual(set(found(path, re.escape(oldest) + r" to ([\d.]+\d)")), {newest})


if __name__ == "__main__":
    unittest.main()
