"""Plans against tests/golden/training, recordings of the real CUDA torch, phase by phase."""

import json

import pytest
from golden import FOLDER, cases
from planner import plan, why_no_plan

REASON = why_no_plan()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
GPU = FOLDER / "golden-gpu.json"
PHASES = {"fwd": "forward", "bwd": "backward", "ste": "optimizer"}
PARTS = {
    "active_peak_bytes": "peak_active",
    "allocated_peak_bytes": "peak_alloc",
    "reserved_peak_bytes": "peak_reserved",
}
ONE_BLOCK = 512  # bytes of the first gradient


def is_a_plan(config):
    """A job has no other models, attention kinds, dropout or compilation."""
    plain = config["gqa"] == "repeat" and config["sdpa"] == "flash" and not config["dropout"]
    return config["model"] != "mlp" and plain


def config_json(c):
    if c["model"] == "gpt2":
        sizes = {"n_positions": c["seq"], "n_embd": c["dim"], "n_layer": c["layers"], "n_head": c["heads"]}
        return {"model_type": "gpt2", "vocab_size": c["vocab"], "tie_word_embeddings": c["tied"], **sizes}
    return {
        "model_type": "llama",
        "vocab_size": c["vocab"],
        "hidden_size": c["dim"],
        "intermediate_size": c["ffn"],
        "num_hidden_layers": c["layers"],
        "num_attention_heads": c["heads"],
        "num_key_value_heads": c["kv_heads"],
    }


def job_of(golden, model):
    c, env = golden["config"], golden["env"]
    job = {
        "model": str(model),
        "gpus": c["world"],
        "batch": c["bs"],
        "seq_len": c["seq"],
        "steps": c["steps"],
        "norm": {"fused": "fused", "titan": "composite"}[c["norm"]],
        "checkpoint": {"none": "none", "full": "full", "op": "selective"}[c["ac"]],
        "keep_logits": not c["del_pred"],
        "optimizer_impl": c["opt"],
        "grad_accum": c["accum"],
        "loss_fp32": c["float_logits"],
        "reshard_after_forward": "auto" if c["raf"] else "never",
    }
    if c["world"] == 1 and not c["autocast"]:
        job["param_dtype"] = "fp32"
    if env["FAKEGPU_TOTAL"]:
        job["gpu_memory"] = env["FAKEGPU_TOTAL"]
    if env["PYTORCH_CUDA_ALLOC_CONF"]:
        job["alloc_conf"] = env["PYTORCH_CUDA_ALLOC_CONF"]
    return job


def peaks_of(golden):
    """The maximum of each phase of a step; with accumulation a phase occurs several times."""
    found = {}
    for phase in golden["phases"]:
        name = PHASES.get(phase["phase"][:3])
        if name is None:
            continue
        peaks = found.setdefault((phase["step"], name), dict.fromkeys(PARTS, 0))
        for ours, theirs in PARTS.items():
            peaks[ours] = max(peaks[ours], phase[theirs])
        if name == "forward":
            # The recording's border is before the first gradient is allocated, ours after it.
            for ours, end in (("active_peak_bytes", "end_active"), ("allocated_peak_bytes", "end_alloc")):
                peaks[ours] = max(peaks[ours], phase[end] + ONE_BLOCK)
    return found


PLANS = {
    case.name: case for case in cases("training") if is_a_plan(case.read()["config"]) and "compiled" not in case.name
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_equals_the_recording(tmp_path, name):
    golden = PLANS[name].read()
    model = tmp_path / "config.json"
    model.write_text(json.dumps(config_json(golden["config"])))
    report = plan(job_of(golden, model), GPU)
    if golden["error"] is not None:
        assert not report["fits"]
        assert (report["oom"]["step"], report["oom"]["phase"]) == (0, "forward")
        return
    assert report["fits"]
    assert report["alloc_retries"] == golden["phases"][-1]["retries"]
    ours = {
        (step["step"], phase): {part: peaks[part] for part in PARTS}
        for step in report["steps"]
        for phase, peaks in step["phases"].items()
        if phase in PHASES.values()
    }
    assert ours == peaks_of(golden)
