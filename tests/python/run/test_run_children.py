"""Processes that a script starts: those that train are watched, however they started; the others are left alone."""

import pytest

WORKER = """
    import os, sys, torch
    import torch.multiprocessing as mp
    def work(rank):
        model = torch.nn.Linear(1024, 1024).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2 + rank):
            model(torch.randn(8, 1024, device="cuda")).sum().backward(); optimizer.step()
        torch.empty((1 + rank) << 28, dtype=torch.uint8, device="cuda")
"""


def test_spawned_processes_are_watched(plimsoll_run, script):
    run = plimsoll_run(script(WORKER + "    if __name__ == '__main__': mp.spawn(work, nprocs=2)\n"))
    assert run.code == 0, run.stderr
    assert run.json["processes"] == 2
    assert run.json["peak"]["active_bytes"] >= 2 << 28
    assert len(run.json["steps"]) == 3


def test_a_forked_process_that_trains_is_watched_but_not_its_data_loaders(plimsoll_run, script):
    name = script(
        WORKER
        + """
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 32
        def __getitem__(self, i): return torch.ones(1024)
    def train():
        assert torch.cuda.is_initialized() is False
        work(1)
        for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2): batch.cuda()
    if __name__ == "__main__":
        torch.nn.Linear(8, 8)(torch.ones(8))  # of the parent, on the CPU
        child = mp.get_context("fork").Process(target=train)
        child.start(); child.join()
        assert child.exitcode == 0
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr
    assert run.json["processes"] == 1 and run.json["defects"] == []
    assert [step["step"] for step in run.json["steps"]] == [0, 1, 2]
    assert run.json["top_total_bytes"] == run.json["peak"]["active_bytes"] >= 2 << 28


DYING = """
    import os, subprocess, sys, torch
    import torch.multiprocessing as mp
    def work(rank):
        try: kept = [torch.empty(1 << 32, dtype=torch.uint8, device="cuda") for _ in range(40)]
        finally: torch.ones(8, device="cuda")  # work after it does not mean that it was dealt with
"""
STARTED_BY = {
    "spawn": "if __name__ == '__main__': mp.spawn(work, nprocs=1)",
    "fork": "if os.fork() == 0: work(0)\n    else: os.wait()",
    "another Python": "work(0) if sys.argv[1:] else subprocess.run([sys.executable, __file__, 'work'])",
}


@pytest.mark.parametrize("way", STARTED_BY)
def test_a_process_out_of_memory_fails_the_run(plimsoll_run, script, way):
    run = plimsoll_run(script(DYING + f"    {STARTED_BY[way]}\n"))
    assert run.code == 3, run.stderr
    assert run.json["fits"] is False and "Does not fit" in run.stdout
    assert run.json["oom"]["requested_bytes"] == 4 << 30 and "out of memory" in run.json["oom"]["message"]
    assert run.json["oom"]["code"].startswith("try: kept = ") and run.json["ooms_handled"] == 0


def test_data_loader_workers_are_left_alone(plimsoll_run, script):
    name = script(
        """
        import torch
        from torch.utils.data import DataLoader
        model = torch.nn.Linear(16, 16).cuda(); inner = torch.nn.Linear(16, 16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 32
            def __getitem__(self, i):
                with torch.no_grad(): return inner(torch.ones(16))
        for batch in DataLoader(Data(), batch_size=8, num_workers=2):
            model(batch.cuda()).sum().backward(); optimizer.step()
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr
    assert run.json["processes"] == 1 and len(run.json["steps"]) == 4


def test_the_users_own_sitecustomize_still_runs(plimsoll_run, script, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.mine = 1\n")
    name = script(
        """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "print('child', mine, sys.path)" .replace("print(", "import sys; print(")],
                             capture_output=True, text=True).stdout)
        """
    )
    run = plimsoll_run(name, env={"PYTHONPATH": str(tmp_path / "site")})
    assert run.code == 0, run.stderr
    assert "child 1" in run.stdout and "activation" not in run.stdout


def test_sharing_a_tensor_with_another_process_is_refused_by_name_and_reported(plimsoll_run, script):
    name = script(
        """
        import torch
        import torch.multiprocessing as mp
        x = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        mine, others = mp.Pipe()
        mine.send(x)
        """
    )
    run = plimsoll_run(name)
    assert run.code == 1
    assert "plimsoll: cudaIpcGetMemHandle is not implemented by the pretend GPU; the call failed" in run.stderr
    assert run.json["unpretended"] == ["cudaIpcGetMemHandle"]
    assert "cudaIpcGetMemHandle is not implemented by Plimsoll" in run.json["error"]["message"]
    assert run.json["complete"] and run.json["peak"]["active_bytes"] == 1 << 28
