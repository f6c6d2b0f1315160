"""Steps and phases of training loops."""

import pytest

pytestmark = pytest.mark.warm

HEAD = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
        def forward(self, x): return self.down(torch.relu(self.up(x)))
    def net(): return Net().cuda()
    def data(): return torch.randn(32, 128, device="cuda")
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
"""


def steps_of(run):
    assert run.code == 0, run.stderr
    return run.json["steps"]


def check_shape(steps, count, phases):
    assert len(steps) == count
    for step in steps:
        assert set(step["phases"]) >= set(phases), step
        for book in ("active", "reserved"):
            assert step[f"{book}_peak_bytes"] == max(p[f"{book}_peak_bytes"] for p in step["phases"].values())


ALL = ("forward", "backward", "optimizer")

LOOPS = {
    "plain": """
    for _ in range(3):
        optimizer.zero_grad(); model(data()).sum().backward(); optimizer.step()
    """,
    "accumulation": """
    for _ in range(3):
        for _ in range(4): model(data()).sum().backward()
        optimizer.step(); optimizer.zero_grad()
    """,
    "two optimizers": """
    other = net(); second = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(3):
        other(model(data())).sum().backward(); optimizer.step(); optimizer.zero_grad(); second.step(); second.zero_grad()
    """,
    "optimizer in backward": """
    each = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
    def hook(p): each[p].step(); each[p].zero_grad()
    for p in model.parameters(): p.register_post_accumulate_grad_hook(hook)
    for _ in range(3): model(data()).sum().backward()
    """,
    "checkpointing": """
    from torch.utils.checkpoint import checkpoint
    for again in (True, False, True):
        checkpoint(model, data().requires_grad_(), use_reentrant=again).sum().backward()
        optimizer.step(); optimizer.zero_grad()
    """,
    "double backward": """
    for _ in range(3):
        x = data().requires_grad_(); y = model(x)
        g, = torch.autograd.grad(y.sum(), x, create_graph=True)
        (y.mean() + g.square().mean()).backward(); optimizer.step(); optimizer.zero_grad()
    """,
    "grad scaler": """
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.float16): loss = model(data()).sum()
        scaler.scale(loss).backward(); scaler.unscale_(optimizer); scaler.step(optimizer); scaler.update()
    """,
    "closure": """
    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=2)
    def closure(): lbfgs.zero_grad(); loss = model(data()).sum(); loss.backward(); return loss
    for _ in range(3): lbfgs.step(closure)
    """,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_three_iterations_are_three_steps(plimsoll_run, script, loop):
    phases = ("forward", "backward") if loop == "optimizer in backward" else ALL
    check_shape(steps_of(plimsoll_run(script(HEAD + LOOPS[loop]))), 3, phases)


def test_an_optimizer_out_of_memory_does_not_change_the_next_step(plimsoll_run, script):
    loop = """
    def refuse(*_): raise torch.OutOfMemoryError("pretended")
    for i in range(3):
        model(data()).sum().backward()
        if i == 0:
            handle = optimizer.register_step_pre_hook(refuse)
            try: optimizer.step()
            except torch.OutOfMemoryError: handle.remove()
        else: optimizer.step()
    """
    steps = steps_of(plimsoll_run(script(HEAD + loop)))
    assert len(steps) == 2


def test_forward_without_backward_is_one_open_step(plimsoll_run, script):
    loop = "    with torch.no_grad(): model(torch.ones(1 << 20, 128).cuda())\n    model(data())\n"
    run = plimsoll_run(script(HEAD + loop))
    check_shape(steps_of(run), 1, ("forward",))
    assert run.json["peak"]["step"] is None, "a forward without gradients is not a step"


BEFORE_THE_DEVICE = {
    "a model that looks at its shapes": """
    import torch
    from torch import nn
    features = nn.Linear(16, 32)
    head = nn.Linear(features(torch.ones(1, 16)).shape[1], 4)
    model = nn.Sequential(features, head).cuda()
    gone = torch.ones(1 << 26, device="cuda"); del gone
    """,
    "a forward that uses the device first": """
    import torch
    from torch import nn
    class Mover(nn.Linear):
        device = "cpu"
        def forward(self, x):
            self.cuda()
            return super().forward(x.cuda())
    model = Mover(16, 4)
    """,
}


@pytest.mark.parametrize("case", BEFORE_THE_DEVICE)
def test_a_forward_before_cuda_init_does_not_start_a_step(plimsoll_run, script, case):
    loop = """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(8, 16).to(model.device if hasattr(model, "device") else "cuda")).sum().backward()
        optimizer.step(); optimizer.zero_grad()
    """
    run = plimsoll_run(script(BEFORE_THE_DEVICE[case] + loop))
    check_shape(steps_of(run), 2, ALL)
    tall = [step["phases"]["forward"]["active_peak_bytes"] >= 1 << 28 for step in run.json["steps"]]
    assert tall == [False, False]
    before = run.json["before_steps"]
    assert (before is not None and before["active_peak_bytes"] >= 1 << 28) == ("looks" in case)


@pytest.mark.parametrize("model", ["model", "torch.compile(model, backend='eager')"])
def test_validation_between_steps_is_not_a_forward_phase(plimsoll_run, script, model):
    loop = f"""
    import warnings; warnings.filterwarnings("error", message=".*global hooks.*")
    net = {model}
    def validate():
        with torch.no_grad(): net(torch.ones(1 << 18, 128, device="cuda"))
    for _ in range(3):
        validate()
        net(data()).sum().backward(); optimizer.step(); optimizer.zero_grad()
    """
    steps = steps_of(plimsoll_run(script(HEAD + loop)))
    check_shape(steps, 3, ALL)
    for step in steps:
        assert step["phases"]["forward"]["active_peak_bytes"] < 1 << 27
    assert [step["phases"]["other"]["active_peak_bytes"] >= 1 << 27 for step in steps] == [False, True, True]


def test_a_captured_graph_with_the_optimizer_counts_each_replay_as_a_step(plimsoll_run, script):
    loop = """
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x = data()
    def step(): optimizer.zero_grad(set_to_none=True); model(x).sum().backward(); optimizer.step()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2): step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): step()
    for _ in range(3): graph.replay()
    """
    assert len(steps_of(plimsoll_run(script(HEAD + loop)))) == 6


COMPILED = {
    "torch.compile(model)": """
    compiled = torch.compile(model, backend=backend)
    def step(): compiled(data()).sum().backward(); optimizer.step(); optimizer.zero_grad()
    """,
    "model.compile()": """
    model.compile(backend=backend)
    def step(): model(data()).sum().backward(); optimizer.step(); optimizer.zero_grad()
    """,
    "a compiled optimizer": """
    opt_step = torch.compile(lambda: optimizer.step(), backend=backend)
    def step(): model(data()).sum().backward(); opt_step(); optimizer.zero_grad()
    """,
    "the whole step": """
    @torch.compile(backend=backend)
    def step():
        loss = model(data()).sum(); loss.backward(); optimizer.step(); optimizer.zero_grad()
    """,
}


def test_a_traced_backward_leaves_no_global_hook(plimsoll_run, script):
    """The compiler guards modules that have hooks (tensor and context parallelism) against global hooks."""
    name = script(
        """
        import torch
        torch._dynamo.config.error_on_recompile = True
        def same(module, args): return args
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(64, 64)
                self.inner.register_forward_pre_hook(same)
            def forward(self, x):
                return self.inner(x)
        blocks = [torch.compile(Block(), backend="aot_eager", fullgraph=True) for _ in range(3)]
        model = torch.nn.Sequential(*blocks).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(8, 64, device="cuda", requires_grad=True)).sum().backward()
            optimizer.step()
        """
    )
    assert len(steps_of(plimsoll_run(name))) == 3


@pytest.mark.parametrize("way", COMPILED)
def test_compiled_code_is_compiled_once_and_its_steps_are_counted(plimsoll_run, script, way):
    loop = (
        """
    import warnings; warnings.filterwarnings("error", message=".*global hooks.*")
    graphs = 0
    def backend(module, inputs):
        global graphs; graphs += 1
        return module.forward
    """
        + COMPILED[way]
        + """
    counts = []
    for _ in range(6): step(); counts.append(graphs)
    print("graphs", counts[2], counts[-1])
    """
    )
    run = plimsoll_run(script(HEAD + loop))
    assert len(steps_of(run)) == 6
    first, last = next(line for line in run.stdout.splitlines() if line.startswith("graphs")).split()[1:]
    assert first == last != "0"
