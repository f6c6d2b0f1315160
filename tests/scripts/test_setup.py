"""Runs setup.sh in a folder of its own, with fake programs on PATH for all that it installs and builds with."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
REAL = "bash cat cksum cp dirname env flock grep mkdir mktemp mv rm sed sleep tail touch tr".split()

# Each fake program records its calls. A call with a word of $WORLD/fails fails; one with a word of $WORLD/hangs waits.
STAND_IN = """#!{bash}
call="${{0##*/}} $*"
echo "$call" >>"$WORLD/calls"
for word in $(cat "$WORLD/fails" 2>/dev/null); do case $call in *"$word"*) exit 1 ;; esac; done
for word in $(cat "$WORLD/hangs" 2>/dev/null); do case $call in *"$word"*) exec sleep 60 ;; esac; done
{does}
"""
DOES = {
    "id": 'cat "$WORLD/user"',
    "sudo": "exit 1",
    "cmake": "mkdir -p build/release && touch build/release/build.ninja",
    "ninja": 'case "$*" in *-n*) cat "$WORLD/built" 2>/dev/null || true ;; *) echo "no work to do" >"$WORLD/built" ;; esac',
    # Makes an environment with the fake interpreter below; other calls go to the real Python.
    "python3": """case "$*" in
  "-m venv"*) mkdir -p "${@: -1}/bin" && cp "$WORLD/python" "${@: -1}/bin/python" ;;
  *) exec "$REAL_PYTHON" "$@" ;;
esac""",
}
# The interpreter of an environment: pip, and the script that fetches headers.
PYTHON = """case "$*" in
  *"install torch=="*)
    torch=${0%/bin/python}/lib/python3.11/site-packages/torch
    mkdir -p "$torch/lib" && touch "$torch/version.py"
    case "$*" in *===*) touch "$torch/lib/libtorch_cuda.so" ;; esac ;;
  *cuda_headers.py*) mkdir -p "${@: -1}/include" && touch "${@: -1}/include/cuda_runtime_api.h" "${@: -1}/complete" ;;
esac"""


class SetUp(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.world = Path(scratch.name).resolve()
        self.home, self.path = self.world / "home", self.world / "bin"
        (self.home / "scripts").mkdir(parents=True)
        self.path.mkdir()
        for name in ("scripts/setup.sh", "scripts/progress.sh", "CMakePresets.json"):
            shutil.copy(HOME / name, self.home / name)
        for name in REAL:
            (self.path / name).symlink_to(shutil.which(name))
        for name in ("apt-get", "ccache", "g++", "ld", "mold"):
            self.stand_in(self.path / name, "")
        for name, does in DOES.items():
            self.stand_in(self.path / name, does)
        self.stand_in(self.world / "python", PYTHON)
        self.user(0)

    def stand_in(self, file, does):
        file.write_text(STAND_IN.format(bash=shutil.which("bash"), does=does))
        file.chmod(0o755)

    def user(self, number):
        (self.world / "user").write_text(f"{number}\n")

    def start(self):
        return subprocess.Popen(
            ["bash", str(self.home / "scripts" / "setup.sh")],
            env={"PATH": str(self.path), "WORLD": str(self.world), "REAL_PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def set_up(self):
        """Returns the exit code, the output, and the calls that changed something."""
        (self.world / "calls").write_text("")
        process = self.start()
        said = process.communicate(timeout=60)[0]
        return process.returncode, said, self.calls()

    def calls(self):
        lines = (self.world / "calls").read_text().splitlines()
        words = ("apt-get", "-m venv", " install ", "cuda_headers", "cmake", "ninja -C")
        return [line for line in lines if any(word in line for word in words)]

    def is_ready(self):
        return (self.home / ".plimsoll" / "ready").exists()

    def test_first_run_does_each_step_once_and_second_run_does_nothing(self):
        code, said, calls = self.set_up()
        self.assertEqual((code, self.is_ready()), (0, True), said)
        for part in ("-m venv", "torch===", "sympy", "triton==", "cuda_headers.py 13", "cmake --preset release"):
            self.assertEqual(len([call for call in calls if part in call]), 1, (part, calls))
        code, said, calls = self.set_up()
        self.assertEqual((code, said), (0, ""))
        self.assertEqual([call for call in calls if "apt-get" not in call and " -n " not in call], [])

    def test_without_the_right_to_install_packages_it_prints_the_command_and_stops(self):
        (self.path / "mold").unlink()
        self.user(1000)
        code, said, calls = self.set_up()
        self.assertEqual((code, calls, self.is_ready()), (1, [], False))
        self.assertIn("packages are missing, and this user cannot install them. Run this, then try again:\n", said)
        command = said.splitlines()[-1].split()
        self.assertEqual(command[:4], ["sudo", "apt-get", "install", "-y"])
        self.assertIn("mold", command[4:])

    def test_without_apt_it_names_the_packages(self):
        (self.path / "mold").unlink()
        (self.path / "apt-get").unlink()
        code, said, calls = self.set_up()
        self.assertEqual((code, calls), (1, []))
        self.assertRegex(said, r"missing packages, by their Debian names: .*\bmold\b.*Install them, then try again\.")

    def test_a_failed_install_of_clang_is_reported_once_and_does_not_stop_the_build(self):
        for user, fails, says in (
            (0, "clang-19", "continuing without Clang"),
            (1000, "nothing", "Debian's clang-19 would"),
        ):
            with self.subTest(user=user):
                shutil.rmtree(self.home / ".plimsoll", ignore_errors=True)
                self.user(user)
                (self.world / "fails").write_text(fails)
                code, said, _ = self.set_up()
                self.assertEqual((code, self.is_ready()), (0, True), said)
                self.assertIn(says, said)
                code, said, calls = self.set_up()
                self.assertEqual((code, said, [call for call in calls if "clang" in call]), (0, "", []))

    def test_a_cpu_build_of_torch_is_reported_and_does_not_stop_the_build(self):
        (self.world / "fails").write_text("torch===")
        code, said, calls = self.set_up()
        self.assertEqual((code, self.is_ready()), (0, True), said)
        self.assertIn(
            "only a CPU build of torch 2.13.0 was found: parts that need the pretend GPU are not built\n", said
        )
        self.assertEqual([call for call in calls if "triton" in call], [])
        self.assertTrue(calls[-1].startswith("ninja -C"), calls)

    def test_a_failed_set_up_continues_at_the_failed_step(self):
        (self.world / "fails").write_text("triton==")
        code, said, calls = self.set_up()
        self.assertEqual((code, self.is_ready()), (1, False))
        self.assertIn("set-up failed at: installing triton", said)
        self.assertIn("triton==", calls[-1])
        (self.world / "fails").unlink()
        code, said, calls = self.set_up()
        self.assertEqual((code, self.is_ready()), (0, True), said)
        self.assertIn("triton==", [call for call in calls if "apt-get" not in call][0])

    def test_an_interrupted_set_up_ends_its_processes_and_continues_at_the_same_step(self):
        (self.world / "hangs").write_text("triton==")
        (self.world / "calls").write_text("")
        process = self.start()
        self.addCleanup(process.stdout.close)
        until = time.monotonic() + 30
        while not any("triton" in call for call in self.calls()):
            self.assertLess(time.monotonic(), until, "did not reach triton")
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 130)
        (self.world / "hangs").unlink()
        # pip ended too: otherwise it would hold the lock, and two processes would install the same package.
        code, said, calls = self.set_up()
        self.assertEqual((code, self.is_ready()), (0, True), said)
        self.assertNotIn("another set-up is running", said)
        self.assertIn("triton==", [call for call in calls if "apt-get" not in call][0])


if __name__ == "__main__":
    unittest.main()
