"""torch.distributions reads back from the device whether arguments are valid: the host answers that they are."""

import pytest

pytestmark = pytest.mark.warm


def test_distribution_arguments_on_the_device_count_as_valid(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Categorical, Dirichlet, MultivariateNormal, Normal, Uniform
    x = torch.ones(4, 3, device="cuda")
    for one in (Categorical(logits=x), Categorical(probs=x), Normal(x, x), Uniform(x - 1, x), Dirichlet(x)):
        assert one.log_prob(one.sample()).is_cuda
    MultivariateNormal(x, covariance_matrix=torch.eye(3, device="cuda"))
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


def test_validation_runs_on_the_device_and_is_read_back(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Normal
    x = torch.ones(4, 3, device="cuda")
    def allocations(validate):
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        Normal(x, x, validate_args=validate)
        return torch.cuda.memory_stats()["allocation.all.allocated"] - before
    # Checks: `loc` equals itself, `scale` is above zero; for each, whether all elements pass.
    assert allocations(True) - allocations(False) == 4
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 2


def test_distribution_arguments_on_the_cpu_are_validated(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Normal
    try:
        Normal(torch.zeros(2), -torch.ones(2))
    except ValueError as error:
        assert "Expected parameter scale" in str(error)
    else:
        raise SystemExit("taken as valid")
    assert torch._is_all_true(torch.tensor([True, False])).item() is False
    assert torch._is_all_true(torch.ones(2, dtype=torch.bool, device="meta")).is_meta
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode():
        fake = torch._is_all_true(torch.ones(2, dtype=torch.bool, device="cuda"))
        assert fake.device.type == "cuda" and fake.shape == ()
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr


def test_a_normal_sample_equals_torchs(plimsoll_run, script):
    """On the device the draw skips the check of torch.normal; on the CPU torch.normal itself draws."""
    text = """
    import torch
    from torch.distributions import Normal
    mean = torch.zeros(3, 1 << 18, device="cuda")
    one = Normal(mean, 1.0)
    before = torch.cuda.memory_allocated()
    drawn = one.sample((2,))
    assert drawn.shape == (2, 3, 1 << 18) and drawn.is_contiguous() and not drawn.requires_grad
    assert torch.cuda.memory_allocated() - before == drawn.nbytes
    assert Normal(mean[:, :0], 1.0).sample().shape == (3, 0)
    torch.manual_seed(3); own = Normal(torch.zeros(5), torch.ones(5)).sample()
    torch.manual_seed(3); assert torch.equal(own, torch.normal(torch.zeros(5), torch.ones(5)))
    try:
        Normal(torch.zeros(2), -torch.ones(2), validate_args=False).sample()
    except RuntimeError as error:
        assert "std >= 0" in str(error)
    else:
        raise SystemExit("drawn")
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
    # Validity of two parameters each; of the deviations of the first sample, twice.
    assert run.json["read_backs"] == 2 * 2 + 2


def test_the_compiler_still_sees_the_validation(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Normal
    graphs = []
    def backend(graph, inputs):
        graphs.append([node.target for node in graph.graph.nodes if node.op.startswith("call_")])
        return graph.forward
    def is_valid(x): return torch._is_all_true(x > 0)
    def loss(x):
        normal = Normal(x, x.exp(), validate_args=True)
        return normal.log_prob(normal.sample()).sum()
    for device in ("cpu", "cuda"):
        torch._dynamo.reset()
        for function in (is_valid, loss):
            torch.compile(function, backend=backend)(torch.ones(3, device=device))
    half = len(graphs) // 2
    assert graphs[:half] == graphs[half:] and torch._is_all_true in graphs[0], graphs
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
