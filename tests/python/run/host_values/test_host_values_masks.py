"""The host knows the padding of a batch that it sent; transformers builds a mask of tokens by tokens only for padding."""

import importlib.util

import pytest

pytestmark = pytest.mark.warm
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)

MODELS = """
    import torch
    from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM
    small = dict(hidden_size=128, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, vocab_size=64)
    llama = LlamaForCausalLM(LlamaConfig(**small)).cuda().bfloat16()
    bert = BertForMaskedLM(BertConfig(**small)).cuda().bfloat16()
    attention, masks = torch.nn.functional.scaled_dot_product_attention, []
    def noted(query, key, value, attn_mask=None, *args, **options):
        masks.append(attn_mask is not None)
        return attention(query, key, value, attn_mask, *args, **options)
    torch.nn.functional.scaled_dot_product_attention = noted
    ids = torch.arange(2 * 96).reshape(2, 96) % 64
    def is_masked(model, **batch):
        masks.clear()
        torch.cuda.reset_peak_memory_stats()
        model(input_ids=ids.cuda(), labels=ids.cuda(), **batch).loss.backward()
        model.zero_grad()
        assert len(masks) == 1, masks
        return masks[0]
"""


@needs_transformers
def test_a_mask_is_built_if_the_batch_has_padding(plimsoll_run, script):
    text = """
    whole = torch.ones(2, 96, dtype=torch.long)
    padded = whole.clone(); padded[1, 60:] = 0
    without = [
        whole.cuda(), whole.pin_memory().to("cuda", non_blocking=True), whole.bool().cuda(), torch.tensor(whole.tolist(), device="cuda"),
        torch.ones_like(ids.cuda()), torch.ones(2, 96, device="cuda"), ids.cuda().new_ones(2, 96),
        torch.full((2, 96), True, device="cuda"), whole.repeat(1, 2).cuda()[:, :96],
        (ids.cuda() != 64).long(), (ids.cuda() == 64) == 0,
    ]
    written = whole.cuda(); written[1, 60:] = 0
    with_padding = [padded.cuda(), padded.bool().to("cuda"), written, whole.cuda() * (ids.cuda() != 64), ids.cuda() != 1]
    for model in (llama, bert):
        for number, mask in enumerate(without):
            assert not is_masked(model, attention_mask=mask), (type(model), number)
        for number, mask in enumerate(with_padding):
            assert is_masked(model, attention_mask=mask), (type(model), number)
    """
    run = plimsoll_run(script(MODELS + text), timeout=120)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


@needs_transformers
def test_a_model_builds_its_own_positions_and_packs_nothing(plimsoll_run, script):
    text = """
    consecutive = torch.arange(96).expand(2, -1)
    packed = torch.cat([torch.arange(40), torch.arange(56)]).expand(2, -1)
    assert not is_masked(llama, use_cache=False)
    assert not is_masked(llama, use_cache=False, position_ids=consecutive.cuda())
    assert is_masked(llama, use_cache=False, position_ids=packed.cuda())
    llama.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    llama.train()
    masks.clear()
    llama(input_ids=ids.cuda(), labels=ids.cuda()).loss.backward()
    assert masks == [False, False], masks  # forward, and recomputed
    """
    run = plimsoll_run(script(MODELS + text), timeout=120)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


@needs_transformers
def test_a_batch_without_padding_takes_the_memory_of_one_without_a_mask(plimsoll_run, script):
    text = """
    mask, tall = torch.ones(2, 96, dtype=torch.long).cuda(), []
    is_masked(llama, use_cache=False)
    for batch in ({}, {"attention_mask": mask}):
        before = torch.cuda.memory_allocated()
        is_masked(llama, use_cache=False, **batch)
        tall.append(torch.cuda.max_memory_allocated() - before)
    assert tall[0] == tall[1], tall
    """
    run = plimsoll_run(script(MODELS + text), timeout=120)
    assert run.code == 0, run.stderr


KNOWN = """
    import gc, weakref
    import torch
    from plimsoll.run.values.host_values import known_values
    known = known_values.on_host
    host = torch.tensor([[1, 2, 3], [4, 5, 6]])
    sent = host.cuda()
"""


def test_a_host_value_is_known_until_its_tensor_is_written(plimsoll_run, script):
    text = """
    for tensor, wanted in (
        (sent, host), (sent[1], host[1]), (sent.t(), host.t()), (sent.expand(3, 2, 3)[0], host), (sent.int(), host.int()),
        (host.t().cuda(), host.t()), (host[:, 1:].cuda(), host[:, 1:]), (torch.full((2,), 7, device="cuda"), torch.tensor([7, 7])),
    ):
        assert torch.equal(known(tensor), wanted) and known(tensor).dtype == wanted.dtype, (known(tensor), wanted)
    assert known(torch.tensor(1.5).cuda()) is None and known(sent + 1) is None and known(torch.empty(2, 3, device="cuda")) is None
    assert known(host) is None and known(torch.empty(2, device="meta")) is None
    assert torch.tensor(2.0, device="cuda").mul(3).dtype == torch.float32 and (sent.float() * 2.5).dtype == torch.float32
    pad = torch.nn.functional.pad
    for tensor, wanted in (
        (pad(sent, (1, 0), value=7), pad(host, (1, 0), value=7)), (torch.cat([sent, sent]), torch.cat([host, host])),
        (torch.cat([torch.ones(2, 1, dtype=torch.long, device="cuda"), sent], 1), pad(host, (1, 0), value=1)),
    ):
        assert torch.equal(known(tensor), wanted), (known(tensor), wanted)
    for tensor in (pad(sent + 1, (1, 0), value=1), torch.cat([sent, sent + 1]), pad(torch.randn(2, 3, device="cuda"), (1, 0))):
        assert known(tensor) is None
    host[0, 0] = 9  # the host's own is another
    assert known(sent)[0, 0] == 1
    for write in (lambda t: t.add_(1), lambda t: t[0].zero_(), lambda t: t.copy_(host), lambda t: t.fill_(3)):
        tensor = host.cuda()
        write(tensor)
        assert known(tensor) is None
    with torch.inference_mode():
        assert torch.equal(known(host.cuda()), host)
    notes = weakref.ref(known(sent).untyped_storage())
    del sent, tensor
    gc.collect()
    assert notes() is None  # with the device's memory
    """
    run = plimsoll_run(script(KNOWN + text))
    assert run.code == 0, run.stderr
    assert "verrid" not in run.stderr


def test_derived_values_are_known_only_inside_host_queries(plimsoll_run, script):
    text = """
    @known_values.where_known
    def asked(tensor):
        if tensor.shape[0] == 2:
            drawn = torch.randint(9, (2, 3), device="cuda") + tensor
            assert known(drawn) is None and known(torch.empty_like(tensor)) is None and drawn.sum().item() == 0
        odd = torch.arange(1, 7, 2, device="cuda")
        return (tensor[:, ::2] == odd[None, :2]).any().item(), int(tensor.sum()), bool((tensor > 0).all())
    assert asked(sent) == (True, 21, True)
    @known_values.where_known
    def read(tensor):
        assert known(torch.diag_embed(tensor + 1)) is None  # three dimensions: filled with zeros, and written to
        repeated = torch.repeat_interleave(tensor[0] * 2, tensor[0])
        assert len(torch.unique_consecutive(repeated)) == 3 and repeated.is_cuda
        return repeated.tolist(), tensor.cpu(), int(tensor.max())
    listed, copied, largest = read(sent)
    assert (listed, largest) == ([2, 4, 4, 6, 6, 6], 6) and torch.equal(copied, host)
    assert sent.tolist() == [[0, 0, 0]] * 2 and sent.cpu().sum() == 0
    assert asked(torch.cat([host, host])[1:].cuda()) == (True, 36, True)
    assert asked(sent.float()) == (False, 0, False)  # not computed from a host value
    assert (sent.sum().item(), bool((sent > 0).all())) == (0, False)
    def cost(function):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        function()
        return torch.cuda.memory_stats()["allocation.all.allocated"] - before, torch.cuda.max_memory_allocated()
    def ask():
        return ((sent[:, ::2] == torch.arange(2, device="cuda")).sum(-1) + 1).all().item()
    assert cost(ask) == cost(known_values.where_known(ask))
    """
    run = plimsoll_run(script(KNOWN + text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] > 0
