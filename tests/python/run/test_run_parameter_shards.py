"""A parameter's shards equal torch's, and their cost does not depend on the number of ranks."""

import json

import pytest

pytestmark = pytest.mark.warm

PIECES = """
    import itertools, json
    import torch
    from torch.distributed.fsdp._fully_shard import _fsdp_param

    ours = _fsdp_param._chunk_with_empty
    torchs = ours.__wrapped__


    class Subclass(torch.Tensor):
        pass


    def seen(pieces):
        return [[list(one.shape), list(one.stride()), one.storage_offset(), one.data_ptr(), str(one.dtype)] for one in pieces]


    answers = {"ours": [], "torchs": []}
    for size, dim in itertools.product([(1,), (7,), (8,), (9, 4), (4, 9), (0, 3), (3, 0), (5, 6, 7)], range(3)):
        if dim >= len(size):
            continue
        for base in (torch.empty(size, device="cuda"), torch.nn.Parameter(torch.empty(size, dtype=torch.bfloat16))):
            for number in (1, 2, 3, 5, 8, 100):
                for name, cut in (("ours", ours), ("torchs", torchs)):
                    pieces = cut(base, number, dim)
                    assert len(pieces) == number
                    answers[name].append([seen(pieces), seen([pieces[0], pieces[number - 1], pieces[-1]])])
    for wrong in (number, -number - 1):
        try:
            ours(torch.empty(6), number, 0)[wrong]
            raise SystemExit("no such piece, and no IndexError")
        except IndexError:
            pass
    answers["types"] = [type(ours(one, 4, 0)).__name__ for one in (torch.empty(8), torch.empty(8).as_subclass(Subclass))]
    for cut in (ours, torchs):
        try:
            cut(torch.empty(()), 2, 0)
        except RuntimeError as error:
            answers.setdefault("refused", []).append(str(error))
    print(json.dumps(answers))
"""

STRIDED = """
    import itertools, json
    import torch
    from torch.distributed.tensor.placement_types import _StridedShard, _StridedShardOffsetMode

    ours = _StridedShard.local_shard_size_and_offset
    torchs = ours.__wrapped__
    answers = {"ours": [], "torchs": []}
    cuts = []
    split = _StridedShard._split_tensor
    _StridedShard._split_tensor = lambda *given, **named: (cuts.append(1), split(*given, **named))[1]
    for size, factor, number in itertools.product((0, 1, 7, 8, 9, 64, 100), (1, 2, 3, 8), (1, 2, 4, 7)):
        for rank, mode in itertools.product(range(number), _StridedShardOffsetMode):
            for name, count in (("ours", ours), ("torchs", torchs)):
                before = len(cuts)
                answers[name].append(count(_StridedShard(0, split_factor=factor), size, number, rank, mode))
                assert (len(cuts) > before) == (name == "torchs")
    for size, factor, rank in ((16, 2, 4), (16, 2, -1), (16, 0, 0), (16, -1, 0), (-1, 2, 0)):  # What torch makes of it is torch's.
        for name, count in (("ours", ours), ("torchs", torchs)):
            try:
                answers[name].append(count(_StridedShard(0, split_factor=factor), size, 4, rank))
            except Exception as error:
                answers[name].append(f"{type(error).__name__}: {error}")
    before = len(cuts)
    with torch.device("cuda"):  # Here torch's indices are on the device, and are left there.
        ours(_StridedShard(0, split_factor=2), 16, 4, 0, _StridedShardOffsetMode.NONE)
    torch.set_default_tensor_type("torch.cuda.FloatTensor")  # the same, by another door
    ours(_StridedShard(0, split_factor=2), 16, 4, 0, _StridedShardOffsetMode.NONE)
    answers["on the device"] = len(cuts) - before
    print(json.dumps(answers))
"""

SHARDED = """
    import json
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            self.calls += 1
            return op(*args, **(kwargs or {}))

    dist.init_process_group("nccl")
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4))).cuda()
    with Count() as count:
        fully_shard(model, mesh=init_device_mesh("cuda", (dist.get_world_size(),)))
    print(json.dumps({"operators": count.calls, "local": [list(one.to_local().shape) for one in model.parameters()]}))
"""


def answered(run):
    assert run.code == 0, run.stderr
    return json.loads(run.stdout.splitlines()[0])


def test_shards_equal_torchs(plimsoll_run, script):
    answers = answered(plimsoll_run("--quiet", script(PIECES)))
    assert answers["ours"] == answers["torchs"]
    assert len({json.dumps(answer) for answer in answers["torchs"]}) > 50
    assert answers["types"] == ["Shards", "list"]
    assert len(answers["refused"]) == 2 and len(set(answers["refused"])) == 1


def test_strided_shard_offsets_equal_torchs(plimsoll_run, script):
    answers = answered(plimsoll_run("--quiet", script(STRIDED)))
    assert answers["ours"] == answers["torchs"]
    assert len({json.dumps(answer) for answer in answers["torchs"]}) > 50
    assert answers["on the device"] == 2


def test_sharding_runs_the_same_number_of_operators_for_any_number_of_ranks(plimsoll_run, script):
    path = script(SHARDED)
    few, many = (answered(plimsoll_run("--quiet", "--world-size", str(ranks), path)) for ranks in (8, 16384))
    assert few["operators"] == many["operators"] > 0
    assert few["local"][0] == [8, 64] and many["local"][0] == [1, 64]
