"""What the drop-in trackers print and give is what torch's print and give. The claims are the functions of trackers_forms.py."""

import importlib.util

import claims
import needs
import pytest

PROGRAM = needs.PYTHON_PROGRAMS / "trackers_forms.py"
WHY_NOT = needs.why_no_package() or (None if importlib.util.find_spec("tabulate") else "tabulate is not installed")
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(scope="module")
def found():
    return claims.run(PROGRAM)


@pytest.mark.parametrize("claim", claims.names(PROGRAM))
def test_it_holds(found, claim):
    assert found[claim] is None, found[claim]
