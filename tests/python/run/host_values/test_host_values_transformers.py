"""generate() of transformers reads back whether it has ended: the host answers, because zeros would never end it."""

import importlib.util

import pytest

pytestmark = [
    pytest.mark.warm,
    pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed"),
]

LAYERS, HEADS, HEAD_DIM, VOCABULARY, SEQUENCES, PROMPT = 2, 4, 128, 256, 4, 64
MODEL = f"""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    def a_model(device="cuda"):
        config = LlamaConfig(
            hidden_size={HEADS * HEAD_DIM}, intermediate_size=512, num_hidden_layers={LAYERS}, num_attention_heads={HEADS},
            vocab_size={VOCABULARY}, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        )
        return LlamaForCausalLM(config).to(device).eval()
    model = a_model()
    steps = []
    model.model.register_forward_hook(lambda *_: steps.append(1))
    prompt = torch.randint({VOCABULARY}, ({SEQUENCES}, {PROMPT}), device="cuda")
"""


def test_a_generation_ends_at_its_length(plimsoll_run, script):
    text = f"""
    torch.distributed.init_process_group("nccl")
    def generate(tokens, **how):
        steps.clear()
        found = model.generate(prompt, **how)
        assert found.shape == ({SEQUENCES}, {PROMPT} + tokens), (found.shape, tokens, how)
        assert len(steps) == tokens, (len(steps), tokens, how)  # The prompt's forward gives the first.
    for how in (
        dict(do_sample=False), dict(do_sample=True, top_k=5), dict(num_beams=4), dict(num_beams=4, early_stopping=True),
        dict(num_beams=2, do_sample=True), dict(synced_gpus=True), dict(synced_gpus=True, num_beams=2), dict(use_cache=False),
    ):
        for tokens in (5, 1):
            generate(tokens, max_new_tokens=tokens, **how)
        generate(3, max_length={PROMPT} + 3, **how)
    assert model._has_unfinished_sequences.__name__ == "_has_unfinished_sequences"
    """
    run = plimsoll_run("--world-size", "2", script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


def test_returned_beams_have_the_length_of_the_cpus(plimsoll_run, script):
    text = """
    wanted = dict(max_new_tokens=5, num_beams=4, return_dict_in_generate=True, output_scores=True)
    for returned in (1, 3):
        cpu, cuda = (a_model(d).generate(prompt.to(d), num_return_sequences=returned, **wanted) for d in ("cpu", "cuda"))
        for name in ("sequences", "sequences_scores"):
            assert cuda[name].shape == cpu[name].shape, (name, cuda[name].shape, cpu[name].shape)
        assert cuda.sequences.is_cuda and len(cuda.scores) == 5
        assert cuda.beam_indices.shape == (cuda.sequences.shape[0], 5)
    """
    # The CPU has real values: without an end token in the vocabulary, no beam ends early.
    run = plimsoll_run(script(MODEL.replace("eos_token_id=2", "eos_token_id=None") + text), timeout=120)
    assert run.code == 0, run.stderr


def test_the_peak_includes_the_cache_of_the_full_length(plimsoll_run, script):
    new = 64
    text = f"""
    with torch.no_grad():
        model(prompt)  # with a workspace for cuBLAS, which stays
    before = torch.cuda.memory_allocated()
    found = model.generate(prompt, max_new_tokens={new}, return_dict_in_generate=True)
    cache = torch.cuda.memory_allocated() - before - found.sequences.nbytes
    assert found.past_key_values.get_seq_length() == {PROMPT + new - 1}
    print(before, cache)
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    before, cache = map(int, run.stdout.split()[:2])
    # Keys and values of each token in each layer, except the last token, which is not fed in again.
    one_layers_keys = SEQUENCES * HEADS * (PROMPT + new - 1) * HEAD_DIM * 4
    assert cache == 2 * LAYERS * one_layers_keys
    assert run.json["peak"]["active_bytes"] >= before + cache


def test_an_error_in_one_generation_does_not_end_the_next(plimsoll_run, script):
    text = f"""
    from transformers import MaxLengthCriteria, StoppingCriteriaList
    own = StoppingCriteriaList([MaxLengthCriteria({PROMPT} + 4)])
    class Streamer:
        def put(self, tokens):
            if len(steps): raise KeyError("mine")
        def end(self): pass
    try:
        model.generate(prompt[:1], stopping_criteria=own, streamer=Streamer())
    except KeyError:
        pass
    own(torch.zeros(1, 500, device="cuda", dtype=torch.long), None)  # over, as far as it knows
    assert model.generate(prompt, stopping_criteria=own).shape == ({SEQUENCES}, {PROMPT} + 4)
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


def test_assisted_decoding_ends_and_the_report_says_that_it_is_incomplete(plimsoll_run, script):
    text = """
    print(model.generate(prompt[:1], max_new_tokens=5, do_sample=False, assistant_model=a_model()).shape)
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    assert [defect.partition(":")[0] for defect in run.json["defects"]] == [
        f"a generation was ended at token {PROMPT} of {PROMPT + 5}"
    ]


def test_a_generation_on_the_cpu_ends_by_its_values(plimsoll_run, script):
    text = f"""
    model = a_model("cpu")
    model.lm_head.weight.data.zero_()  # Every token is as likely, and the first is taken.
    out = model.generate(prompt.cpu(), max_new_tokens=5, do_sample=False, eos_token_id=0)
    assert out.shape == ({SEQUENCES}, {PROMPT} + 1), out.shape
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
