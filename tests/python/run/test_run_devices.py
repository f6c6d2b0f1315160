"""A script sees the cards that the options give it, and CUDA_VISIBLE_DEVICES selects among them."""

import json

import pytest

pytestmark = pytest.mark.warm

SEVERAL = """
    import json, torch
    blocks = [torch.empty(10 << (20 + number), dtype=torch.uint8, device=f"cuda:{number}") for number in range(torch.cuda.device_count())]
    print(json.dumps([torch.cuda.memory_reserved(number) for number in range(torch.cuda.device_count())]))
"""

VISIBLE = """
    import json, os, sys
    import torch

    identifiers = torch.cuda._raw_device_uuid_nvml()
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1].format(*identifiers)
    cards = torch.cuda._parse_visible_devices()
    if cards and isinstance(cards[0], str):
        cards = torch.cuda._transform_uuid_to_ordinals(cards, identifiers)
    predicted = cards[: torch.cuda._device_count_nvml()]
    found = [torch.cuda.get_device_properties(number).pci_bus_id - 1 for number in range(torch._C._cuda_getDeviceCount())]
    print(json.dumps([predicted, found, torch.cuda.is_available()]))
"""


def test_a_script_of_one_rank_sees_the_number_of_cards_of_the_option(plimsoll_run, script):
    run = plimsoll_run("--gpus-per-node", 4, script(SEVERAL))
    reserved = json.loads(run.stdout.splitlines()[0])
    assert reserved == [10 << 20, 20 << 20, 40 << 20, 80 << 20]
    assert run.json["device"] == 3
    assert run.json["peak"]["reserved_bytes"] == reserved[3]
    assert [other["reserved_peak_bytes"] for other in run.json["other_devices"]] == reserved[:3]


def test_a_script_of_one_rank_sees_one_card_by_default(plimsoll_run, script):
    assert json.loads(plimsoll_run(script(SEVERAL)).stdout.splitlines()[0]) == [10 << 20]


@pytest.mark.parametrize("shown", ["2,0", "3,9,1", "1,1", "", "{3},{1}", "{0},2"])
def test_a_script_that_sets_visible_devices_sees_these(plimsoll_run, script, shown):
    """torch's prediction from NVML and the variable equals the devices that it finds."""
    run = plimsoll_run("--quiet", "--gpus-per-node", 4, script(VISIBLE), shown)
    predicted, found, available = json.loads(run.stdout.splitlines()[0])
    assert found == predicted
    assert available == bool(found)
