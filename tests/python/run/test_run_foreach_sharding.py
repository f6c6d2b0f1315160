"""`plimsoll run` shortens torch's sharding propagation for foreach operators, and no answer changes."""

import json

import pytest

pytestmark = pytest.mark.warm

START = """
    import itertools, json
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, _sharding_prop
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    from torch.distributed.tensor._op_schema import OpSchema, RuntimeSchemaInfo
    from torch.distributed.tensor.placement_types import _StridedShard

    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (2, 4))
    propagator = torch.distributed.tensor.DTensor._op_dispatcher.sharding_propagator
    ours = type(propagator).propagate_op_sharding_non_cached
    torchs = getattr(ours, "__wrapped__", None)
    assert torchs is not None, "is torch's own"


    def spec(placements, shape=(64, 8), dtype=torch.float32, mesh=mesh):
        return DTensorSpec(mesh, placements, tensor_meta=TensorMeta(torch.Size(shape), (*shape[1:], 1)[:len(shape)], dtype))


    def schema(op, *args, **kwargs):
        return OpSchema(op, args, kwargs, RuntimeSchemaInfo(needs_pytree=True))

"""

ANSWERS = (
    START
    + """
    def described(found):
        if isinstance(found, DTensorSpec):
            return [str(found), str(found.shard_order), str(found.tensor_meta), found.use_strided_shard_as_shard_order,
                    found.mesh._dim_group_names]
        if isinstance(found, OpSchema):
            return [str(found.op), described(found.args_schema), str(found.kwargs_schema), str(found.schema_info)]
        if isinstance(found, (list, tuple)):
            assert len({id(one) for one in found if isinstance(one, DTensorSpec)}) == sum(isinstance(one, DTensorSpec) for one in found)
            return [type(found).__name__, *map(described, found)]
        return repr(found)


    def answer(propagate, schema):
        try:
            found = propagate(propagator, schema)
        except Exception as error:
            return [type(error).__name__, str(error)]
        return [described(found.output_spec), described(found.redistribute_schema), found.needs_redistribute,
                found.use_val_from_redistribute_schema]


    aten = torch.ops.aten
    placements = [(Shard(0), Shard(0)), (Replicate(), Shard(0)), (Replicate(), Replicate()), (Shard(1), Replicate()),
                  (Partial(), Replicate()), (_StridedShard(0, split_factor=4), Shard(0)), (Replicate(), Partial("max"))]
    alike = [spec(placements[index], shape) for index in (0, 1, 2) for shape in ((64, 8), (3, 8)) for _ in range(3)]
    several = [spec(one, shape, dtype) for one in placements for shape, dtype in (((64, 8), torch.float32), ((8, 16), torch.bfloat16))]
    twin = init_device_mesh("cuda", (2, 4))  # of the same ranks, with other groups
    assert twin == mesh and twin._dim_group_names != mesh._dim_group_names
    twins = [spec(placements[0], mesh=mesh if index % 3 else twin) for index in range(9)]
    lists = [alike, twins, several * 2, [*several, *reversed(several)], several[:1] * 5, [several[2], *several[:1] * 4, several[2]]]
    cases = []
    for first in lists:
        second = [spec(placements[0], one.tensor_meta.shape, one.tensor_meta.dtype) for one in first]
        steps = [spec((Replicate(), Replicate()), ()) for _ in first]
        ones, kinds = [1.0] * len(first), [(1, 1.0, True, 0.0, -0.0)[index % 5] for index in range(len(first))]
        cases += [
            schema(aten._foreach_sqrt.default, first),
            schema(aten._foreach_neg_.default, first),
            schema(aten._foreach_norm.Scalar, first, 2),
            schema(aten._foreach_add.Scalar, first, 2.0),
            schema(aten._foreach_add.ScalarList, first, kinds),
            schema(aten._foreach_mul_.ScalarList, first, ones),
            schema(aten._foreach_add_.List, first, second, alpha=2),
            schema(aten._foreach_mul.List, second, first),
            schema(aten._foreach_mul_.Tensor, first, spec(placements[2], ())),
            schema(aten._foreach_lerp_.Scalar, first, second, 0.1),
            schema(aten._foreach_addcmul_.Scalar, first, second, second, 0.5),
            schema(aten._foreach_addcdiv_.ScalarList, first, second, first, ones),
            schema(aten._fused_adamw_.default, first, second, second, second, [], steps, lr=0.1, beta1=0.9, beta2=0.99,
                   weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False),
            schema(aten._foreach_add_.List, first, first, alpha=2),
            schema(aten._foreach_lerp_.Scalar, first, first, 0.1),
            schema(aten._foreach_addcdiv_.ScalarList, first, first, first, ones),
            schema(aten._fused_adamw_.default, first, first, first, first, [], steps, lr=0.1, beta1=0.9, beta2=0.99,
                   weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False),
            schema(aten._foreach_add_.List, first, second[:-1]),
            schema(aten.cat.default, first, 0),
        ]
    answers = {"ours": [], "torchs": []}
    for case in cases:
        answers["ours"].append(answer(ours, case))
        answers["torchs"].append(answer(torchs, case))
    print(json.dumps(answers))
"""
)

ASKED = (
    START
    + """
    from torch.distributed.tensor import DTensor

    asked = []
    of_torch = type(propagator)._propagate_tensor_meta_non_cached
    def count(self, schema):
        asked.append(len(schema.args_schema[0]))
        return of_torch(self, schema)
    type(propagator)._propagate_tensor_meta_non_cached = count
    kinds = [spec((Shard(0), Shard(0)), (8 * number, 8)) for number in range(1, 6)]
    for entries in (kinds * 60, kinds):
        ours(propagator, schema(torch.ops.aten._foreach_sqrt.default, entries))
    torch._foreach_sqrt([DTensor.from_local(torch.ones(8, 8, device="cuda"), mesh, (Shard(0), Shard(0))) for _ in range(60)])
    print(json.dumps(asked))
"""
)

OF_THE_SCRIPT = (
    START
    + """
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.experimental import register_sharding

    seen = []

    @register_sharding(torch.ops.aten._foreach_copy_.default)
    def all_alike(to, what, non_blocking=False):
        seen.append(len(to))
        return [([], [place] * 2 * len(to) + [None]) for place in (Replicate(), Shard(0))]

    def four(rows, *placements):
        return [DTensor.from_local(torch.ones(rows, 8, device="cuda"), mesh, placements) for _ in range(4)]

    torch._foreach_copy_(four(8, Shard(0), Shard(0)), four(64, Replicate(), Replicate()))
    print(json.dumps(seen))
"""
)

COLLECTED = (
    START
    + """
    import gc, sys
    from torch.distributed.tensor import DTensor

    if sys.argv[1] == "torchs":
        type(propagator).propagate_op_sharding_non_cached = torchs

    class Cycle:
        pass

    tensors = [DTensor.from_local(torch.ones(8, 8, device="cuda"), mesh, (Shard(0), Shard(0))) for _ in range(290)]
    gc.collect()
    cycle = Cycle()
    cycle.itself, cycle.memory = cycle, torch.empty(2**30, dtype=torch.uint8, device="cuda")
    older = [[number] for number in range(9000)]  # It has lived through some work, and is in an older generation.
    del cycle
    torch._foreach_sqrt(tensors), torch._foreach_neg(tensors), torch._foreach_add(tensors, tensors), torch._foreach_abs(tensors)
    print(json.dumps(torch.cuda.memory_allocated() >= 2**30))
"""
)


def answered(run):
    assert run.code == 0, run.stderr
    return json.loads(run.stdout.splitlines()[0])


def test_the_answer_for_many_entries_equals_torchs(plimsoll_run, script):
    answers = answered(plimsoll_run("--quiet", "--world-size", "8", script(ANSWERS)))
    for ours, torchs in zip(answers["ours"], answers["torchs"]):
        assert ours == torchs
    given = [answer for answer in answers["torchs"] if len(answer) == 4]
    assert len(given) > 50 and {answer[2] for answer in given} == {True, False}
    assert len({json.dumps(answer) for answer in given}) > 20


def test_torch_propagates_one_entry_of_each_kind(plimsoll_run, script):
    assert answered(plimsoll_run("--quiet", "--world-size", "8", script(ASKED))) == [5, 5, 1]


def test_a_rule_of_the_script_gets_all_entries(plimsoll_run, script):
    assert set(answered(plimsoll_run("--quiet", "--world-size", "8", script(OF_THE_SCRIPT)))) == {4}


def test_tensors_in_a_cycle_are_freed_when_torch_would_free_them(plimsoll_run, script):
    path = script(COLLECTED)
    ours, torchs = (answered(plimsoll_run("--quiet", "--world-size", "8", path, whose)) for whose in ("ours", "torchs"))
    assert ours is torchs is False
