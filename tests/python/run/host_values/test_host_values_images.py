"""A vision model reads back the sizes of its images: all of its modules' outputs have the same shapes as on the CPU."""

import importlib.util

import pytest

pytestmark = pytest.mark.warm

# Two images of different sizes, in sequences with one token for each four patches.
SHAPES = """
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    rope = {"rope_type": "default", "mrope_section": [4, 6, 6], "rope_theta": 10000.0}
    text = dict(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=1000,
        max_position_embeddings=1024, rope_parameters=rope, bos_token_id=1, eos_token_id=2,
    )
    vision = dict(depth=2, hidden_size=64, intermediate_size=128, num_heads=4, out_hidden_size=128, fullatt_block_indexes=[1])
    config = Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, image_token_id=990, vision_start_token_id=991, vision_end_token_id=992,
        video_token_id=993,
    )
    grid = torch.tensor([[1, 8, 12], [1, 4, 6]])
    ids = torch.arange(2 * 64).reshape(2, 64) + 10
    for row, (_, height, width) in enumerate(grid.tolist()):
        ids[row, 2] = 991
        ids[row, 3 : 3 + height * width // 4] = 990
    batch = dict(
        input_ids=ids, labels=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=(ids == 990).int(), image_grid_thw=grid,
        pixel_values=torch.ones(int(grid.prod(-1).sum()), 3 * 2 * 14 * 14),
    )
    def shapes(device, checkpoint):
        model = Qwen2_5_VLForConditionalGeneration(config).to(device).train()
        if checkpoint is not None:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": checkpoint})
        found = []
        for name, module in model.named_modules():
            module.register_forward_hook(lambda *call, name=name: found.append((name, getattr(call[2], "shape", None))))
        model(**{name: tensor.to(device) for name, tensor in batch.items()}).loss.backward()
        return found
    def check(checkpoint):
        cpu, cuda = shapes("cpu", checkpoint), shapes("cuda", checkpoint)
        assert cpu == cuda, next((one, other) for one, other in zip(cpu, cuda) if one != other)
        return len(cuda)
"""


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_shapes_equal_the_cpus_in_forward_and_in_recomputation(plimsoll_run, script):
    text = """
    plain, again, reentrant = check(None), check(False), check(True)
    assert plain < again and plain < reentrant
    """
    run = plimsoll_run(script(SHAPES + text), timeout=180)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


def test_a_forward_that_takes_sizes_reads_them_back_in_each_version(plimsoll_run, script):
    """Newer versions of transformers run code for each model class that is defined; older versions do not."""
    text = """
    import types
    import torch
    from plimsoll.run.values.host_values import image_sizes
    class Plain(torch.nn.Module): pass
    class Noting(torch.nn.Module):
        noted = []
        def __init_subclass__(cls, **options):
            super().__init_subclass__()
            Noting.noted.append((cls.__name__, options))
    for base in (Plain, Noting):
        image_sizes.answer(types.SimpleNamespace(PreTrainedModel=base))
        options = {"kind": "vision"} if base is Noting else {}
        class Vision(base, **options):
            def forward(self, pixels, grid_thw): return (grid_thw * 2).tolist()
        class Text(base):
            def forward(self, tokens): return (tokens * 2).tolist()
        class Deeper(Vision): pass
        sizes = torch.tensor([[1, 8], [1, 4]]).cuda()
        for model in (Vision(), Deeper()):
            assert model(None, sizes) == model(None, grid_thw=sizes) == [[2, 16], [2, 8]]
        assert Text()(sizes) == [[0, 0], [0, 0]]
    assert Noting.noted == [("Vision", {"kind": "vision"}), ("Text", {}), ("Deeper", {})]
    image_sizes.answer(types.SimpleNamespace())
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
