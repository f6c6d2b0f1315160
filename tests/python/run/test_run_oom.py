"""Running out of memory: the line, and the live allocations."""

import pytest

pytestmark = pytest.mark.warm

SCRIPT = """
    import torch
    kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(70)]
    model = torch.nn.Linear(1024, 1024).cuda()
    def work():
        y = model(torch.randn(8, 1024, device="cuda"))
        return torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
"""


def test_an_uncaught_out_of_memory_has_code_3_and_names_the_line(plimsoll_run, script):
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


def test_a_caught_out_of_memory_followed_by_work_is_counted(plimsoll_run, script):
    run = plimsoll_run(script(SCRIPT + CAUGHT + "    model(torch.randn(8, 1024, device='cuda'))\n"))
    assert run.code == 0, run.stderr
    assert run.json["fits"] is True
    assert run.json["oom"] is None and run.json["ooms_handled"] == 1


def test_a_caught_out_of_memory_that_ends_the_work_has_code_3(plimsoll_run, script):
    run = plimsoll_run(script(SCRIPT + CAUGHT))
    assert run.code == 3
    assert run.json["fits"] is False
    assert run.json["oom"]["requested_bytes"] == 20 << 30
    assert run.json["ooms_handled"] == 0
    assert run.json["exit_code"] == 0


def test_out_of_memory_in_backward_names_the_line_that_called_backward(plimsoll_run, script):
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


# -- beside the caching allocator ----------------------------------------------------------------------------------------


def test_cuda_malloc_async_reports_the_request_and_the_bytes_on_the_device(plimsoll_run, script):
    name = script(SCRIPT.replace("20 << 30", "(20 << 30) + 7") + "    work()\n")
    run = plimsoll_run("--alloc-conf", "backend:cudaMallocAsync", name)
    assert run.code == 3 and run.json["fits"] is False
    oom = run.json["oom"]
    assert oom["requested_bytes"] == (20 << 30) + 7  # the message says 20.00 GiB
    assert (oom["phase"], oom["function"]) == ("forward", "work")
    parts = oom["device_parts"]
    assert 70 << 30 < parts["segments"] < 71 << 30 and parts["context"] > 0
    assert oom["device_free_bytes"] == oom["device_total_bytes"] - sum(parts.values()) < oom["requested_bytes"]
    assert "20.00 GiB requested" in run.stdout and "Does not fit" in run.stdout


def test_a_limit_that_the_script_sets_is_not_reported_as_the_devices(plimsoll_run, script):
    name = script(
        """
        import torch
        try: torch.empty(90 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError: pass
        torch.cuda.set_per_process_memory_fraction(0.5)
        torch.empty(50 << 30, dtype=torch.uint8, device="cuda")
        """
    )
    run = plimsoll_run("--alloc-conf", "backend:cudaMallocAsync", name)
    assert run.code == 3
    assert run.json["oom"]["requested_bytes"] == 50 << 30


FULL = """
    import os, torch
    import torch.distributed as dist
    a = torch.ones(8, 8, device="cuda")
    try: torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError: pass
    free = torch.cuda.mem_get_info()[0]
    kept = torch.empty(free - (4 << 20), dtype=torch.uint8, device="cuda")
"""
CONTEXT, CUBLAS_HANDLE, NCCL_BASE = 545259520, 33554432, 201326592  # the total of profile H100-80GB


def check_full(run, code, requested):
    assert run.code == 3 and run.json["fits"] is False, run.stderr
    oom = run.json["oom"]
    assert (oom["code"], oom["requested_bytes"]) == (code, requested)
    assert oom["device_parts"]["context"] == CONTEXT and 70 << 30 < oom["device_parts"]["segments"]
    assert oom["device_free_bytes"] < 5 << 20
    assert oom["top"][0]["code"].startswith("kept = ") and oom["top"][0]["bytes"] > 70 << 30
    assert run.json["ooms_handled"] == 1  # the earlier one, which the script handled


def test_a_communicator_without_room_is_out_of_memory(plimsoll_run, script):
    name = script(FULL + "    dist.init_process_group('nccl')\n    dist.all_reduce(a)\n")
    run = plimsoll_run("--world-size", "8", name)
    check_full(run, "dist.all_reduce(a)", NCCL_BASE)
    assert run.json["oom"]["device_parts"]["nccl"] == 0
    assert "192.00 MiB requested" in run.stdout


def test_a_library_handle_without_room_is_out_of_memory(plimsoll_run, script):
    run = plimsoll_run(script(FULL + "    a @ a\n"))
    check_full(run, "a @ a", CUBLAS_HANDLE)
    assert "ALLOC_FAILED" in run.json["oom"]["message"]


def test_an_error_that_only_mentions_out_of_memory_is_not_one(plimsoll_run, script):
    run = plimsoll_run(
        script("import torch\ntorch.ones(8, device='cuda')\nraise RuntimeError('out of memory, said I')\n")
    )
    assert run.code == 1 and run.json["oom"] is None and run.json["fits"] is True
