"""What the drop-in trackers print and give is what torch's print and give. The claims are the functions of trackers_forms.py."""

import importlib.util
from pathlib import Path

import claims
import needs
import pytest

PROGRAM = Path(__file__).with_name("trackers_forms.py")
WHY_NOT = needs.why_no_package() or (None if importlib.util.find_spec("tabulate") else "tabulate is not installed")
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(scope="module")
def found():
    return claims.run(PROGRAM)


# Where a forward may run again before its module's backward has begun, or after, only the native part knows; it does not tell.
UNTOLD = {
    "states_come_in_torchs_order_where_a_checkpoint_runs_modules_again",
    "states_of_fsdp_come_in_torchs_order_with_composable_checkpoints",
}
NOT_YET = pytest.mark.xfail(strict=True, reason="the native part's statistics have no `order`")


@pytest.mark.parametrize(
    "claim", [pytest.param(name, marks=[NOT_YET] if name in UNTOLD else []) for name in claims.names(PROGRAM)]
)
def test_it_holds(found, claim):
    assert found[claim] is None, found[claim]
