"""Running out of memory: where, and what was alive."""

SCRIPT = """
    import torch
    kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(70)]
    model = torch.nn.Linear(1024, 1024).cuda()
    def work():
        y = model(torch.randn(8, 1024, device="cuda"))
        return torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
"""


def test_an_uncaught_one_is_code_3_and_names_the_line(plimsoll_run, script):
    run = plimsoll_run(script(SCRIPT + "    work()\n"))
    assert run.code == 3
    assert run.json["fits"] is False
    oom = run.json["oom"]
    assert oom["requested_bytes"] == 20 << 30
    assert (oom["phase"], oom["function"]) == ("forward", "work")
    assert oom["code"].startswith("return torch.empty(20 << 30")
    assert oom["top"][0]["bytes"] == 70 << 30 and oom["top"][0]["count"] == 70
    assert "out of memory" in run.stderr


CAUGHT = "    try: work()\n    except torch.OutOfMemoryError: print('caught')\n"


def test_one_that_is_caught_and_worked_on_after_is_counted(plimsoll_run, script):
    run = plimsoll_run(script(SCRIPT + CAUGHT + "    model(torch.randn(8, 1024, device='cuda'))\n"))
    assert run.code == 0, run.stderr
    assert run.json["fits"] is True
    assert run.json["oom"] is None and run.json["ooms_handled"] == 1


def test_one_that_is_caught_and_ends_the_work_is_code_3(plimsoll_run, script):
    run = plimsoll_run(script(SCRIPT + CAUGHT))
    assert run.code == 3
    assert run.json["fits"] is False
    assert run.json["oom"]["requested_bytes"] == 20 << 30
    assert run.json["ooms_handled"] == 0
    assert run.json["exit_code"] == 0


def test_in_backward_it_is_the_line_that_called_backward(plimsoll_run, script):
    name = script(
        """
        import torch
        x = torch.randn(1 << 32, device="cuda", requires_grad=True)
        kept = torch.empty(58 << 30, dtype=torch.uint8, device="cuda")
        x.sum().backward()
        """
    )
    oom = plimsoll_run(name).json["oom"]
    assert oom is not None
    assert (oom["phase"], oom["code"]) == ("backward", "x.sum().backward()")
