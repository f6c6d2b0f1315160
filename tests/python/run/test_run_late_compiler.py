"""torch's compiler is imported on first use, and then works as if it had been imported at the start."""

import pytest

pytestmark = pytest.mark.warm

LOOP = """
    import sys, torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    {before}
    model = nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())

    @torch.compiler.disable
    def aside(x): return x * 2

    @torch.compiler.disable(recursive=True)
    def apart(x): return aside(x) * 2

    def step():
        optimizer.zero_grad()
        checkpoint(model, apart(torch.ones(8, 64, device="cuda")), use_reentrant=False).sum().backward()
        optimizer.step()
"""

# The compiler traces all of this model: the code that it skips ran before it was imported.
COMPILED = (
    LOOP
    + """
    step(); step()
    assert ("torch._dynamo.eval_frame" in sys.modules) is {imported}
    graphs = []
    def backend(graph, inputs):
        graphs.append([node.name for node in graph.graph.nodes])
        return graph.forward
    def loss(x): return apart(model(x) + 1).sum() - 1
    compiled = torch.compile(loss, backend=backend)
    for _ in range(3):
        optimizer.zero_grad(); compiled(torch.ones(8, 64, device="cuda")).backward(); optimizer.step()
    whole = torch.compile(step, backend=backend)
    whole(); whole()
    # torch's tables keep no wrapper of the stand-in. A wrapper that the script keeps is marked as disabled for the compiler.
    kept = vars(torch.optim.Optimizer.zero_grad.__wrapped__)["__dynamo_disable"]
    assert kept.__code__.co_filename.endswith("eval_frame.py"), kept
    assert apart._torchdynamo_disable and aside._torchdynamo_disable
    from torch._dynamo.utils import counters
    broken = dict(counters["graph_break"])
    print(len(graphs), sorted(graphs), len(broken), sum(broken.values()))
"""
)


def test_a_training_without_compilation_does_not_import_the_compiler(plimsoll_run, script):
    loop = (
        LOOP.format(before="")
        + """
    step(); step()
    import torch._dynamo
    torch._dynamo.graph_break()
    assert torch._dynamo.config.recompile_limit > 0
    loaded = [name for name in sys.modules if name.startswith("torch._dynamo.")]
    assert loaded == ["torch._dynamo.config"], loaded
    """
    )
    run = plimsoll_run(script(loop))
    assert run.code == 0, run.stderr
    assert len(run.json["steps"]) == 2 and run.json["defects"] == []


def test_later_compilation_works_as_if_the_compiler_had_been_imported_first(plimsoll_run, script):
    late = plimsoll_run(script(COMPILED.format(before="", imported=False)))
    early = plimsoll_run(script(COMPILED.format(before="import torch._dynamo.eval_frame", imported=True)))
    assert late.code == 0 and early.code == 0, late.stderr + early.stderr
    seen = [run.stdout.splitlines()[0] for run in (late, early)]
    assert seen[0] == seen[1] and int(seen[0].split()[0]) > 2
    assert len(late.json["steps"]) == len(early.json["steps"])


@pytest.mark.parametrize(
    "use",
    [
        "import torch._dynamo.backends.registry as registry; assert registry.list_backends()",
        "from torch._dynamo import reset; reset()",
        "assert torch._dynamo.list_backends()",
        "kept.graph_break(); assert kept.is_compiling() is False",
        "kept.own = 3; assert torch._dynamo.own == 3",
        "assert kept.disable(nn.Linear(2, 2))(torch.ones(2)).shape == (2,)",
    ],
    ids=["a module below", "a name", "a function", "who kept it", "who sets", "a module"],
)
def test_any_other_use_imports_the_compiler(plimsoll_run, script, use):
    text = f"""
    import sys, torch
    from torch import nn
    import torch._dynamo as kept
    torch._dynamo.config.recompile_limit = 77
    assert "torch._dynamo.eval_frame" not in sys.modules
    {use}
    import torch._dynamo.backends.registry as registry
    real = sys.modules["torch._dynamo"]
    assert torch._dynamo is real and real is not kept and kept.optimize is real.optimize and kept.disable is not None
    assert real.config is sys.modules["torch._dynamo.config"] and real.config.recompile_limit == 77
    for module in (real, registry, sys.modules["torch._dynamo.backends"]):
        assert module.__spec__.loader is module.__loader__, module
    assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3)).tolist() == [2.0] * 3
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
