"""The known differences between our trackers and torch's, each with its reason, and the test that there are no others."""

import itertools
import re
from typing import NamedTuple


class Kind(NamedTuple):
    """Bytes that torch's tracker has in category `torchs` (or does not see) and ours in one of `ours`. `where` is a pattern
    for "case | module | state | device" (for points of a step: "case |  | point | device")."""

    name: str
    where: str
    torchs: str
    ours: frozenset
    reason: str
    at_most: float = float("inf")


UNSEEN, WORKSPACES = "(unseen)", "workspaces"
PEAK = r"\| (Peak[- ]\w+|peak) \|"
AGAIN = r"checkpoint=(full|reentrant|selective)"


def kind(name, where, torchs, ours, reason, **more):
    return Kind(name, where, torchs, frozenset(ours.split(", ")), reason, **more)


# Bytes for each step: the positions, and values computed from them.
HELD = {"hf_llama": 6656, "hf_gpt2": 512}
CHECKPOINTED, GENERATORS = (
    3,
    5056 + 2 * 16,
)  # blocks; bytes of the states of the CPU's and the GPU's random number generators

KINDS = [
    kind(WORKSPACES, r"\| cuda:0$", UNSEEN, "Workspace",
         "cuBLAS takes them from the allocator without an operator: torch's hears of operators' outputs only"),
    kind("unregistered memory on the CPU", r"\| cpu$", UNSEEN, "Other",
         "ours also counts CPU memory that is allocated outside of scopes while a tracker exists, torch's does not", at_most=16384),
    kind("numbers that become tensors", r"\| cpu$", UNSEEN, "Activation, Temp",
         "an operator makes a tensor of a number and may keep it for backward: it is not the output of an operator", at_most=4096),
    *(kind(f"what torch's tracker holds, {model}", rf"model={model} .*checkpoint=reentrant.*\| (?!0 (begin|forward|backward) )",
           "Activation", UNSEEN, "in torch's run something keeps small inputs of the checkpoints of finished steps alive",
           at_most=2 * held) for model, held in HELD.items()),
    kind("unregistered memory", r"\| cuda:0$", UNSEEN, "Other",
         "our total of the GPU is all active memory; torch's counts registered memory and outputs of operators"),
    kind("rests of blocks", r"model=large_llama", UNSEEN,
         "Parameter, Gradient, Activation, Temp, Optstate, Sharded Param, Unsharded Param, Unsharded Grad, All Gather, "
         "Reduce Scatter, OptState",
         "the allocator does not split off a rest of less than 1 MiB from a large block; torch's rounds to 512"),
    kind("temporaries inside of operators, forward", PEAK, UNSEEN, "Activation",
         "an operator allocates and frees temporaries: torch's sees only its results"),
    kind("temporaries inside of operators, backward and step", PEAK, UNSEEN, "Temp",
         "an operator allocates and frees temporaries: torch's sees only its results"),
    kind("temporaries of an optimizer's step", r"\|  \| peak \|", "Optstate", "Temp",
         "torch's calls all that a step makes its state until the step is over"),
    kind("temporaries of an optimizer's step, FSDP", r"fsdp=1.*\|  \| peak \|", "OptState", "Temp",
         "torch's calls all that a step makes its state until the step is over"),
    kind("states of random numbers", AGAIN + r".*\| cpu$", UNSEEN, "Activation, Temp",
         "a checkpoint keeps the generators' states on the CPU; they are made without an operator that torch's sees",
         at_most=(CHECKPOINTED + 1) * GENERATORS + 4096),  # The original tensors are kept besides the recomputed ones.
    kind("steps of Adam without memory", r"fake=1.*\| cpu$", UNSEEN, "Optstate",
         "a fake tensor that is made from a number, as the optimizer's count of steps, keeps a real one: ours counts both"),
    kind("named when it is taken, backward", r"fsdp=1.*\| (Peak Backward|peak) \|", "Temp",
         "Unsharded Param, All Gather, All Gather Input, Reduce Scatter, Reduce Scatter Output",
         "torch's names the buffers of a collective when it starts, the result of a reduction when "
         "Post-Backward ends, and the casts for an all-gather never"),
    kind("what an operator takes for a gradient, or copies it with", r"fsdp=1.*\| (Peak Backward|peak) \| cuda:0$", UNSEEN,
         "Unsharded Grad, Reduce Scatter", "where the allocator came to its most within it: torch's has not seen it yet, or never",
         at_most=1024),
    kind("gradients of whole parameters",
         r"fsdp=1.*\| ((Before|After) (Pre|Post)-Backward|(Pre|Post)-Forward AC|Peak Backward|peak|\d backward) \|",
         "Temp", "Unsharded Grad",
         "torch's names them when Post-Backward of their module begins, ours when they come: the root's wait for long"),
]  # fmt: skip

# Recomputation in backward makes activations; torch's decides by modules, and counts memory outside of them as Temp. trackers_step.py
# counts these bytes in torch's run, and they are moved before the comparison.
RECOMPUTED = "recomputed outside of modules"

# Cases in which torch's run differs, so that the allocator's count in it cannot be compared.
OTHER_HISTORY = {
    r"model=large_llama": "which blocks are split depends on all that the process did before",
}

# A GPU peak that is higher than torch's may be at another instant. Then only the lasting categories are compared; another test compares
# all categories with torch's count at the allocator's own peak. The CPU has such an instant only if a GPU does the work, and then it
# holds little.
ANOTHER_INSTANT = "another instant"
HARDLY_ANYTHING = 65536
LASTING = ("Sharded Param", "Buffer", "Inputs", "Parameter")

# States that ours records at another instant than torch's.
ELSEWHERE = {
    r"model=hf_llama .*self_attn \| (Post|Peak)-Backward \|":
        "it is called by keywords: torch's does not see its inputs, and ends its backward with the whole pass",
    r"model=hf_\w+ .*checkpoint=reentrant.*\| Peak-Backward \|": "see `what torch's tracker holds`",
}  # fmt: skip


def corrected(torchs):
    again = torchs.get("Recomputed", 0)
    return {**torchs, "Temp": torchs["Temp"] - again, "Activation": torchs["Activation"] + again} if again else torchs


def unexplained(where, ours, torchs, another_instant=True):
    """({category: bytes without an explanation}, names of the kinds that explain the other bytes)."""
    again = {RECOMPUTED} if torchs.get("Recomputed") else set()
    torchs = corrected(torchs)
    categories = {*ours, *torchs} - {"Total", "Workspace", "Recomputed"}
    more = {category: ours.get(category, 0) - torchs.get(category, 0) for category in categories}
    more[UNSEEN] = -sum(more.values())
    always = again | ({WORKSPACES} if ours.get("Workspace") and where.endswith("cuda:0") else set())
    gained = {category: size for category, size in more.items() if size > 0}
    lost = {category: -size for category, size in more.items() if size < 0}
    kinds = [
        kind for kind in KINDS
        if kind.torchs in lost and re.search(kind.where, where)
        and 0 < min(lost[kind.torchs], sum(gained.get(category, 0) for category in kind.ours)) <= kind.at_most
    ]  # fmt: skip
    # Hall's condition: each set of categories in which ours has more is covered by categories in which torch's has more, and vice versa.
    edges = {(kind.torchs, category) for kind in kinds for category in kind.ours}
    while further := {(a, d) for a, b in edges for c, d in edges if b == c} - edges:
        edges |= further
    backwards = {(b, a) for a, b in edges}
    for own, other, ways in ((gained, lost, backwards), (lost, gained, edges)):
        for chosen in itertools.chain.from_iterable(
            itertools.combinations(own, count + 1) for count in range(len(own))
        ):
            reached = {b for a, b in ways if a in chosen}
            if sum(own[category] for category in chosen) > sum(other.get(category, 0) for category in reached):
                lasting = {*LASTING} & ({*lost} if "large_llama" in where else {*gained, *lost})
                hardly = re.search(r"device=cuda:0.*\| cpu$", where) and ours["Total"] <= HARDLY_ANYTHING
                may_be = hardly or (where.endswith("| cuda:0") and "fake=1" not in where)
                if another_instant and may_be and re.search(PEAK, where) and lost.get(UNSEEN) and not lasting:
                    return {}, always | {ANOTHER_INSTANT}
                return more, set()
    return {}, always | {kind.name for kind in kinds}
