"""The observer's values of `plimsoll run` against a golden run: equal wherever the borders of phases coincide."""

# loss.backward() allocates the scalar gradient of the loss before autograd's engine starts, and frees it after the end. Golden runs
# count it in backward, the observer in the phases around it.
ROOT_GRADIENT = 512


def check_observer(recorded, report):
    """Compares the observer's values with the phases of the golden run."""
    steps = sorted({phase["step"] for phase in recorded["phases"]} - {-1})
    assert [step["step"] for step in report["steps"]] == steps
    check_before(recorded, report["before_steps"])
    for step in report["steps"]:
        check_step([phase for phase in recorded["phases"] if phase["step"] == step["step"]], step)
    for book, golden_book in (("active", "active"), ("allocated", "alloc"), ("reserved", "reserved")):
        assert report["peak"][f"{book}_bytes"] == max(phase[f"peak_{golden_book}"] for phase in recorded["phases"])
    check_device(recorded, report["peak"], report["gpu"]["memory_bytes"])


def check_device(recorded, peak, memory):
    """The golden GPU has no context or other overhead, so the device book equals the reserved book."""
    expandable = "expandable_segments:True" in recorded["env"].get("PYTORCH_CUDA_ALLOC_CONF", "")
    if expandable and recorded["phases"][-1]["retries"]:
        # A segment grows page by page: pages made before a failure were on the device, but never in a book.
        assert peak["reserved_bytes"] <= peak["device_bytes"] <= memory
    else:
        assert peak["device_bytes"] == peak["reserved_bytes"]


def check_before(recorded, before):
    """The time until the first forward: golden runs call it init and zero_grad; it includes the first inputs."""
    config, (init, zero_grad) = recorded["config"], recorded["phases"][:2]
    if config["model"] == "mlp":
        inputs = 4 * config["bs"] * config["mlp"][0]
    else:
        inputs = 2 * 8 * config["bs"] * config["seq"]  # int64 tokens and targets
    assert before["active_peak_bytes"] == max(init["peak_active"], zero_grad["end_active"] + inputs)


def check_step(phases, step):
    def peak(book, *kinds):
        return max(phase[f"peak_{book}"] for phase in phases if phase["phase"].rstrip("0123456789") in kinds)

    def end(book, kind):
        return [phase for phase in phases if phase["phase"].rstrip("0123456789") == kind][-1][f"end_{book}"]

    every = {phase["phase"].rstrip("0123456789") for phase in phases}
    assert step["active_peak_bytes"] == peak("active", *every)
    assert step["allocated_peak_bytes"] == peak("alloc", *every)
    assert step["reserved_peak_bytes"] == peak("reserved", *every)

    forward, backward, optimizer = (step["phases"][kind] for kind in ("forward", "backward", "optimizer"))
    last = max(phase["end_active"] for phase in phases if phase["phase"].startswith("fwd"))
    assert forward["active_peak_bytes"] == max(peak("active", "fwd"), last + ROOT_GRADIENT)
    assert forward["active_end_bytes"] == end("active", "fwd") + ROOT_GRADIENT
    assert backward["active_peak_bytes"] == peak("active", "bwd")
    assert backward["active_end_bytes"] == end("active", "bwd") + ROOT_GRADIENT
    assert optimizer["active_peak_bytes"] == peak("active", "step")
    assert optimizer["allocated_peak_bytes"] == peak("alloc", "step")
    assert optimizer["active_end_bytes"] == end("active", "step")
    for kind, phase in (("fwd", forward), ("bwd", backward), ("step", optimizer)):
        assert phase["reserved_peak_bytes"] == peak("reserved", kind)
        assert phase["reserved_end_bytes"] == end("reserved", kind)
