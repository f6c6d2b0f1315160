"""Facts that Python and the docs repeat are those of the C++ table: categories, and the text of an amount of bytes."""

import re

import needs
import pytest

WHY_NOT = needs.why_no_package()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(scope="module")
def native():
    from plimsoll.native import _C

    return _C


@pytest.fixture(scope="module")
def categories(native):
    return {category["name"]: category for category in native.categories()}


def test_the_enums_have_the_spelling_of_the_table(categories):
    from plimsoll.trackers import ref_types

    def spelled(key):
        return {category[key] for category in categories.values()} - {""}

    assert {member.value for member in ref_types.MemRefType} == spelled("torch_mem")
    assert {member.value for member in ref_types.FSDPRefType} == spelled("torch_fsdp")
    ours = {member.value for member in ref_types.OwnRefType}
    not_in_both = {name for name, one in categories.items() if not (one["torch_mem"] and one["torch_fsdp"])}
    assert {name for name, one in categories.items() if not (one["torch_mem"] or one["torch_fsdp"])} <= ours
    assert ours <= not_in_both


def test_torchs_trackers_have_the_spelling_of_the_table(categories):
    from torch.distributed._tools import fsdp2_mem_tracker, mem_tracker

    for key, enum in (("torch_mem", mem_tracker._MemRefType), ("torch_fsdp", fsdp2_mem_tracker._FSDPRefType)):
        assert {member.value for member in enum} == {one[key] for one in categories.values()} - {""}


@pytest.mark.parametrize(("page", "key"), [("fsdp_mem_tracker", "name"), ("trackers", "torch_mem")])
def test_the_docs_describe_each_category(categories, page, key):
    text = (needs.HOME / "docs" / f"{page}.md").read_text()
    table = re.search(r"\n\| category \|.*?\n\n", text, re.DOTALL)
    assert table is not None
    described = {name for row in re.findall(r"^\| ([^|]+) \|", table[0], re.MULTILINE) for name in row.split(", ")}
    assert {one[key] for one in categories.values()} - {""} <= described


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 58785792, 2**30 - 1, 2**30, 84943110144, 3 * 2**40, 5000 * 2**40])
def test_python_writes_bytes_as_the_command_does(native, count):
    from plimsoll.api import amounts

    assert amounts.text_of(count) == native.format_bytes(count)


def test_names_are_in_natural_order(native):
    names = ["layers.10", "layers", "layers.9", "layers.9.mlp"]
    assert [names[index] for index in native.natural_order(names)] == [
        "layers",
        "layers.9",
        "layers.9.mlp",
        "layers.10",
    ]
