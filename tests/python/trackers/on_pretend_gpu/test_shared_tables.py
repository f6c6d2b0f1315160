"""Facts that Python and the docs repeat equal the C++ table: categories, and the text of an amount of bytes."""

import re

import needs
from plimsoll.native import _C
from plimsoll.trackers import ref_types
from torch.distributed._tools import fsdp2_mem_tracker, mem_tracker

from plimsoll import amounts

CATEGORIES = _C.categories()


def spelled(key):
    return {category[key] for category in CATEGORIES} - {""}


def values(enum):
    return {member.value for member in enum.__members__.values()}


def test_the_enums_have_the_spelling_of_the_table():
    assert values(ref_types.MemRefType) == spelled("torch_mem")
    assert values(ref_types.FSDPRefType) == spelled("torch_fsdp")
    in_neither = {one["name"] for one in CATEGORIES if not (one["torch_mem"] or one["torch_fsdp"])}
    in_both = {one["name"] for one in CATEGORIES if one["torch_mem"] and one["torch_fsdp"]}
    assert in_neither <= values(ref_types.OwnRefType) <= spelled("name") - in_both


def test_the_table_has_the_spelling_of_torchs_trackers():
    assert values(mem_tracker._MemRefType) == spelled("torch_mem")
    assert values(fsdp2_mem_tracker._FSDPRefType) == spelled("torch_fsdp")


def test_the_docs_describe_each_category():
    for page, key in (("fsdp_mem_tracker", "name"), ("trackers", "torch_mem")):
        text = (needs.HOME / "docs" / f"{page}.md").read_text()
        table = re.search(r"\n\| category \|.*?\n\n", text, re.DOTALL)
        assert table is not None
        rows = re.findall(r"^\| ([^|]+) \|", table[0], re.MULTILINE)
        assert spelled(key) <= {name for row in rows for name in row.split(", ")}


def test_python_writes_bytes_as_cpp_does():
    for count in (0, 1, 1023, 1024, 58785792, 2**30 - 1, 2**30, 84943110144, 3 * 2**40, 5000 * 2**40):
        assert amounts.text_of(count) == _C.format_bytes(count)


def test_names_are_in_natural_order():
    names = ["layers.10", "layers", "layers.9", "layers.9.mlp"]
    order = [names[index] for index in _C.natural_order(names)]
    assert order == ["layers", "layers.9", "layers.9.mlp", "layers.10"]
