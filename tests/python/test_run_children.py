"""Processes that a script starts: spawned ones are watched, forked ones left alone, other programs never touched."""

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
