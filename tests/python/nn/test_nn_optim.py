"""The optimizers and clip_grad_norm_ of `nn` against torch's: numbers on CPU equal to the bit, allocations on the
pretend GPU equal to the event (action, address and requested size).

Run as a script this file is the oracle: it runs the cases on standard input with torch.optim, as tests/nn/programs/nn_optim_trace.cpp
runs them with ours.
"""

import itertools
import json
import os
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
PROGRAM = BUILD / "tests" / "programs" / "nn_optim_trace"

FORMS = ("forloop", "foreach", "fused")
MANY = "f32:3x4+f32:+bf16:5+f32:2x3x2+bf16:2x2"
TWO_GROUPS = "f32:3x4+bf16:5|f32:7+f32:"


def case(**words):
    return " ".join(f"{key}={value}" for key, value in words.items())


def matrix(**lists):
    """Each combination of the given values; a value "" leaves its key out."""
    for values in itertools.product(*lists.values()):
        yield {key: value for key, value in zip(lists, values) if value != ""}


def number_cases():
    def add(optimizer, **words):
        cases.append(case(**{"optimizer": optimizer, "device": "cpu", "steps": 6, **words}))

    cases = []
    for optimizer in ("adam", "adamw"):
        for form, words in itertools.product(
            FORMS + ("default",), matrix(amsgrad=("", 1), weight_decay=("", 0, 0.125), maximize=("", 1))
        ):
            add(optimizer, implementation=form, groups=MANY, lr=0.01, **words)
        for form in FORMS:
            add(optimizer, implementation=form, groups=TWO_GROUPS, lr=0.01, beta1=0.75, beta2=0.9, eps=0.001)
            add(optimizer, implementation=form, groups=MANY, without_gradient=2)
            add(optimizer, implementation=form, groups="f64:3x5+f64:", weight_decay=0.1)
            add(optimizer, implementation=form, groups=MANY, set_to_none=0, clip=0.5)
    for form, words in itertools.product(
        FORMS + ("default",),
        matrix(
            momentum=("", 0.875), dampening=("", 0.25), weight_decay=("", 0.125), nesterov=("", 1), maximize=("", 1)
        ),
    ):
        if "nesterov" in words and ("dampening" in words or "momentum" not in words):
            continue
        add("sgd", implementation=form, groups=MANY, lr=0.01, **words)
    for form in FORMS:
        add("sgd", implementation=form, groups=TWO_GROUPS, lr=0.01, momentum=0.5, dampening=0.5)
        add("sgd", implementation=form, groups=MANY, without_gradient=2, lr=0.1)
    for form in ("forloop", "foreach"):
        add("sgd", implementation=form, groups=MANY, without_gradient=2, momentum=0.5)
    for words in matrix(clip=(0.1, 1000), norm_type=("", 1, 3, "inf"), clip_foreach=("", 0, 1)):
        add("sgd", implementation="forloop", groups=MANY, without_gradient=0, error_if_nonfinite=1, **words)
    return cases


# Different sizes, not powers of two, on both sides of the allocator's limit for small blocks.
CARD = "f32:300x40+f32:+bf16:5000+f32:1100x300+bf16:70x90+f32:129"
CARD_TWO_GROUPS = "f32:300x40+bf16:5000|f32:1100x300+f32:"


def memory_cases():
    def add(optimizer, **words):
        cases.append(case(**{"optimizer": optimizer, "device": "cuda", "steps": 3, "groups": CARD, **words}))

    cases = []
    forms = FORMS + ("default",)
    for optimizer in ("adam", "adamw"):
        for form, words in itertools.product(
            forms, matrix(amsgrad=("", 1), weight_decay=("", 0, 0.125), maximize=("", 1), capturable=("", 1))
        ):
            add(optimizer, implementation=form, **words)
    for form, words in itertools.product(
        forms, matrix(momentum=("", 0.875), weight_decay=("", 0.125), nesterov=("", 1), maximize=("", 1))
    ):
        if "nesterov" not in words or "momentum" in words:
            add("sgd", implementation=form, **words)
    for optimizer, form in itertools.product(("adam", "adamw", "sgd"), forms):
        momentum = {"momentum": 0.5} if optimizer == "sgd" else {}
        add(optimizer, implementation=form, groups=CARD_TWO_GROUPS, weight_decay=0.1, **momentum)
        add(optimizer, implementation=form, set_to_none=0)
        add(optimizer, implementation=form, without_gradient=3)
        add(optimizer, implementation=form, clip=1, **momentum)
    for words in matrix(clip_foreach=("", 0, 1), norm_type=("", 1, "inf"), error_if_nonfinite=("", 1)):
        add("sgd", implementation="default", clip=1, without_gradient=0, **words)
    return cases


# The oracle.


def parameter(torch, spec, index, device):
    dtype, sizes = spec.split(":")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}[dtype]
    tensor = torch.empty([int(size) for size in sizes.split("x") if size], dtype=dtype, device=device)
    if device == "cpu":
        numbers = (torch.arange(tensor.numel()).mul(29) + index * 7).remainder(101).sub(50)
        tensor.copy_(numbers.double().div(32).view(tensor.shape))
    return tensor.requires_grad_()


def gradient(torch, param, index, step):
    tensor = torch.empty_like(param)
    if not param.is_cuda:
        numbers = (torch.arange(tensor.numel()).mul(37) + (index * 11 + step * 101)).remainder(193).sub(96)
        tensor.copy_(numbers.double().div(64).view(tensor.shape))
    return tensor


def optimizer_of(torch, words):
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[words["optimizer"]]
    names = ("lr", "eps", "weight_decay", "momentum", "dampening")
    options = {"lr": 1e-3, **{name: float(words[name]) for name in names if name in words}}
    flags = ("amsgrad", "maximize", "capturable", "nesterov")
    options.update({name: bool(int(words[name])) for name in flags if name in words})
    if "beta1" in words:
        options["betas"] = (float(words["beta1"]), float(words["beta2"]))
    form = {"default": {}, "forloop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    options.update(form[words["implementation"]])

    groups = []
    indices = itertools.count()
    weight_decay = options.get("weight_decay", 0.01 if kind is torch.optim.AdamW else 0)
    changed = {"lr": options["lr"], "weight_decay": weight_decay}
    for group in words["groups"].split("|"):
        params = [parameter(torch, spec, next(indices), words["device"]) for spec in group.split("+")]
        if groups:
            changed = {"lr": changed["lr"] / 2, "weight_decay": changed["weight_decay"] + 0.03125}
        groups.append({"params": params, **(changed if groups else {})})
        del params
    return kind(groups, **options)


def train(torch, words, dump):
    optimizer = optimizer_of(torch, words)
    params = [param for group in optimizer.param_groups for param in group["params"]]
    without = int(words.get("without_gradient", -1))
    for step in range(int(words["steps"])):
        for index, param in enumerate(params):
            if index != without or step % 2 == 1:
                param.grad = gradient(torch, param, index, step)
        if "clip" in words:
            foreach = bool(int(words["clip_foreach"])) if "clip_foreach" in words else None
            norm = torch.nn.utils.clip_grad_norm_(
                params,
                float(words["clip"]),
                float(words.get("norm_type", 2)),
                error_if_nonfinite=bool(int(words.get("error_if_nonfinite", 0))),
                foreach=foreach,
            )
            dump(f"{step}.norm", norm)
            del norm
        optimizer.step()
        for index, param in enumerate(params):
            dump(f"{step}.{index}", param)
            if param.grad is not None:
                dump(f"{step}.{index}.grad", param.grad)
        for index, param in enumerate(params):
            for name, state in optimizer.state.get(param, {}).items():
                if state is not None:
                    dump(f"{step}.{index}.{name}", state)
            state = None
        optimizer.zero_grad(set_to_none=bool(int(words.get("set_to_none", 1))))
    # Freed in the program's order: the list, the optimizer's state, then its parameters.
    param = None
    params.clear()


def numbers_of(torch, words):
    found = []

    def dump(name, tensor):
        data = tensor.detach().reshape(-1).contiguous().view(torch.uint8)
        found.append([name, bytes(data.tolist()).hex()])

    train(torch, words, dump)
    return found


def events_of(torch, words):
    torch.cuda.memory.empty_cache()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None, stacks="python", clear_history=True)
    train(torch, words, lambda name, tensor: None)
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    return [
        [event["action"], event["addr"], event["size"]]
        for event in trace
        if event["action"] in ("alloc", "free_completed")
    ]


def main():
    import torch

    if torch.cuda.is_available():
        torch.empty(1, device="cuda")
    for line in sys.stdin.read().splitlines():
        words = dict(word.split("=") for word in line.split(" "))
        print(json.dumps((numbers_of if words["device"] == "cpu" else events_of)(torch, words)))


if __name__ == "__main__":
    main()
    sys.exit()

# The tests.

import pytest  # noqa: E402  (the oracle does without it)


def why_not():
    if util.find_spec("torch") is None or not metadata.version("torch").startswith("2.13."):
        return "the optimizers mirror torch 2.13"
    return None if PROGRAM.exists() else f"{PROGRAM.name} is not built"


pytestmark = [pytest.mark.recorded, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def has_cuda_build():
    return (Path(util.find_spec("torch").origin).parent / "lib" / "libtorch_cuda.so").exists()


def lines_of(command, cases, env=None):
    env = {**os.environ, **(env or {})}
    done = subprocess.run(command, input="\n".join(cases) + "\n", capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(cases)
    return dict(zip(cases, found))


@pytest.fixture(scope="module")
def both():
    """The output of our optimizers and of torch's in each case; one process imports torch for all cases."""
    cases = number_cases() + (memory_cases() if has_cuda_build() else [])
    assert len(set(cases)) == len(cases)
    ours = relative(lines_of([PROGRAM], cases))
    env = {}
    if has_cuda_build():
        env["LD_PRELOAD"] = ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*")))
    return ours, relative(lines_of([sys.executable, __file__], cases, env))


def relative(found):
    """Addresses relative to the case's first, because the pretend GPU's memory starts elsewhere in each process."""
    for name, lines in found.items():
        if "device=cuda" in name:
            first = lines[0][1]
            found[name] = [[action, address - first, size] for action, address, size in lines]
    return found


def first_difference(ours, theirs):
    for index, (one, other) in enumerate(itertools.zip_longest(ours, theirs)):
        if one != other:
            return index, one, other
    return None


def differences(both, cases):
    ours, theirs = both
    return {name: first_difference(ours[name], theirs[name]) for name in cases if ours[name] != theirs[name]}


def test_parameters_states_gradients_and_norms_equal_torchs_to_the_bit(both):
    ours, _ = both
    assert differences(both, number_cases()) == {}
    assert all(len(ours[name]) > 6 for name in number_cases())


@pytest.mark.skipif(why_not() is None and not has_cuda_build(), reason="torch is not a CUDA build")
def test_allocation_events_equal_torchs(both):
    ours, _ = both
    assert differences(both, memory_cases()) == {}
    for name in memory_cases():
        live = {}
        for action, address, size in ours[name]:
            if action == "alloc":
                live[address] = size
            else:
                assert live.pop(address) == size
        assert live == {}, name


def test_the_forms_of_an_optimizer_differ_in_their_allocations(both):
    """Without this, the equality above could hold for empty output."""
    if not has_cuda_build():
        pytest.skip("torch is not a CUDA build")
    ours, _ = both
    words = {"optimizer": "adamw", "device": "cuda", "steps": 3, "groups": CARD}
    found = {form: ours[case(**words, implementation=form)] for form in FORMS + ("default",)}
    assert found["forloop"] != found["foreach"] != found["fused"] != found["forloop"]
    assert found["default"] == found["foreach"]
