"""The picture of a report in the README is the output of the command."""

import subprocess
import sys

import pytest
from needs import HOME
from planner import why_no_plan

REASON = why_no_plan()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def test_the_picture_is_the_output_of_its_script():
    drawn = subprocess.run(
        [sys.executable, HOME / "scripts" / "report_svg.py"],
        check=True,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert drawn.stdout == (HOME / "docs" / "report.svg").read_text(encoding="utf-8"), "scripts/report_svg.py --write"
