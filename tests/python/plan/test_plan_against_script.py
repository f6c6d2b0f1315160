"""A plan in C++ against the same job as a script in Python: the same bytes in each phase of each step, and at the peak in
each category, module and cause."""

import needs
import pytest
from needs import HOME
from planner import plan, script_arguments, why_no_plan

REASON = why_no_plan()
pytestmark = [pytest.mark.recorded, pytest.mark.warm, pytest.mark.skipif(REASON is not None, reason=str(REASON))]
MODELS = HOME / "tests" / "golden" / "models"

CASES = {
    "llama": {},
    "llama, one GPU": {"gpus": 1},
    "llama, one GPU in fp32": {"gpus": 1, "param_dtype": "fp32"},
    "llama, 1000 GPUs": {"gpus": 1000},
    "llama, rank 7": {"rank": 7},
    "llama, batch and steps": {"batch": 4, "steps": 3},
    "llama, full checkpointing": {"checkpoint": "full"},
    "llama, selective checkpointing": {"checkpoint": "selective"},
    "llama, every other block": {"checkpoint": "every:2"},
    "llama, fused AdamW": {"optimizer_impl": "fused"},
    "llama, for-loop Adam": {"optimizer": "adam", "optimizer_impl": "forloop"},
    "llama, SGD": {"optimizer": "sgd"},
    "llama, HSDP": {"gpus": 32, "replicas": 4, "checkpoint": "full"},
    "llama, accumulation": {"grad_accum": 3},
    "llama, accumulation without sync": {"grad_accum": 3, "accum_no_sync": True},
    "llama, never resharded": {"reshard_after_forward": "never"},
    "llama, always resharded": {"reshard_after_forward": "always", "keep_last_block": False},
    "llama, resharded over two": {"reshard_after_forward": "2"},
    "llama, two blocks a unit": {"wrap": "blocks:2"},
    "llama, the root alone": {"wrap": "root"},
    "llama, the root alone, resharded over two": {"wrap": "root", "reshard_after_forward": "2"},
    "llama, fp32 throughout": {"param_dtype": "fp32", "norm": "fused"},
    "llama, bf16 throughout": {"reduce_dtype": "bf16", "master_dtype": "bf16", "clip_grad_norm": "none"},
    "llama, logits kept": {"keep_logits": True},
    "llama, logits in bf16": {"loss_fp32": False},
    "llama, expandable segments": {"alloc_conf": "expandable_segments:True"},
    "mistral": {"checkpoint": "selective", "gpus": 64},
    "qwen2": {"checkpoint": "selective"},
    "qwen3": {},
    "gpt2": {"checkpoint": "full"},
    "phi3": {"norm": "fused"},
    "mixtral": {"checkpoint": "selective"},
    "mixtral, fewer experts than GPUs": {"gpus": 64},
    "qwen3_moe": {"checkpoint": "full"},
    "qwen3_moe, one GPU": {"gpus": 1, "param_dtype": "fp32"},
    "wide_llama, offloaded": {"offload": "params", "grad_accum": 2},
    "llama, offloaded from one GPU": {"gpus": 1, "offload": "params"},
    "llama, one GPU that accumulates": {"gpus": 1, "param_dtype": "fp32", "grad_accum": 2, "accum_no_sync": True},
    "wide_llama, offloaded HSDP": {"offload": "params", "gpus": 16, "replicas": 2, "optimizer_impl": "fused"},
}


def job_of(case):
    model = str(MODELS / f"{case.split(',')[0]}.json")
    return {"model": model, "gpus": 8, "seq_len": 512, **CASES[case]}


def name_of_inputs(peak):
    """A script does not say which tensors are its batch. The first batch was made before the first step."""
    return "Other" if peak["step"] == 0 else "Activation"


def with_inputs_as(name, categories):
    held = dict(categories)
    if inputs := held.pop("Inputs", 0):
        held[name] = held.get(name, 0) + inputs
    return held


def known(modules, inputs):
    """Rows by path, without the script's wrapper of a checkpointed block. The two languages have different class names."""
    rows = {}
    for module in modules:
        path = ".".join(part for part in module["name"].split(".") if part != "block")
        unit = module["fsdp_unit"] or (path in rows and rows[path]["fsdp_unit"])
        row = {
            **module,
            "name": path,
            "type": None,
            "fsdp_unit": unit,
            "at_peak": with_inputs_as(inputs, module["at_peak"]),
        }
        if path in rows:  # Memory of the wrapper alone is in the wrapper's row.
            row.update({part: rows[path][part] for part in ("at_peak", "total_bytes", "highest_bytes")})
        rows[path] = row
    return rows


def check_contents(ours, theirs):
    assert theirs["attribution"] is None and theirs["defects"] == []
    inputs = name_of_inputs(ours["peak"])
    assert with_inputs_as(inputs, ours["peak"]["categories"]) == theirs["peak"]["categories"]
    assert [ours["peak"][part] for part in ("module", "stage")] == [
        theirs["peak"][part] for part in ("module", "stage")
    ]
    assert known(ours["modules"], inputs) == known(theirs["modules"], inputs)
    causes = {
        (cause["category"], cause["why"]): cause["bytes"] for cause in ours["causes"] if cause["category"] != "Inputs"
    }
    of_run = {(cause["category"], cause["why"]): cause["bytes"] for cause in theirs["causes"]}
    for cause in ours["causes"]:
        if cause["category"] == "Inputs":
            (same,) = (key for key in of_run if key[0] == inputs)
            causes[same] = causes.get(same, 0) + cause["bytes"]
    assert causes == of_run


OF_EACH_MODEL = list({case.split(",")[0]: case for case in reversed(CASES)}.values())


@pytest.mark.parametrize("case", dict.fromkeys([*OF_EACH_MODEL, *needs.some(CASES, 4)]))
def test_plan_and_script_have_equal_bytes_in_each_phase_category_and_module(plimsoll_run, case):
    job = job_of(case)
    ours, run = plan(job), plimsoll_run("--depth", "9", *script_arguments(job))
    assert run.code == 0, run.stderr
    theirs = run.json
    autocast = job["gpus"] == 1 and "param_dtype" not in job and "offload" not in job
    parts = ["active_peak_bytes", "allocated_peak_bytes", "active_end_bytes"]
    if not autocast:  # Autocast frees its cache in no fixed order, which changes the allocator's segments.
        parts += ["reserved_peak_bytes", "reserved_end_bytes"]
    for own, other in zip(ours["steps"], theirs["steps"], strict=True):
        assert set(own["phases"]) == set(other["phases"])
        for phase, peaks in own["phases"].items():
            assert {part: peaks[part] for part in parts} == {part: other["phases"][phase][part] for part in parts}
    books = ["active_bytes", "allocated_bytes", "step", "phase"]
    if not autocast:
        books += ["reserved_bytes", "device_bytes", "segments", "device_parts"]
    assert {book: ours["peak"][book] for book in books} == {book: theirs["peak"][book] for book in books}
    check_contents(ours, theirs)


@pytest.mark.parametrize("case", CASES)
def test_each_byte_of_the_peak_has_a_category_a_cause_and_an_owner(case):
    report = plan(job_of(case))
    active = report["peak"]["active_bytes"]
    assert sum(report["peak"]["categories"].values()) == active
    assert sum(cause["bytes"] for cause in report["causes"]) == active
    for cause in report["causes"]:
        assert sum(owner["bytes"] for owner in cause["owners"]) == cause["bytes"]
    modules = {module["name"]: module for module in report["modules"]}
    outside = [m for m in report["modules"] if m["type"] in ("", "optimizer")]
    assert modules[""]["total_bytes"] + sum(module["total_bytes"] for module in outside) == active
    for module in report["modules"]:
        assert sum(module["at_peak"].values()) == module["total_bytes"]
        assert module["highest_bytes"] <= active
    assert modules[""]["parameters"] == report["model"]["parameters"]
    offloads = CASES[case].get("offload") == "params"
    assert (report["host_bytes"] > 0) == offloads
