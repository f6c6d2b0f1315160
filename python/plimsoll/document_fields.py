"""The fields of the JSON documents (docs/schema) that Python writes or reads, each name in this file only.

`run` writes them and the API reads them by shorter names: `active` for `active_bytes` and `active_peak_bytes`. A test
compares this table with the schema, which comes from C++ (src/plimsoll/report/fields.h).
"""

from collections.abc import Mapping
from typing import Any

VERSION = 2

Fields = Mapping[str, str]  # the short name -> the name in the document


def _fields(names: str) -> Fields:
    return {name.removesuffix("_peak_bytes").removesuffix("_bytes"): name for name in names.split()}


GPU = _fields("name device_name memory_bytes compute_capability multiprocessors")
VERDICT = _fields("outcome only_just spare_bytes estimated_bytes reserve_bytes sentence")
PEAK = _fields(
    "active_bytes allocated_bytes reserved_bytes device_bytes segments step phase module stage categories device_parts"
)
PHASE = _fields("active_peak_bytes allocated_peak_bytes reserved_peak_bytes active_end_bytes reserved_end_bytes")
STEP = _fields("step active_peak_bytes allocated_peak_bytes reserved_peak_bytes phases")
MODULE = _fields("name type fsdp_unit parameters highest_bytes total_bytes at_peak")
OOM = _fields(
    "requested_bytes device_free_bytes device_total_bytes active_bytes reserved_bytes step phase module"
    " file line function code message device_parts top"
)
OTHER_DEVICE = _fields("device reserved_peak_bytes")
REPORT = _fields(
    "version command fits verdict gpu torch model job notes host_bytes ops planner_step_seconds"
    " script python gpus_per_node world_size rank processes device complete finished_steps stopped_after_steps error"
    " exit_code signal ooms_handled top top_total_bytes read_backs read_back_lines unpretended defects other_devices"
    " peak oom before_steps steps after_steps modules causes attribution host_pinned_bytes alloc_retries seconds"
)


def written(fields: Fields, **values: Any) -> dict[str, Any]:
    """An object of a document.

    >>> written(OTHER_DEVICE, device=1, reserved=512)
    {'device': 1, 'reserved_peak_bytes': 512}
    """
    return {fields[name]: value for name, value in values.items()}


def values_of(fields: Fields, document: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object by their short names; None for a field that the object does not have.

    >>> values_of(OTHER_DEVICE, {"reserved_peak_bytes": 512, "later": 1})
    {'device': None, 'reserved': 512}
    """
    return {name: document.get(field) for name, field in fields.items()}
