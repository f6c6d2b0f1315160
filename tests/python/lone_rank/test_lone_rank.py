"""torch.distributed alone in one process: any rank of any world size, never waiting for a peer."""

import ast
import json

import needs
import pytest

pytestmark = pytest.mark.warm

SCRIPT = needs.PYTHON_PROGRAMS / "lone_rank/lone_rank_checks.py"

# All checks of a rank run in one process, because each run imports torch. The script has the checks.
EVERYWHERE = ["initialises_with_every_backend", "collectives_of_tensors_complete"]
SPLITS = ["groups_meshes_and_splits"]  # first: torch splits a later default group only if it knows its ranks
OBJECTS = ["object_collectives_return_what_a_lone_rank_can_know"]
LATER_PARTS = ["a_rank_saves_its_part_of_a_checkpoint", "pipeline_stages_run_with_what_they_can_know"]
CHECKS = {
    (0, 1): EVERYWHERE + OBJECTS,
    (0, 8): ["meshes_of_a_group_with_two_backends", *OBJECTS, *LATER_PARTS],
    (3, 8): [
        *SPLITS,
        "a_later_default_group_that_was_told_its_ranks_can_be_split",
        *EVERYWHERE,
        *OBJECTS,
        "timeouts_of_every_backend_can_be_changed",
        "every_rendezvous_returns_at_once_and_makes_no_file",
        "stores_do_not_wait",
        "stores_have_only_the_keys_that_were_set_or_waited_for",
        "hash_stores_are_torchs_own_but_for_the_groups",
        "no_thread_of_nccls_asks_the_store",
        "stores_are_thread_safe",
        "objects_take_the_device_memory_that_torch_takes",
        "cpu_collectives_see_peers_that_hold_the_same",
        "cpu_reductions_are_of_peers_that_hold_the_same",
        "monitored_barrier_is_for_gloo_only_as_ever",
        "the_fake_backend_is_left_alone",
        *LATER_PARTS,
    ],
    (5, 64): [
        "ddp_rebuilds_its_buckets_as_with_peers",
        "ddp_on_the_cpu_has_the_gradients_of_its_module",
        "a_script_may_leave_its_groups",
    ],
    (16383, 16384): SPLITS + EVERYWHERE,
}

_runs = {}


@pytest.fixture
def checked(plimsoll_run):
    """The outcome of each check of a rank. All checks run when the first outcome is needed."""

    def outcomes(rank, world):
        if (rank, world) not in _runs:
            where = ["--world-size", world, "--rank", rank]
            _runs[rank, world] = plimsoll_run(*where, SCRIPT, *CHECKS[rank, world])
        run = _runs[rank, world]
        assert run.code == 0, run.stderr
        lines = [line.split(" ", 1)[1] for line in run.stdout.splitlines() if line.startswith("check ")]
        return dict(json.loads(line) for line in lines)

    return outcomes


@pytest.mark.parametrize("rank, world, check", [(*place, check) for place in CHECKS for check in CHECKS[place]])
def test_lone_rank(checked, rank, world, check):
    outcome = checked(rank, world).get(check, "the check was not reached")
    assert outcome is None, outcome


def test_each_check_runs_on_some_rank():
    written = set()
    for part in ("collectives", "groups", "parts", "stores"):  # the order of lone_rank_checks.py
        body = ast.parse(SCRIPT.with_name(f"lone_rank_{part}.py").read_text(encoding="utf-8")).body
        written |= {node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    assert written == {check for checks in CHECKS.values() for check in checks}


PIPELINE = """
    import os, torch, torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=device)
    stage = PipelineStage(torch.nn.Linear(64, 64, device=device), rank, world, device)
    schedule = Schedule1F1B(stage, 8, loss_fn=torch.nn.functional.mse_loss)
    batch = torch.randn(16, 64, device=device)
    schedule.step(*([batch] if stage.is_first else []), **({"target": batch} if stage.is_last else {}))
    infos = [info for infos in stage.args_recv_info.values() for info in infos]
    print("received", [tuple(info.buffer.shape) for info in infos if info.buffer is not None])
"""


def test_a_pipeline_stage_learns_its_input_from_a_run_of_the_first_stage(plimsoll_run, script, tmp_path):
    name = script(PIPELINE)
    env = {"PLIMSOLL_STAGES": str(tmp_path / "stages")}
    alone = plimsoll_run("--world-size", 4, "--rank", 3, name, env=env)
    assert alone.code == 1 and "PLIMSOLL_STAGES=FILE" in alone.stderr
    for rank, received in ((0, []), (1, [(2, 64)] * 8), (3, [(2, 64)] * 8)):
        run = plimsoll_run("--world-size", 4, "--rank", rank, name, env=env)
        assert run.code == 0, run.stderr
        assert f"received {received}" in run.stdout
    other = plimsoll_run("--world-size", 8, "--rank", 3, name, env=env)
    assert "is from a pipeline of 4 stages, but this one has 8" in other.stderr


LATE = """
    import torch, torch.distributed as dist
    device = torch.device("cuda", 1)
    dist.init_process_group("nccl", device_id=device)
    dist.all_reduce(torch.ones(1024, device=device))
    {leave}
"""


@pytest.mark.parametrize("leave", ["dist.destroy_process_group()", "pass"])
def test_a_script_ends_although_its_last_events_are_late(plimsoll_run, script, leave):
    """No launch follows when NCCL's watchdog waits for the end of the last collective."""
    run = plimsoll_run("--world-size", 2, "--rank", 1, "--event-lag", 50, script(LATE.format(leave=leave)), timeout=120)
    assert run.code == 0, run.stderr


FSDP1 = needs.PYTHON_PROGRAMS / "lone_rank/lone_rank_fsdp1.py"


@pytest.mark.parametrize("rank, world", [(0, 2), (1, 2), (63, 64)])
def test_each_state_dict_of_fsdp1_is_complete_and_loads_again(plimsoll_run, rank, world):
    run = plimsoll_run("--world-size", world, "--rank", rank, FSDP1)
    assert run.code == 0, run.stderr
    assert "passed 24" in run.stdout


COMPRESSED = """
    import time, torch, torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    layers = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(4))).cuda()
    model = torch.nn.parallel.DistributedDataParallel(layers, device_ids=[0], gradient_as_bucket_view=True)
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        torch.cuda.reset_peak_memory_stats()
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())
        time.sleep({sleep})
    dist.destroy_process_group()
"""


def test_gradient_compression_takes_the_same_memory_at_each_event_lag(plimsoll_run, script):
    peaks, steps = set(), set()
    for sleep in (0, 0.3):
        run = plimsoll_run("--world-size", 4, script(COMPRESSED.format(sleep=sleep)))
        assert run.code == 0, run.stderr
        peaks.add(run.json["peak"]["active_bytes"])
        steps.add(tuple(line for line in run.stdout.splitlines() if line.startswith("step")))
    assert len(peaks) == 1, peaks
    assert len(steps) == 1, steps
    compressed = 2 * 4 * 1024 * 1024
    _, *later = [[int(word) for word in line.split()[1:]] for line in steps.pop()]
    assert len({kept for _, kept in later}) == 1, later
    # A step's compressed bucket lives until the next step's first bucket is reduced, and both exist then.
    parameters = gradients = 2 * compressed
    workspace = later[0][1] - parameters - gradients - compressed
    assert workspace % (32 << 20) == 0, workspace
