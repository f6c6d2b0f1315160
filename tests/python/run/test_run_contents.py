"""The live allocations at the peak, to the byte; a script that reads the allocator's state is not disturbed."""

import pickle

import pytest

pytestmark = pytest.mark.warm

MODEL = """
    import torch
    from torch import nn
    model = nn.Sequential(*[nn.Linear(700, 700) for _ in range(6)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        loss = model(torch.randn(300, 700, device="cuda")).square().mean()
        loss.backward()
        optimizer.step(); optimizer.zero_grad()
"""


def check(run):
    assert run.code == 0, run.stderr
    assert run.json["top_total_bytes"] == run.json["peak"]["active_bytes"] > 0
    return run.json


def test_the_lines_add_up_to_the_peak(plimsoll_run, script):
    report = check(plimsoll_run("--top", "1000", script(MODEL + "    for _ in range(3): step()\n")))
    assert sum(line["bytes"] for line in report["top"]) == report["peak"]["active_bytes"]
    codes = [line["code"] for line in report["top"]]
    assert "optimizer.step(); optimizer.zero_grad()" in codes
    assert any(code.startswith("loss = model(") for code in codes)
    gradients = [line for line in report["top"] if line["function"].startswith("autograd: backward in step")]
    assert gradients and gradients[0]["code"] == "loss.backward()"


def test_an_installed_package_run_as_a_module_is_the_users_code(plimsoll_run, tmp_path):
    package = tmp_path / "site-packages" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(999, 999, device='cuda')\n"
    )
    (package / "train.py").write_text("from trainer import model\nkept = model.make()\n")
    report = check(plimsoll_run("-m", "trainer.train", env={"PYTHONPATH": str(package.parent)}))
    assert report["top"][0]["code"] == "return torch.nn.Linear(999, 999, device='cuda')"


@pytest.mark.parametrize(
    "settings", ["", "expandable_segments:True", "max_split_size_mb:20", "roundup_power2_divisions:4"]
)
def test_odd_sizes_add_up_too(plimsoll_run, script, settings):
    name = script(
        """
        import random, torch
        random.seed(1); live = []
        for i in range(3000):
            size = random.choice([1, 700, 5_000, 300_000, 1_100_000, 3_000_001, 11_000_000, 70_000_000])
            live.append(torch.empty(random.randint(1, size), dtype=torch.uint8, device="cuda"))
            if len(live) > 60: live.pop(random.randrange(len(live)))
        """
    )
    check(plimsoll_run(*(("--alloc-conf", settings) if settings else ()), name))


def test_a_long_run_keeps_an_early_peak(plimsoll_run, script):
    name = script(
        """
        import torch
        model = torch.nn.Linear(64, 64).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def step(size):
            big = torch.empty(size, device="cuda")
            model(torch.randn(8, 64, device="cuda")).sum().backward()
            for _ in range(500): torch.empty(1000, device="cuda")
            optimizer.step()
        for i in range(300): step(1 << (24 if i == 20 else 20))
        """
    )
    report = check(plimsoll_run(name))
    assert report["peak"]["step"] == 20
    assert report["top"][0]["code"] == 'big = torch.empty(size, device="cuda")'
    steps = report["steps"]
    assert any(step["step"] == 20 for step in steps) and steps[-1]["step"] == 299


def test_the_scripts_own_history_and_snapshots_are_not_disturbed(plimsoll_run, script):
    name = script(
        MODEL
        + """
    step()
    plain = torch.cuda.memory._snapshot()
    assert plain["device_traces"] == [[]] * len(plain["device_traces"])
    assert all(block["frames"] == [] for segment in plain["segments"] for block in segment["blocks"])
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    mine = torch.empty(12345, device="cuda")
    del mine
    own = torch.cuda.memory._snapshot()["device_traces"][0]
    own = [entry for entry in own if entry["action"] in ("alloc", "free_requested", "free_completed")]
    assert [entry["action"] for entry in own] == ["alloc", "free_requested", "free_completed"], own
    assert own[0]["size"] == 4 * 12345 and own[0]["frames"]
    torch.cuda.memory._record_memory_history(None)
    assert not any(torch.cuda.memory._snapshot()["device_traces"])
    step(); step()
    """
    )
    check(plimsoll_run(name))


def test_a_script_that_records_before_cuda_init_gets_its_history_and_we_keep_ours(plimsoll_run, script):
    name = script(
        """
    import torch
    record = torch.cuda.memory._record_memory_history
    def actions():
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        assert all(entry["frames"] for entry in trace if entry["action"] == "alloc")
        return {entry["action"] for entry in trace if entry["action"] != "snapshot"}
    record(max_entries=100000)
    assert not torch.cuda.is_initialized()
    """
        + MODEL
        + """
    step()
    assert {"alloc", "free_completed"} <= actions()
    record(clear_history=True, skip_actions=["free_completed"], max_entries=1000)
    assert actions() == set()
    record(None); record(skip_actions=["free_completed"])
    assert torch.cuda.memory._snapshot()["device_traces"][0] == [], "our own look at the history is not the script's"
    step()
    assert "alloc" in actions() and "free_completed" not in actions()
    torch.cuda.reset_accumulated_memory_stats()
    big = torch.empty(3 << 20, device="cuda")
    step()
    """
    )
    report = check(plimsoll_run("--top", "1000", name))
    assert sum(line["bytes"] for line in report["top"]) == report["peak"]["active_bytes"]
    assert report["defects"] == []


def test_the_scripts_own_peaks_are_not_disturbed(plimsoll_run, script):
    name = script(
        """
        import torch
        model = torch.nn.Linear(512, 512).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        big = torch.empty(1 << 26, device="cuda"); high = torch.cuda.memory_allocated(); del big
        for _ in range(2):
            model(torch.randn(8, 512, device="cuda")).sum().backward(); optimizer.step(); optimizer.zero_grad()
        assert torch.cuda.max_memory_allocated() == high
        assert torch.cuda.memory_stats()["allocated_bytes.large_pool.peak"] >= 1 << 28
        if hasattr(torch.accelerator, "max_memory_allocated"):
            assert torch.accelerator.max_memory_allocated() == high
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated() < high
        x = torch.empty(1 << 20, device="cuda"); mark = torch.cuda.memory_allocated(); del x
        optimizer.step()
        assert torch.cuda.max_memory_allocated() == mark
        """
    )
    report = check(plimsoll_run(name))
    assert report["peak"]["active_bytes"] >= 1 << 28


def test_snapshot_writes_a_file_that_memory_viz_opens(plimsoll_run, script, tmp_path):
    check(plimsoll_run("--snapshot", "memory.pickle", script(MODEL + "    step(); step()\n")))
    with open(tmp_path / "memory.pickle", "rb") as file:
        snapshot = pickle.load(file)
    assert snapshot["segments"] and any(entry["frames"] for entry in snapshot["device_traces"][0])


def test_the_async_allocator_is_watched_without_contents(plimsoll_run, script):
    run = plimsoll_run("--alloc-conf", "backend:cudaMallocAsync", script(MODEL + "    step(); step()\n"))
    assert run.code == 0, run.stderr
    assert len(run.json["steps"]) == 2 and run.json["top"] == []
    assert run.json["peak"]["reserved_bytes"] > 0


def test_pinned_memory_of_the_host_is_counted_at_its_peak(plimsoll_run, script):
    name = script(
        """
        import torch
        x = torch.ones(8, device="cuda")
        kept = torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True)  # torch takes powers of two
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr
    assert run.json["host_pinned_bytes"] == 4 << 20
    assert "Pinned host memory: 4.00 MiB at its peak" in run.stdout
