"""Memory that is not there and comes up while a tracker is entered. The claims are the functions of trackers_meta.py."""

import claims
import needs
import pytest

PROGRAM = needs.PYTHON_PROGRAMS / "trackers_meta.py"
WHY_NOT = needs.why_no_package()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(scope="module")
def found():
    return claims.run(PROGRAM)


@pytest.mark.parametrize("claim", claims.names(PROGRAM))
def test_it_holds(found, claim):
    assert found[claim] is None, found[claim]
