"""plimsoll.api.pretend: measuring a block of code in a process on the pretend GPU."""

import os

import pytest
from plimsoll.api import NotPretending, pretend

pytestmark = pytest.mark.warm

BLOCK = """
    import torch
    from plimsoll.api import pretend

    def megabytes(count): return torch.empty(count << 20, dtype=torch.uint8, device="cuda")
"""


def test_outside_of_a_run_the_error_says_how_to_start_one(monkeypatch, tmp_path):
    monkeypatch.delenv("PLIMSOLL_PRETEND_DIR", raising=False)
    for folder in (None, str(tmp_path)):  # also if only the variable is set
        if folder is not None:
            monkeypatch.setenv("PLIMSOLL_PRETEND_DIR", folder)
        with pytest.raises(NotPretending) as raised:
            with pretend():
                raise AssertionError("entered")
    words = str(raised.value)
    assert isinstance(raised.value, RuntimeError)
    assert "`plimsoll run script.py`" in words and "`python -m plimsoll run script.py`" in words
    assert "plimsoll.estimate(function)" in words


def test_libraries_that_are_present_but_not_loaded_are_not_a_card(monkeypatch, plimsoll_command):
    build = os.path.dirname(os.path.dirname(plimsoll_command))
    monkeypatch.setenv("PLIMSOLL_PRETEND_DIR", os.path.join(build, "pretend"))
    with pytest.raises(NotPretending):
        pretend().__enter__()


def test_a_measured_block_does_not_change_the_report(plimsoll_run, script):
    training = """
    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        model(torch.randn(64, 512, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    """
    plain = plimsoll_run(script(BLOCK + training + "\n    for _ in range(3): step()\n"))
    blocks = plimsoll_run(
        script(
            BLOCK
            + training
            + """
    cards = []
    for _ in range(3):
        with pretend() as card: step()
        cards.append([card.peak_active, card.peak_reserved, card.device_bytes])
    assert [card.peak_active, card.peak_reserved] == [torch.cuda.memory_stats()["active_bytes.all.peak"],
                                                      torch.cuda.max_memory_reserved()]
    print(cards)
    """
        )
    )
    assert plain.code == blocks.code == 0, blocks.stderr
    for part in ("peak", "steps", "before_steps", "finished_steps"):
        assert plain.json[part] == blocks.json[part], part
    peaks = [[step["active_peak_bytes"], step["reserved_peak_bytes"]] for step in plain.json["steps"]]
    beside = plain.json["peak"]["device_bytes"] - plain.json["peak"]["reserved_bytes"]
    assert str([[*peak, peak[1] + beside] for peak in peaks]) in blocks.stdout


def test_nested_blocks_have_their_own_peaks(plimsoll_run, script):
    name = script(
        BLOCK
        + """
    before = megabytes(100)
    del before
    torch.cuda.empty_cache()
    with pretend() as first:
        assert first.fits is None and repr(first) == "<Card H100-80GB: in use>"
        a = megabytes(10)
        with pretend(device=0) as inner:
            b = megabytes(20)
            inside = inner.used
        del b
        c = megabytes(4)
    with pretend() as second: pass
    free, total = torch.cuda.mem_get_info()
    assert [x.peak_active >> 20 for x in (first, inner, second)] == [30, 30, 14]
    assert first.peak_reserved == second.peak_reserved == 30 << 20
    assert inside == total - free == inner.device_bytes == first.device_bytes == second.used
    assert first.fits and inner.fits and first.spare == first.gpu.memory - first.device_bytes
    assert repr(first) == "<Card H100-80GB: fits, 550.00 MiB of 79.11 GiB>", repr(first)
    print("ended")
    """
    )
    run = plimsoll_run(name)
    assert run.code == 0 and "ended" in run.stdout, run.stderr
    assert run.json["peak"]["active_bytes"] == 100 << 20


def test_a_block_before_cuda_init_takes_nothing(plimsoll_run, script):
    name = script(
        BLOCK
        + """
    with pretend() as card: assert card.used == 0
    assert not torch.cuda.is_initialized() and card.fits and card.device_bytes == 0
    with pretend() as card: a = megabytes(10)
    assert card.peak_active == 10 << 20 and card.device_bytes == card.used
    """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr


def test_a_block_has_the_processs_job_and_may_require_one(plimsoll_run, script):
    name = script(
        BLOCK
        + """
    with pretend(world_size=8, rank=3, gpu="A100-40GB") as card: pass
    assert (card.world_size, card.rank) == (8, 3)
    assert (card.gpu.name, card.gpu.memory) == ("A100-40GB", 20 << 30)
    for keywords in ({"world_size": 64}, {"gpu": "H100-80GB"}, {"rank": 0}):
        try:
            with pretend(**keywords): raise AssertionError
        except ValueError as error: print(error)
    """
    )
    run = plimsoll_run("--world-size", "8", "--rank", "3", "--gpu", "A100-40GB", "--gpu-memory", "20GiB", name)
    assert run.code == 0, run.stderr
    said = "in this process, but the block requires"
    assert f"world_size is 8 {said} 64: start it with `plimsoll run --world-size 64 script.py`" in run.stdout
    assert (
        f"gpu is 'A100-40GB' {said} 'H100-80GB': start it with `plimsoll run --gpu H100-80GB script.py`" in run.stdout
    )
    assert f"rank is 3 {said} 0: start it with `plimsoll run --rank 0 script.py`" in run.stdout


def test_out_of_memory_reaches_the_script_and_is_recorded(plimsoll_run, script):
    name = script(
        BLOCK
        + """
    try:
        with pretend() as card: kept = megabytes(1024); megabytes(90 << 10)
    except torch.OutOfMemoryError: print("passed")
    assert card.fits is False and card.peak_active == 1 << 30
    assert repr(card).startswith("<Card H100-80GB: does not fit, ")
    try:
        with pretend() as card: raise KeyError
    except KeyError: assert card.fits
    try:
        with pretend() as card: raise RuntimeError("NCCL: out of memory")
    except RuntimeError: assert card.fits is False
    megabytes(1)
    """
    )
    run = plimsoll_run(name)
    assert run.code == 0 and "passed" in run.stdout, run.stderr
    assert run.json["fits"] is True and run.json["ooms_handled"] == 1


def test_a_block_measures_the_fullest_device_or_the_requested_one(plimsoll_run, script):
    name = script(
        BLOCK
        + """
    with pretend() as fullest, pretend(device=0) as first:
        small, large = megabytes(2), torch.empty(64 << 20, dtype=torch.uint8, device="cuda:1")
    assert first.peak_active == 2 << 20 and fullest.peak_active == 64 << 20
    """
    )
    run = plimsoll_run("--world-size", "2", name)
    assert run.code == 0, run.stderr


def test_the_docstring_example_holds(plimsoll_run, script):
    name = script(
        """
        import doctest, sys
        import plimsoll.api.card as card
        found = doctest.testmod(card)
        sys.exit(found.failed or found.attempted != 3)
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stdout
