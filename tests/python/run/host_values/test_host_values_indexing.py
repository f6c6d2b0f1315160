"""A mask computed from host values selects as many elements as on a GPU: shapes and memory equal those of real values."""

import pytest

pytestmark = pytest.mark.warm

BATCH = """
    import torch
    labels = torch.arange(4 * 128).reshape(4, 128) % 7
    labels[:, :28] = -100
    edges = torch.stack([torch.arange(60) % 5, torch.arange(60) % 3])
    def hidden(device):
        return torch.ones(4, 128, 64, device=device, requires_grad=True)
"""


def test_shapes_equal_the_cpus(plimsoll_run, script):
    text = """
    def gradient(sent, pairs, hidden):
        mask = sent != -100
        loss = torch.nn.functional.cross_entropy(hidden[mask], sent[mask])
        return torch.autograd.grad(loss, hidden)[0]
    def written(sent, pairs, hidden):
        hidden = hidden.detach().clone()
        hidden[sent == -100] = torch.ones(4 * 28, 64, device=hidden.device)
        return hidden
    selections = {
        "mask": lambda sent, pairs, hidden: hidden[sent != -100],
        "part": lambda sent, pairs, hidden: hidden[:, :-1][sent[:, 1:] >= 0],
        "masked_select": lambda sent, pairs, hidden: torch.masked_select(hidden[..., 0], sent != -100),
        "edges": lambda sent, pairs, hidden: pairs[:, pairs[0] != pairs[1]],
        "of itself": lambda sent, pairs, hidden: sent[sent == -100],
        "where": lambda sent, pairs, hidden: torch.where(pairs.int() > 2)[0],
        "nonzero": lambda sent, pairs, hidden: sent.bool().nonzero(),
        "again": lambda sent, pairs, hidden: (sent > 0).nonzero()[:, 1].ne(3).nonzero(),
        "gradient": gradient,
        "written": written,
    }
    for name, select in selections.items():
        cpu, cuda = (select(labels.to(device), edges.to(device), hidden(device)) for device in ("cpu", "cuda"))
        assert (cpu.shape, cpu.dtype) == (cuda.shape, cuda.dtype) and cpu.numel() > 0, (name, cpu.shape, cuda.shape)
    """
    run = plimsoll_run(script(BATCH + text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 0 and run.json["defects"] == []
    assert "verrid" not in run.stderr


def test_masking_takes_the_memory_of_an_index_made_on_the_host(plimsoll_run, script):
    """The temporaries that find the indices are freed once they are found."""
    text = """
    sent, places = labels.cuda(), (labels != -100).nonzero(as_tuple=True)
    by_place = tuple(place.cuda() for place in places)
    mask, states, held = sent != -100, hidden("cuda"), []
    for index in (mask, by_place):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        picked = states[index]
        held.append(torch.cuda.memory_allocated() - before)
        del picked
    assert held[0] == held[1], held
    """
    run = plimsoll_run(script(BATCH + text))
    assert run.code == 0, run.stderr


def test_a_mask_that_the_host_does_not_know_selects_nothing(plimsoll_run, script):
    text = """
    sent, states = labels.cuda(), hidden("cuda")
    unknown = [states[..., 0] > 0, sent + 1 != 0, torch.ones(4, 128, device="cuda") > 0, (states[..., 0] > 0) & (sent != -100)]
    sent[0, 0] = 1
    unknown.append(sent != -100)
    for number, mask in enumerate(unknown):
        assert states[mask].shape == (0, 64), number
    """
    run = plimsoll_run(script(BATCH + text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 5
    assert all(line["decided_shape"] for line in run.json["read_back_lines"])
