"""The drop-in trackers in good and in bad use. The claims are the functions of the programs."""

import functools

import claims
import needs
import pytest

NAMES = (
    "trackers_use",
    "trackers_entered",
    "trackers_hooks",
    "trackers_hooks_backward",
    "trackers_raising",
    "trackers_beside",
)
PROGRAMS = [needs.PYTHON_PROGRAMS / f"{name}.py" for name in NAMES]
WHY_NOT = needs.why_no_package()
pytestmark = [
    pytest.mark.xdist_group("trackers_use"),  # What a program says is kept for all tests.
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]
found_by = functools.cache(claims.run)


@pytest.mark.parametrize(
    ("program", "claim"), [(program, claim) for program in PROGRAMS for claim in claims.names(program)]
)
def test_it_holds(program, claim):
    found = found_by(program)[claim]
    assert found is None, found
