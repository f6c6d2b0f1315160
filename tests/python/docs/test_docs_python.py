"""docs/python.md shows its examples and their output as they are."""

import ast
import os
import re
import subprocess
import sys

import needs
import pytest

PAGE = (needs.HOME / "docs" / "python.md").read_text()
EXAMPLE = needs.HOME / "examples" / "estimate.py"
COMMAND = needs.BUILD / "bin" / "plimsoll"
WHY_NOT = needs.why_not(COMMAND, cuda=True)
can_run = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


def block_after(words, language=""):
    """The text of the first fenced block after these words."""
    return re.search(rf"```{language}\n(.*?)```", PAGE[PAGE.index(words) :], re.DOTALL).group(1)


def test_the_script_on_the_page_is_the_example():
    text = EXAMPLE.read_text()
    after_docstring = "\n".join(text.splitlines()[ast.parse(text).body[0].end_lineno :]).lstrip("\n") + "\n"
    assert block_after("`examples/estimate.py`:", "python") == after_docstring


@can_run
@pytest.mark.parametrize(
    "words, gpu", [("It prints:", "H100-80GB"), ('With `gpu="RTX-4090-24GB"` it is:', "RTX-4090-24GB")]
)
def test_the_example_prints_the_output_on_the_page(tmp_path, words, gpu):
    """A copy for another GPU: a verdict names the line where memory ran out."""
    script = tmp_path / "examples" / "estimate.py"
    script.parent.mkdir()
    script.write_text(EXAMPLE.read_text().replace("H100-80GB", gpu))
    done = subprocess.run(
        [sys.executable, "examples/estimate.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(needs.HOME / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == block_after(words)


@can_run
def test_the_fsdp_tracker_example_prints_the_output_on_the_page():
    example = "examples/track_fsdp.py"
    done = subprocess.run(
        [str(COMMAND), "run", "--quiet", "--world-size", "16", example],
        cwd=needs.HOME,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.rstrip("\n").endswith("\n" + block_after(f"`{example}` under").rstrip("\n"))
