"""What `plimsoll run` spares torch of its sharding propagation changes no answer of it."""

import json

import pytest

pytestmark = pytest.mark.warm

SCRIPT = """
    import itertools, json
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, Replicate, _sharding_prop
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    from torch.distributed.tensor._op_schema import OpSchema, OpSpec, OpStrategy, RuntimeSchemaInfo
    from torch.distributed.tensor.placement_types import _StridedShard

    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (2, 4))
    meta = TensorMeta(torch.Size((64, 8)), (8, 1), torch.float32)
    ours = _sharding_prop._propagate_use_strided_shard_flag
    torchs = getattr(ours, "__wrapped__", None)
    assert torchs is not None, "is torch's own"


    def spec(first, flag):
        made = DTensorSpec(mesh, (first, Shard(0)), tensor_meta=meta)
        made.use_strided_shard_as_shard_order = flag
        return made


    def seen(specs):
        return [[str(one.placements), one.use_strided_shard_as_shard_order, str(one.shard_order)] for one in specs]


    firsts = (Shard(0), Replicate(), _StridedShard(0, split_factor=4))
    arguments = [[spec(first, flag) for first in pair] for pair in itertools.product(firsts, repeat=2) for flag in (False, True)]
    answers = {"ours": [], "torchs": []}
    for name, propagate in (("ours", ours), ("torchs", torchs)):
        for lists in arguments:
            schema = OpSchema(torch.ops.aten._foreach_neg.default, (lists,), {}, RuntimeSchemaInfo(needs_pytree=True))
            for first, flag in itertools.product(firsts, (False, True)):  # One after the other, of the same arguments.
                outputs, inputs = (spec(first, flag), None), [spec(first, flag), spec(Shard(0), False)]
                propagate(OpStrategy([OpSpec(output_specs=outputs, input_specs=inputs)]), schema)
                answers[name].append(seen([outputs[0], *inputs]))
    print(json.dumps(answers))
"""


def test_strided_shards_are_as_torch_has_them(plimsoll_run, script):
    run = plimsoll_run("--quiet", "--world-size", "8", script(SCRIPT))
    assert run.code == 0, run.stderr
    answers = json.loads(run.stdout.splitlines()[0])
    assert answers["ours"] == answers["torchs"]
    assert len({json.dumps(answer) for answer in answers["torchs"]}) > 6


def test_arguments_are_looked_through_once_for_an_operator(plimsoll_run, script):
    looks = """
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor
        from torch.distributed.tensor._op_schema import OpSchema

        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", (8,))
        tensors = [distribute_tensor(torch.ones(8, 4, device="cuda"), mesh, [Shard(0)]) for _ in range(50)]
        looks, of_torch = [], OpSchema.args_spec
        OpSchema.args_spec = property(lambda self: (looks.append(1), of_torch.fget(self))[1])
        torch._foreach_neg(tensors)
        print(len(looks))
    """
    run = plimsoll_run("--quiet", "--world-size", "8", script(looks))
    assert run.code == 0, run.stderr
    assert 0 < int(run.stdout.splitlines()[0]) < 50  # torch's own looks once for each of them.
