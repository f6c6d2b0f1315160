"""Read-backs give zeros: the report names the lines that read, and those that decided a shape."""

import pytest

pytestmark = pytest.mark.warm


def test_readbacks_are_reported_by_line_operator_and_use(plimsoll_run, script):
    name = script(
        """
        import threading, torch
        x = torch.ones(8, device="cuda")
        for _ in range(3):
            x.sum().item()
        rows = x[x > 0]
        n = x.cpu()
        y = torch.zeros(int(x.sum().item()) + 2)
        z = torch.unique(x)
        if x.max() > 3: pass
        def read():
            for _ in range(100): x.mean().item()
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr
    lines = {line["code"]: line for line in run.json["read_back_lines"]}
    item = lines["x.sum().item()"]
    assert (item["count"], item["bytes"], item["op"], item["decided_shape"]) == (3, 12, "aten::item", False)
    assert lines["rows = x[x > 0]"]["decided_shape"] and lines["rows = x[x > 0]"]["op"] == "aten::nonzero"
    assert not lines["n = x.cpu()"]["decided_shape"]
    assert lines["y = torch.zeros(int(x.sum().item()) + 2)"]["decided_shape"]
    assert not lines["if x.max() > 3: pass"]["decided_shape"]
    assert lines["for _ in range(100): x.mean().item()"]["count"] == 400
    assert sum(line["count"] for line in run.json["read_back_lines"]) == run.json["read_backs"]


def test_a_readback_is_followed_to_the_shape_that_it_decides(plimsoll_run, script):
    """Within a function; test_run_shape_use.py has each path of a value."""
    name = script(
        """
        import torch
        x = torch.ones(8, 8, device="cuda")
        class Model:
            def forward(self):
                self.n = int(x.sum())
                return torch.zeros(self.n, device="cuda")
            def loss(self):
                value = x.mean().item()
                print(f"loss {value:.2f}")
        n = int((x > 0).sum())
        rows, columns = x.amax(0)[:2].tolist()
        padded = 8 * (n // 8 + 1)
        y = torch.zeros(padded), x[:, : int(columns)]
        Model().forward()
        Model().loss()
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr
    decided = {line["code"]: line["decided_shape"] for line in run.json["read_back_lines"]}
    assert decided == {
        "self.n = int(x.sum())": True,
        "value = x.mean().item()": False,
        "n = int((x > 0).sum())": True,
        "rows, columns = x.amax(0)[:2].tolist()": True,
    }
    assert run.stdout.count("decided a shape") == 3
    assert "warning: a value read at train.py:11 <module> (aten::item) decided a shape" in run.stdout


def test_a_readback_keeps_nothing_alive(plimsoll_run, script):
    """The callers' objects are freed with their frames, and do not wait for the cycle collector."""
    name = script(
        """
        import gc, torch
        gc.disable()
        def read():
            held = torch.ones(2**20, device="cuda")
            return held.sum().item()
        read()
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == 0, torch.cuda.memory_allocated()
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr
