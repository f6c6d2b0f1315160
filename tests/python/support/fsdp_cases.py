"""The configurations in which C++ FSDP2 is compared with torch's, as lines of `key=value` words.

CONFIGURATIONS has a name and its words. number_cases() and memory_cases() add words that only say how a case runs (world, rank, steps,
sizes). tracker_cases() makes the cases for FSDPMemTracker, drop_in_cases() the cases that torch's tracker does not support.
"""

import itertools

import needs

# "least" gives the smallest number of ranks. "only=memory" marks configurations that gloo cannot run, or that change no number;
# "only=numbers" those that matter for numbers only.
CONFIGURATIONS = {
    "fp32": "model=network",
    "fp32 gpt": "model=gpt",
    "sgd": "model=network optimizer=sgd",
    "adamw for-loop": "model=network optimizer=adamw_forloop",
    "adamw fused": "model=network optimizer=adamw_fused",
    "bf16 parameters, fp32 reduce": "model=gpt param=bf16 reduce=f32",
    "bf16 parameters": "model=gpt param=bf16",
    "bf16 parameters, fp32 reduce, network": "model=network param=bf16 reduce=f32",
    "bf16 parameters, fp32 output": "model=gpt param=bf16 reduce=f32 output=f32",
    "bf16 parameters, inputs as they are": "model=gpt param=bf16 reduce=f32 output=f32 cast_inputs=0",
    "bf16 reduce": "model=gpt reduce=bf16",
    "bf16 stored": "model=network store=bf16 param=bf16 reduce=f32",
    "fp16 reduce": "model=network reduce=f16",
    "fp16 parameters": "model=network param=f16 reduce=f16 output=f32",
    "hsdp": "model=network hsdp=2 least=2",
    "hsdp gpt": "model=gpt hsdp=2 least=2",
    "hsdp, bf16 parameters, fp32 reduce": "model=gpt hsdp=2 param=bf16 reduce=f32 least=2",
    "hsdp, bf16 reduce": "model=network hsdp=2 reduce=bf16 least=2",
    "hsdp, fp16 reduce": "model=network hsdp=2 reduce=f16 least=2",
    "hsdp, accumulation without all-reduce": "model=network hsdp=2 accumulate=no_all_reduce least=2",
    "hsdp, accumulation without all-reduce, bf16": "model=gpt hsdp=2 param=bf16 reduce=f32 accumulate=no_all_reduce least=2",
    "hsdp, accumulation without sync": "model=network hsdp=2 accumulate=no_sync+last least=2",
    "reshard true": "model=gpt reshard=true",
    "reshard false": "model=gpt reshard=false",
    "reshard 2": "model=network reshard=2 least=2",
    "reshard 2 gpt": "model=gpt reshard=2 least=2",
    "reshard 2, bf16": "model=gpt reshard=2 param=bf16 reduce=f32 least=2",
    "reshard 4": "model=gpt reshard=4 least=8",
    "hsdp, reshard 2": "model=network hsdp=2 reshard=2 least=8",
    "reshard set later": "model=gpt set_reshard_after_forward=0",
    "reshard set later, root too": "model=gpt set_reshard_after_forward=1",
    "grouped": "model=gpt group=1",
    "grouped, bf16": "model=gpt group=1 param=bf16 reduce=f32 output=f32",
    "tied in a group": "model=gpt group=1 tied=1",
    "tied in a group, bf16": "model=gpt group=1 tied=1 param=bf16 reduce=f32",
    "tied in the root": "model=gpt tied=1",
    "head by chunks": "model=gpt group=1 chunked=1 only=numbers",
    "head by chunks, bf16": "model=gpt group=1 chunked=1 param=bf16 reduce=f32 output=f32 only=numbers",
    "gradients clipped": "model=network clip=0.05 only=numbers",
    "gradients clipped, bf16, hsdp": "model=gpt clip=0.5 param=bf16 reduce=f32 hsdp=2 least=2 only=numbers",
    "accumulation with sync": "model=network accumulate=sync",
    "accumulation without sync": "model=network accumulate=no_sync",
    "accumulation without sync, last backward told": "model=gpt accumulate=no_sync+last",
    "accumulation without sync, parameters kept": "model=gpt accumulate=no_sync+last+keep",
    "accumulation without sync, bf16": "model=gpt accumulate=no_sync+last+keep param=bf16 reduce=f32",
    "accumulation with sync, bf16": "model=gpt accumulate=sync param=bf16 reduce=f32",
    "checkpointed": "model=network checkpoint=1",
    "checkpointed gpt": "model=gpt checkpoint=1",
    "checkpointed, bf16": "model=gpt checkpoint=1 param=bf16 reduce=f32",
    "checkpointed, reshard 2": "model=gpt checkpoint=1 reshard=2 least=2",
    "checkpointed, prefetch": "model=gpt checkpoint=1 prefetch=2",
    "offload pinned": "model=network offload=pin",
    "offload pinned gpt, bf16": "model=gpt offload=pin param=bf16 reduce=f32",
    "offload not pinned": "model=network offload=no_pin",
    "offload, accumulation": "model=network offload=pin accumulate=sync",
    "offload, hsdp": "model=network offload=pin hsdp=2 least=2",
    "blocks run twice": "model=network times=2",
    "blocks run twice, bf16": "model=network times=2 param=bf16 reduce=f32",
    "blocks run twice, bf16, offload": "model=network times=2 param=bf16 reduce=f32 offload=no_pin",
    "frozen": "model=network frozen=1",
    "frozen gpt": "model=gpt frozen=1",
    "frozen, bf16": "model=gpt frozen=1 param=bf16 reduce=f32",
    "unused": "model=network unused=always",
    "unused, reduced": "model=network unused=always reduce_unused=1",
    "unused on odd ranks, reduced": "model=network unused=odd_ranks reduce_unused=1",
    "prefetch one": "model=network prefetch=1",
    "prefetch two": "model=gpt prefetch=2",
    "prefetch two, bf16": "model=gpt prefetch=2 param=bf16 reduce=f32",
    "shard dimension 1": "model=gpt shard_dim=1",
    "shard dimension 1, bf16": "model=gpt shard_dim=1 param=bf16 reduce=f32",
    "shard dimension 1, hsdp": "model=gpt shard_dim=1 hsdp=2 least=2",
    "two meshes": "model=network second_mesh=hsdp least=2",
    "two meshes, bf16": "model=gpt second_mesh=hsdp param=bf16 reduce=f32 least=2",
    "two meshes, one smaller": "model=network second_mesh=fsdp least=2",
    "two reduce-scatter inputs": "model=gpt input_buffers=2",
    "two reduce-scatter inputs, bf16": "model=gpt input_buffers=2 param=bf16 reduce=f32",
    "embedding not gathered in backward": "model=gpt separate=1 unshard_in_backward=0",
    "divide factor": "model=network divide=3 only=memory",
    "divide factor of the world": "model=network divide=world",
    "divide factor, sum": "model=network divide=3 force_sum=1",
    "sum": "model=network force_sum=1",
    "sum, hsdp": "model=network force_sum=1 hsdp=2 least=2",
    "by hand": "model=network by_hand=1",
    "by hand, gpt": "model=gpt by_hand=1 param=bf16 reduce=f32",
    "meta": "model=network built=meta",
    "meta, bf16": "model=network built=meta param=bf16 reduce=f32",
    "meta, offload": "model=network built=meta offload=pin",
    "built on the device": "model=network built=cuda only=memory",
    "ignored": "model=network ignored=1 optimizer=adamw_forloop",
    "all-reduce hook": "model=network all_reduce_hook=1",
    "all-reduce hook, hsdp": "model=network all_reduce_hook=1 hsdp=2 least=2",
    "separate reduce-scatter group": "model=network separate_reduce_group=1",
    "unshard on the current stream": "model=gpt unshard_async=1",
    "unshard on the current stream, prefetch": "model=gpt unshard_async=1 prefetch=1",
    "optimizer's event": "model=network optimizer_event=1 only=memory",
}

# Sizes that are not powers of two, on both sides of the allocator's limit for small blocks.
MEMORY_SIZES = {
    "network": "dim=670 hidden=530+311+5 outer=11",
    "gpt": "vocabulary=3001 context=24 heads=5 layers=3",
}
# At most 1 MiB for all parameters together: the allocator splits such blocks exactly. A larger block may keep a rest of up to
# 1 MiB, which counts as active and which torch's tracker does not know.
TRACKER_SIZES = {
    "network": "dim=67 hidden=53+31+5 outer=11",
    "gpt": "vocabulary=301 context=24 dim=48 heads=4 layers=3",
    "llama": "vocabulary=301 context=24 dim=48 hidden=130 heads=6 kv_heads=2 layers=3",
}
LARGE_TRACKER_SIZES = {
    **{model: f"{sizes} dim=240" if model == "gpt" else sizes for model, sizes in MEMORY_SIZES.items()},
    "llama": "vocabulary=3001 context=24 dim=240 hidden=650 heads=6 kv_heads=2 layers=3",
}
# Numbers of ranks, and the compared rank.
PLACES = ((8, 0), (1, 0), (2, 0), (8, 7), (64, 0), (1000, 0)) if needs.EVERY_CASE else ((8, 0), (1, 0), (64, 0))

# Configurations that run with four processes, in addition to those that need four.
WITH_FOUR = (
    "fp32",
    "fp32 gpt",
    "bf16 parameters, fp32 reduce",
    "fp16 reduce",
    "reshard false",
    "grouped",
    "tied in a group",
    "accumulation with sync",
    "accumulation without sync",
    "accumulation without sync, bf16",
    "checkpointed gpt",
    "offload pinned",
    "frozen",
    "unused",
    "unused on odd ranks, reduced",
    "prefetch two",
    "shard dimension 1",
    "divide factor of the world",
    "meta",
)


def training_sources(program):
    """The source files that decide the answers of a program that trains with fsdp_training.py."""
    return program, "fsdp_training.py", "models/fsdp_models.py", "models/fsdp_llama.py"


def words_of(line):
    return dict(word.split("=") for word in line.split())


def adapted(name, world):
    """The words of a configuration for a number of ranks; None if it cannot run with this number."""
    words = words_of(CONFIGURATIONS[name])
    if world < int(words.pop("least", 1)):
        return None
    hsdp, reshard = int(words.get("hsdp", 1)), words.get("reshard", "")
    if reshard.isdigit() and (world // hsdp) % int(reshard):
        return None
    if words.get("divide") == "world":
        words["divide"] = str(world)
    return words


def line_of(words):
    return " ".join(f"{key}={value}" for key, value in words.items())


def without_rounding(words):
    """Whether training in one process gives the same numbers except for the order of sums."""
    others = {"param", "reduce", "store", "divide", "all_reduce_hook", "second_mesh", "ignored", "chunked", "clip"}
    return not others & words.keys() and words.get("unused") != "odd_ranks"


def number_cases(worlds=(2, 4)):
    """{line: configuration}. Some train for ten steps, the others until the state of one step has reached the next."""
    cases, at_length = {}, needs.some(CONFIGURATIONS, 12)
    for world in worlds:
        for name in CONFIGURATIONS:
            words = adapted(name, world)
            if words is None or words.pop("only", "numbers") != "numbers":
                continue
            needs_four = "least" in CONFIGURATIONS[name]
            with_four = name in WITH_FOUR and (needs.EVERY_CASE or name in needs.some(WITH_FOUR, 3))
            if needs_four if world == 2 else not (needs_four or with_four):
                continue
            words = {"world": world, "steps": 10 if name in at_length else 3, **words}
            if without_rounding(words):
                words["reference"] = 1
            cases[line_of(words)] = f"{name}, {world} ranks"
    return cases


def memory_cases(places=PLACES):
    """{line: configuration}: all configurations at the first place, some at the other places."""
    cases = {}
    for world, rank in places:
        for name in CONFIGURATIONS if (world, rank) == places[0] else needs.some(CONFIGURATIONS, 3):
            words = adapted(name, world)
            if words is not None and words.pop("only", "memory") == "memory":
                sizes = words_of(MEMORY_SIZES[words["model"]])
                if words["model"] == "gpt":
                    sizes["dim"] = {64: 320}.get(world, 250 if "shard_dim" in words and world == 1000 else 240)
                line = line_of({"world": world, "rank": rank, "steps": 3, **words, **sizes})
                cases[line] = f"{name}, rank {rank} of {world}"
    return cases


def tracker_cases():
    """{line: description}. Each form of sharding of each model, of which half is used; numbers of ranks and optimizers
    alternate."""
    reshards = {"": "", "reshard=true": ", reshard true", "reshard=false": ", reshard false"}
    dtypes = {"": "", "param=bf16 reduce=f32": ", bf16"}
    checkpoints = {"": "", "checkpoint=1": ", checkpointed"}
    wraps = {"": "", "wrap=root": ", only the root"}
    worlds, optimizers = (2, 8, 64), ("adamw_foreach", "adamw_fused", "sgd")
    cases = {}

    def add(world, rank, model, optimizer, words, name, sizes=TRACKER_SIZES):
        line = f"world={world} rank={rank} model={model} optimizer={optimizer} {words} {sizes[model]}"
        cases[" ".join(line.split())] = f"{model}{name}, {optimizer}, rank {rank} of {world}"

    for forms in itertools.product(enumerate(TRACKER_SIZES), *map(enumerate, (reshards, dtypes, checkpoints, wraps))):
        (kind, reshard, dtype, checkpoint, wrap), (model, *words) = zip(*forms)
        name = "".join(names[word] for names, word in zip((reshards, dtypes, checkpoints, wraps), words))
        world = worlds[(kind + reshard + dtype + 2 * checkpoint + wrap) % 3]
        optimizer = optimizers[(kind + 2 * reshard + dtype + checkpoint + wrap) % 3]
        add(world, 0, model, optimizer, " ".join(words), name)
    cases = needs.some(cases, 2)
    for model in TRACKER_SIZES:
        add(1, 0, model, "adamw_foreach", "", "")
        add(64, 63, model, "adamw_foreach", "param=bf16 reduce=f32", ", bf16")
        add(2, 0, model, "adamw_foreach", "large=1", ", large", LARGE_TRACKER_SIZES)
        bf16_root = "large=1 param=bf16 reduce=f32 wrap=root", ", large, bf16, only the root"
        add(8, 0, model, "adamw_fused", *bf16_root, LARGE_TRACKER_SIZES)
    add(2, 0, "gpt", "adamw_foreach", "tied=1", ", tied")
    add(2, 0, "gpt", "adamw_foreach", "prefetch=1", ", prefetch")
    add(2, 0, "network", "adamw_foreach", "times=2", ", blocks run twice")
    return cases


# Features that torch's tracker does not support: modules sharded together, replicas, resharding between forward and backward,
# shards on the CPU, parameters on two meshes.
BEYOND_TORCHS = (
    "grouped",
    "tied in a group, bf16",
    "hsdp",
    "hsdp, bf16 parameters, fp32 reduce",
    "hsdp, reshard 2",
    "reshard 2",
    "reshard 2, bf16",
    "checkpointed, reshard 2",
    "offload pinned",
    "offload not pinned",
    "offload pinned gpt, bf16",
    "offload, hsdp",
    "two meshes, bf16",
    "shard dimension 1, bf16",
)


def drop_in_cases(world=8):
    """{line: description}."""
    cases = {}
    for name in BEYOND_TORCHS:
        words = adapted(name, world)
        line = line_of({"world": world, "rank": 0, **words, **words_of(TRACKER_SIZES[words["model"]])})
        cases[line] = f"{name}, rank 0 of {world}"
    return cases
