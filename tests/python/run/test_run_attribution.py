"""Categories and modules of a script that runs unchanged."""

import needs
import pytest

WHY_NOT = needs.why_no_package()
pytestmark = [pytest.mark.warm, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]

PLAIN = """
    import torch
    from torch import nn
    with torch.device("cuda"):
        model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        model(torch.ones(512, 1024, device="cuda")).sum().backward(); optimizer.step(); optimizer.zero_grad()
"""
SHARDED = """
    import gc, os, torch, torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"])); dist.init_process_group("nccl")
    def build():
        with torch.device("cuda"):
            model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(2)))
        for layer in model: fully_shard(layer)
        return fully_shard(model)
    def train(model):
        model(torch.ones(2, 512, device="cuda")).sum().backward()
        torch.ones(2, 2, device="cuda", requires_grad=True).clone().sum().backward()
"""


def contents(run):
    assert run.code == 0, run.stderr
    report = run.json
    assert report["attribution"] is None and report["defects"] == []
    peak = report["peak"]
    assert sum(peak["categories"].values()) == peak["active_bytes"] == sum(cause["bytes"] for cause in report["causes"])
    return peak["categories"], {module["name"]: module for module in report["modules"]}


def test_a_plain_loop_is_reported_by_category_and_module(plimsoll_run, script):
    categories, modules = contents(plimsoll_run("--explain", script(PLAIN + "    step(); step()\n")))
    parameters = 2 * 1024 * 4096 * 4 + 4096 * 4 + 1024 * 4
    assert categories["Parameter"] == parameters and categories["OptState"] == 2 * parameters
    assert modules[""]["type"] == "Sequential" and modules[""]["parameters"] == parameters // 4
    assert modules["0"]["at_peak"]["Parameter"] == 1024 * 4096 * 4 + 4096 * 4
    assert not any(module["fsdp_unit"] for module in modules.values())


def test_tensors_made_outside_modules_before_the_first_step_are_not_activations(plimsoll_run, script):
    copies = """
    import copy
    average, shadow = copy.deepcopy(model).requires_grad_(False), [p.detach().clone() for p in model.parameters()]
    data = torch.zeros(1000, 128, device="cuda")
    step(); step()
    """
    parameters = 2 * 1024 * 4096 * 4 + 4096 * 4 + 1024 * 4
    plain, _ = contents(plimsoll_run(script(PLAIN + "    step(); step()\n")))
    categories, modules = contents(plimsoll_run(script(PLAIN + copies)))
    assert categories.pop("Other") == 2 * parameters + 1000 * 128 * 4
    assert categories == plain
    assert [name for name, module in modules.items() if "Other" in module["at_peak"]] == ["(no module)"]


def test_models_freed_before_the_end_are_reported(plimsoll_run, script):
    _, modules = contents(plimsoll_run(script(PLAIN + "    step()\n    del model, optimizer, step\n")))
    assert modules["2"]["type"] == "Linear" and modules["2"]["total_bytes"] > 0


def test_models_of_one_class_have_distinct_names(plimsoll_run, script):
    two = """
    class Net(nn.Sequential): pass
    def net(width): return Net(nn.Linear(1024, width), nn.ReLU(), nn.Linear(width, 1024)).cuda()
    small, large = net(512), net(4096).requires_grad_(False)
    for _ in range(2):
        x = torch.ones(4, 1024, device="cuda")
        (small(x) - large(x)).square().sum().backward()
    """
    _, modules = contents(plimsoll_run(script(PLAIN + two)))
    of = {width: 2 * 1024 * width + width + 1024 for width in (512, 4096)}
    assert (modules["Net"]["parameters"], modules["Net#2"]["parameters"]) == (of[512], of[4096])
    assert (
        modules["Net"]["at_peak"]["Parameter"] == 4 * of[512]
        and modules["Net#2"]["at_peak"]["Parameter"] == 4 * of[4096]
    )
    assert list(modules)[:4] == ["Net", "Net.0", "Net.1", "Net.2"]


def test_a_module_with_two_paths_has_its_first_path(plimsoll_run, script):
    wrapped = """
    class Loss(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net, self.inner = net, nn.ModuleDict({"net": net})
        def forward(self, x): return self.inner["net"](x).square().mean()
    loss = Loss(model)
    for _ in range(2): loss(torch.ones(4, 1024, device="cuda")).backward()
    """
    _, modules = contents(plimsoll_run("--depth", "9", script(PLAIN + wrapped)))
    parameters = 4 * modules["net"]["parameters"]
    assert modules["net"]["at_peak"]["Parameter"] == modules["net"]["at_peak"]["Gradient"] == parameters
    assert not any(name.startswith("Loss") for name in modules)


def test_several_models_are_named_by_their_classes(plimsoll_run, script):
    two = """
    class Critic(nn.Linear): pass
    critic = Critic(1024, 1, device="cuda"); step()
    critic(torch.ones(4, 1024, device="cuda")).sum().backward()
    """
    _, modules = contents(plimsoll_run(script(PLAIN + two)))
    assert {"Sequential", "Sequential.0", "Critic"} <= modules.keys() and "" not in modules


def test_without_attribution_the_report_has_no_categories(plimsoll_run, script):
    run = plimsoll_run("--no-categories", script(PLAIN + "    step()\n"))
    assert run.code == 0 and run.json["peak"]["categories"] is None and run.json["modules"] is None
    assert run.json["peak"]["active_bytes"] > 0


def test_a_run_out_of_memory_is_attributed_too(plimsoll_run, script):
    run = plimsoll_run("--gpu-memory", "700MiB", script(PLAIN + "    step()\n"))
    assert run.code == 3 and run.json["fits"] is False
    assert sum(run.json["peak"]["categories"].values()) == run.json["peak"]["active_bytes"]


def test_a_model_under_fsdp_is_freed_as_without_plimsoll(plimsoll_run, script):
    loop = """
    for _ in range(3):
        train(build())
        while gc.collect(): pass
        print("left", torch.cuda.memory_allocated())
    dist.destroy_process_group()
    """
    run = plimsoll_run("--world-size", "4", script(SHARDED + loop))
    left = [line for line in run.stdout.splitlines() if line.startswith("left")]
    assert len(left) == 3 and left[1] == left[2], left
    categories, modules = contents(run)
    assert categories["Sharded Param"] > 0 and modules["0"]["fsdp_unit"]
    assert modules["0"]["at_peak"]["Sharded Param"] == (512 * 512 + 512) * 4 // 4


def test_two_models_under_fsdp_are_both_tracked(plimsoll_run, script):
    loop = """
    class Teacher(nn.Sequential): pass
    one, other = build(), build()
    train(one); train(other)
    dist.destroy_process_group()
    """
    categories, _ = contents(plimsoll_run("--world-size", "4", script(SHARDED + loop)))
    shards = 2 * 2 * (512 * 512 + 512) * 4 // 4
    assert categories["Sharded Param"] == shards and "Parameter" not in categories


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_is_attributed_by_its_contents_in_each_form_of_compilation(plimsoll_run, script, backend):
    ways = [f"    model = torch.compile(model, backend={backend!r})\n", f"    model.compile(backend={backend!r})\n"]
    whole, in_place = (contents(plimsoll_run(script(PLAIN + way + "    step(); step()\n"))) for way in ways)
    parameters = 2 * 1024 * 4096 * 4 + 4096 * 4 + 1024 * 4
    assert whole[0]["Parameter"] == parameters and whole[0]["OptState"] == 2 * parameters
    assert whole[1]["0"]["at_peak"]["Parameter"] == 1024 * 4096 * 4 + 4096 * 4
    assert in_place[0] == whole[0] and in_place[1] == whole[1]


def test_blocks_compiled_in_place_belong_to_their_model(plimsoll_run, script):
    blocks = "    for layer in model: layer.compile(backend='aot_eager')\n    step(); step()\n"
    categories, modules = contents(plimsoll_run(script(PLAIN + blocks)))
    assert modules[""]["type"] == "Sequential" and modules["0"]["type"] == "Linear"
    assert modules["0"]["at_peak"]["Parameter"] == 1024 * 4096 * 4 + 4096 * 4


def test_a_model_compiled_in_place_within_another_is_compiled_with_it(plimsoll_run, script):
    nested = """
    inner = nn.Linear(8, 8, device="cuda"); inner.compile(backend="eager", fullgraph=True)
    outer = torch.compile(lambda x: inner(x * 2) * 3, backend="eager", fullgraph=True)
    outer(torch.ones(2, 8, device="cuda")).sum().backward()
    """
    contents(plimsoll_run(script(PLAIN + nested)))


def test_compiled_code_that_initialises_cuda_has_no_hooks(plimsoll_run, script):
    compiled = """
    import torch, warnings; warnings.filterwarnings("error", message=".*global hooks.*")
    make = torch.compile(lambda: torch.ones(64, 64, device="cuda"), backend="eager")
    x = make()
    model = torch.compile(torch.nn.Linear(64, 64, device="cuda"), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2): model(x).sum().backward(); optimizer.step(); optimizer.zero_grad()
    """
    contents(plimsoll_run(script(compiled)))


def test_a_compiled_optimizer_step_is_attributed_to_its_optimizer(plimsoll_run, script):
    """Compiled in part and as a whole: no hook runs there, and the compiler sees none."""
    compiled = """
    stepping = torch.compile({function}, backend="eager")
    for _ in range(3): {eager}stepping(); optimizer.zero_grad()
    """
    forward = 'model(torch.ones(512, 1024, device="cuda")).sum().backward(); '
    parameters = 2 * 1024 * 4096 * 4 + 4096 * 4 + 1024 * 4
    for function, eager in (("lambda: optimizer.step()", forward), ("step", "")):
        run = plimsoll_run(script(PLAIN + compiled.format(function=function, eager=eager)))
        categories, _ = contents(run)
        counters = 4 * 512  # step counts: one for each parameter, on the device if the step is compiled
        assert categories["Parameter"] == parameters and categories["OptState"] == 2 * parameters + counters
        assert run.json["finished_steps"] == 3
        assert "_getframe" not in run.stderr


DDP = """
    import os, torch, torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"])); dist.init_process_group("nccl")
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048, bias=False) for _ in range(4))).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view={view})
    for _ in range(3):
        model(torch.randn(8, 2048, device="cuda")).sum().backward()
        for parameter in model.parameters(): parameter.grad = None
"""


def test_the_buckets_of_ddp_are_gradients(plimsoll_run, script):
    """At the peak backward computes the first layer's gradient. The other gradients are in the buckets, and also beside them
    if the gradients are not views of the buckets."""
    gradient = 2048 * 2048 * 4
    for view, count in ((True, 4), (False, 4 + 3)):
        categories, _ = contents(plimsoll_run("--world-size", 4, script(DDP.format(view=view))))
        assert categories["Gradient"] == count * gradient
        assert categories["Parameter"] == 4 * gradient


def test_a_script_that_allocates_nothing_has_an_empty_attribution(plimsoll_run, script):
    run = plimsoll_run(script("import torch; torch.cuda.init(); torch.cuda.synchronize()"))
    assert (run.code, run.json["attribution"], run.json["defects"]) == (0, None, [])


def test_an_allocator_without_a_trace_is_not_a_defect(plimsoll_run, script):
    run = plimsoll_run("--alloc-conf", "backend:cudaMallocAsync", script(PLAIN + "    step()\n"))
    assert run.code == 0 and run.json["defects"] == []
    assert (
        "categories and modules are not known" in run.json["attribution"]
        and "cudaMallocAsync" in run.json["attribution"]
    )
