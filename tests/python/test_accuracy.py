"""Plans against what others measured on H100s and published."""

import sys

import pytest
from needs import HOME
from planner import why_no_plan

sys.path.insert(0, str(HOME / "scripts"))

from accuracy import BEGIN, END, PAGE, ROWS, difference, planned

REASON = why_no_plan()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.job)
def test_a_plan_is_near_what_was_measured(row):
    assert abs(difference(row, planned(row))) <= row.within


def test_the_page_has_todays_numbers():
    kept = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    for row in ROWS:
        assert f"| {row.book} | {row.measured:g} GiB | {planned(row):.2f} GiB |" in kept
