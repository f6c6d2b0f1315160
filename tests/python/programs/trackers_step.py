"""The program of test_trackers_against_torch.py, for our trackers and for torch's (tracker_choice.py): two training steps, and the
tracker's full report on them.

Cases on standard input, one a line of words `key=value`: `model`, `device`, `checkpoint` (none, full, reentrant, selective),
`optimizer`; `fsdp=1` means one rank under FSDP2, `fake=1` FakeTensorMode. One line of JSON for each on standard output:

    {"points": {point: SNAPSHOT}, "peak": SNAPSHOT, "modules": {name: {state: [SNAPSHOT, …]}}, "own": {name: [bytes, …]},
     "active": {point: bytes}, "active_of": {name: {state: [bytes, …]}}, "here": {point: bytes}, "left": bytes,
     "at_peak": [SNAPSHOT, …], "at_peaks_of": {name: {state: [[SNAPSHOT, …], …]}}, "printed": [line, …],
     "added_at_most": bytes}

`active` and `active_of` are the GPU allocator's counts at the same instants (at peaks, its maximum). Only torch's side reads them,
because its tracker does not count them. The same holds for `at_peak` and `at_peaks_of`: the counts of torch's tracker before and
after the operators that have the allocator's maximum. `here` is the allocator's count after each look, `left` the bytes that earlier
cases left. In torch's snapshots "Recomputed" is the part of Temp that recomputation in backward made. On CPU `added_at_most` is the
profiler's peak of additional memory.
"""

import contextlib
import functools
import gc
import io
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
import tracker_choice
from cpu_peak import peak_on_cpu
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))

import checkpointing  # noqa: E402
import language_model  # noqa: E402
import llama  # noqa: E402
import tracker_scenarios  # noqa: E402

TRACKERS = tracker_choice.load()
TORCHS = TRACKERS.MemTracker.__module__.startswith("torch.")
GPU = torch.device("cuda", 0)
VOCABULARY, LENGTH = 256, 32


def active_bytes(which):
    """The value of torch.cuda.memory_stats(), read faster."""
    return torch._C._cuda_memoryStats(0)["active_bytes"]["all"][which]


class Reentrant(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, *args):
        return checkpoint(self.block, *args, use_reentrant=True)


def tokens(length=LENGTH):
    return torch.zeros(2, length, dtype=torch.int64)


def mlp():
    return tracker_scenarios.MLP(40, 300, 30), torch.ones(16, 40), None


def transformer():
    model = tracker_scenarios.Transformer(vocabulary=VOCABULARY)
    return model, tokens(), model.layers


def plain_llama():
    config = llama.LlamaConfig(dim=64, layers=3, heads=4, kv_heads=2, ffn=176, vocab=VOCABULARY)
    model = llama.Llama(config, LENGTH)
    return model, tokens(), model.layers


def large_llama():
    """A model with blocks that the allocator does not always split."""
    config = llama.LlamaConfig(dim=520, layers=2, heads=4, kv_heads=2, ffn=1410, vocab=2000)
    model = llama.Llama(config, 500)
    return model, tokens(500), model.layers


def gpt2():
    sizes = {"n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": LENGTH, "vocab_size": VOCABULARY}
    model = language_model.LanguageModel(language_model._gpt2(sizes), LENGTH)
    return model, tokens(), model.layers


def hf_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, intermediate_size=176, use_cache=False, **sizes))
    return model, tokens(), model.model.layers


def hf_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": LENGTH, "vocab_size": VOCABULARY}
    model = GPT2LMHeadModel(GPT2Config(use_cache=False, **sizes))
    return model, tokens(), model.transformer.h


MODELS = {
    "mlp": mlp, "transformer": transformer, "llama": plain_llama, "large_llama": large_llama, "gpt2": gpt2,
    "hf_llama": hf_llama, "hf_gpt2": hf_gpt2,
}  # fmt: skip


def checkpoint_blocks(model, layers, how):
    """The blocks wrapped for checkpointing. Models of HF have their own switch."""
    if how == "none":
        return
    if hasattr(model, "gradient_checkpointing_enable"):
        options = {"use_reentrant": how == "reentrant"}
        if how == "selective":
            options["context_fn"] = checkpointing._keep_attention_and_every_other_matmul
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
    elif how == "reentrant":
        for index, layer in enumerate(layers):
            layers[index] = Reentrant(layer)
    else:
        checkpointing.checkpoint_layers(layers, "op" if how == "selective" else "full")


def shard(model, layers):
    if not dist.is_initialized():
        dist.init_process_group("nccl")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in layers if layers is not None else [model.fc1, model.fc2]:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)


class Peak:
    """The allocator's maximum, and the counts of torch's tracker around the operators that have it."""

    def __init__(self):
        self.bytes, self.instants = 0, []

    def see(self, reached, instants):
        if reached > self.bytes:
            self.bytes, self.instants = reached, []
        if reached == self.bytes:
            self.instants += [copied(books) for books in instants if books not in self.instants]


def copied(snapshot):
    return {device: dict(books) for device, books in snapshot.items()}


def with_allocators_books(Tracker, states):
    """torch's tracker, which also reads the GPU's allocator at each snapshot, and also counts recomputed memory that it takes
    for temporaries of backward. `states`: the names of its two peaks."""

    class Asking(Tracker):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.highest, self.highest_of = Peak(), {}
            self.before, self.run_again = {}, set()
            self.is_on_gpu = True  # Otherwise the allocator has no statistics.

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.before = copied(self._curr_mem_snap)
            return super().__torch_dispatch__(func, types, args, kwargs)

        def _update_peak_stats(self, peak_state):
            super()._update_peak_stats(peak_state)
            self.note_highest(self.before, self._curr_mem_snap)

        def get_tracker_snapshot(self, type="current"):
            self.note_highest(self._curr_mem_snap)
            snapshot = super().get_tracker_snapshot(type)
            if type == "current" and GPU in snapshot:
                snapshot[GPU]["Active"] = active_bytes("current")
            return snapshot

        def note_highest(self, *instants):
            """Gives the allocator's peak since the last call to the modules to which the tracker gives its peak."""
            if not self.is_on_gpu:
                return
            reached = active_bytes("peak")
            torch.cuda.reset_peak_memory_stats()
            self.highest.see(reached, instants)
            state = states.PEAK_BW if self._mod_tracker.is_bw else states.PEAK_FW
            for module in self.memory_tracking.values():
                if module.mod_fqn in self._mod_tracker.parents and state in module.snapshots:
                    peaks = self.highest_of.setdefault(module.mod_fqn, {}).setdefault(state.value, [])
                    peaks += [Peak() for _ in range(len(module.snapshots[state]) - len(peaks))]
                    peaks[-1].see(reached, instants)

        def reset_mod_stats(self):
            super().reset_mod_stats()
            self.highest_of.clear()

        def _update_snap(self, u_type, winfo, old_mem_consumed=None, old_reftype=None):
            """In backward only recomputation has gradients enabled."""
            super()._update_snap(u_type, winfo, old_mem_consumed, old_reftype)
            if (
                u_type.name == "ADD"
                and winfo.reftype.value == "Temp"
                and self._mod_tracker.is_bw
                and torch.is_grad_enabled()
            ):
                self.run_again.add(winfo)
            if winfo in self.run_again and winfo.device in self._curr_mem_snap:
                size = winfo.mem_consumed
                more = {"ADD": size, "SIZE": size - (old_mem_consumed or 0), "REF": -size, "DEL": -size}[u_type.name]
                books = self._curr_mem_snap[winfo.device]
                books["Recomputed"] = books.get("Recomputed", 0) + more
            if u_type.name in ("REF", "DEL"):
                self.run_again.discard(winfo)

    return Asking


def tracker_classes():
    if not TORCHS:
        return TRACKERS.MemTracker, TRACKERS.FSDPMemTracker
    from torch.distributed._tools.fsdp2_mem_tracker import _FSDPModState
    from torch.distributed._tools.mem_tracker import _ModState

    return with_allocators_books(TRACKERS.MemTracker, _ModState), with_allocators_books(
        TRACKERS.FSDPMemTracker, _FSDPModState
    )


PlainTracker, FSDPTracker = tracker_classes()


def let_go_of_gradients(model):
    """Empties a variable of torch's FSDPMemTracker that keeps one unsharded gradient alive through Post-Backward."""
    if TORCHS:
        import fsdp_tracker

        for module in model.modules():
            if isinstance(module, FSDPModule) and (group := module._get_fsdp_state()._fsdp_param_group):
                group.post_backward = fsdp_tracker.forgetting(group.post_backward)


def make_optimizer(name, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    return torch.optim.AdamW(parameters, foreach=name == "adamw", fused=name == "adamw_fused")


def two_steps(tracker, model, optimizer, batch, look):
    def passes(step):
        output = model(batch)
        output = getattr(output, "logits", output)
        targets = torch.zeros(output.shape[:-1].numel(), dtype=torch.int64, device=output.device)
        loss = F.cross_entropy(output.flatten(0, -2), targets)
        look(f"{step} forward")
        loss.backward()
        look(f"{step} backward")

    with tracker:
        for step in range(2):
            look(f"{step} begin")
            passes(step)
            look(f"{step} passes")
            optimizer.step()
            look(f"{step} step")
            optimizer.zero_grad()
            if step == 0:
                tracker.reset_mod_stats()
        look("end")


def sorted_out(snapshot):
    """(the snapshot by names, the allocator's count)."""
    found = tracker_choice.plain(snapshot)
    active = found.get(str(GPU), {}).pop("Active", None)
    return found, active


def plain_instants(peak):
    return [tracker_choice.plain(snapshot) for snapshot in peak.instants]


def run(words):
    with FakeTensorMode() if words.get("fake") == "1" else contextlib.nullcontext():
        return run_steps(words)


def run_steps(words):
    device, under_fsdp = words["device"], words.get("fsdp") == "1"
    torch.manual_seed(0)
    with torch.device(device):
        model, batch, layers = MODELS[words["model"]]()
    checkpoint_blocks(model, layers, words["checkpoint"])
    if under_fsdp:
        shard(model, layers)
        let_go_of_gradients(model)
    optimizer = make_optimizer(words.get("optimizer", "adamw"), model.parameters())
    torch.cuda.reset_peak_memory_stats()
    tracker = FSDPTracker(model, optimizer) if under_fsdp else PlainTracker()
    tracker.is_on_gpu = device != "cpu" and words.get("fake") != "1"
    tracker.track_inputs((batch,)) if under_fsdp else tracker.track_external(model, optimizer, batch)
    found = {"points": {}, "active": {}, "here": {}, "modules": {}, "own": {}, "active_of": {}}

    def look(point):
        found["points"][point], found["active"][point] = sorted_out(tracker.get_tracker_snapshot("current"))
        found["here"][point] = active_bytes("current")

    steps = functools.partial(two_steps, tracker, model, optimizer, batch, look)
    if device == "cpu" and words.get("fake") != "1" and not TORCHS:
        found["added_at_most"] = peak_on_cpu(steps)
    else:
        steps()
    found["peak"], _ = sorted_out(tracker.get_tracker_snapshot("peak"))
    found["active"]["peak"] = tracker.highest.bytes if TORCHS else active_bytes("peak")
    found["at_peak"] = plain_instants(tracker.highest) if TORCHS else []
    found["at_peaks_of"] = {}
    for name, states in tracker.highest_of.items() if TORCHS else ():
        found["active_of"][name] = {state: [peak.bytes for peak in peaks] for state, peaks in states.items()}
        found["at_peaks_of"][name] = {
            state: [plain_instants(peak) for peak in peaks] for state, peaks in states.items()
        }
    for stats in tracker.memory_tracking.values():
        states = found["modules"][stats.mod_fqn] = {}
        for state, snapshots in stats.snapshots.items():
            pairs = [sorted_out(snapshot) for snapshot in snapshots]
            states[state.value] = [snapshot for snapshot, _ in pairs]
            if "Peak" not in state.value:
                found["active_of"].setdefault(stats.mod_fqn, {})[state.value] = [active for _, active in pairs]
        if not under_fsdp:
            found["own"][stats.mod_fqn] = [stats.parameter_mem, stats.buffer_mem, stats.input_mem, stats.output_mem]
    found["printed"] = printed(tracker)
    return found


def printed(tracker):
    """The text that a tracker prints after training, when only registered memory is live."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        for units in ("B", "KiB"):  # In larger units torch's total rounds to zero and is not printed.
            tracker.display_snapshot("current", units=units)
    return [line for line in text.getvalue().splitlines() if "Active:" not in line and "Recomputed:" not in line]


def settle():
    matrix = torch.ones(2, 2, device=GPU, requires_grad=True)
    (matrix @ matrix).sum().backward()
    del matrix
    while gc.collect():
        pass
    torch.cuda.empty_cache()
    return active_bytes("current")


def main():
    gc.freeze()  # The collector then skips the imported objects.
    for line in sys.stdin.read().splitlines():
        left = settle()
        print(json.dumps({**run(dict(word.split("=") for word in line.split())), "left": left}), flush=True)


if __name__ == "__main__":
    main()
