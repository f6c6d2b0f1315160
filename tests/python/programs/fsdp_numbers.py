"""torch's side of test_fsdp_numbers.py: Python FSDP2 over gloo, all ranks of all world sizes from one start of torch.

Cases on standard input, one a line, with a word `world`; `--values` prints the numbers beside their sums. Standard output
has one JSON object: for each case the lines of each rank (as fsdp_numbers.cpp prints them), and under "reference" the
result of training without FSDP in one process.
"""

import json
import os
import sys
import tempfile
import zlib

import torch
import torch._dynamo  # noqa: F401  An optimizer's step would import it, in each rank by itself.
import torch.distributed as dist
from fsdp_training import Case, Training
from torch.distributed.tensor import DTensor

VALUES = "--values" in sys.argv


def print_of(tensor):
    """The checksum of a tensor's bytes, or None for None."""
    if tensor is None:
        return None
    data = tensor.detach().cpu().contiguous().reshape(-1)
    found = f"{zlib.crc32(data.view(torch.uint8).numpy().tobytes()):08x}" if data.numel() else "00000000"
    return [found, data.double().tolist()] if VALUES else found


def full(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def rank_of_case(case, rank):
    """The rank's gradients in each step, and full gradients in the last step."""
    training = Training(case, "cpu")
    steps = case.number("steps", 10)
    found = {"losses": [], "gradients": []}

    def see(step, losses):
        found["losses"].append([print_of(loss) for loss in losses])
        found["gradients"].append([print_of(local(param.grad)) for param in training.model.parameters()])
        if step + 1 == steps:
            wholes = {name: full(param.grad) for name, param in training.model.named_parameters()}
            found["full_gradients"] = {name: print_of(whole) for name, whole in wholes.items()}
            found["last_losses"] = [loss.item() for loss in losses]
            wholes = {name: whole.flatten().tolist() for name, whole in wholes.items() if whole is not None}
            found["last_gradients"] = wholes if rank == 0 else {}

    training.run(rank, see)
    found["shapes"] = {name: list(local(param).shape) for name, param in training.model.named_parameters()}
    found["full_parameters"] = {name: print_of(full(param)) for name, param in training.model.named_parameters()}
    return found


def reference(case, world):
    """The same training of the full model in one process: the mean over the batches of the ranks."""
    training = Training(case, "cpu", plain=True)
    micros = 2 if case.has("accumulate") else 1
    for step in range(case.number("steps", 10)):
        training.optimizer.zero_grad()
        losses = [[] for _ in range(world)]
        for rank in range(world):
            for micro in range(micros):
                inputs, targets = training.kind.data(step * 1000 + micro * 100 + rank)
                loss = training.kind.loss(training.model, inputs, targets)
                (loss / world).backward()
                losses[rank].append(loss.item())
        gradients = {name: param.grad for name, param in training.model.named_parameters()}
        gradients = {name: grad.flatten().tolist() for name, grad in gradients.items() if grad is not None}
        training.optimizer.step()
    return {"last_losses": losses, "last_gradients": gradients}


def run_rank(cases, rank, world, store, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, world), rank=rank, world_size=world)
    found = {}
    for line in cases:
        found[line] = rank_of_case(Case(line), rank)
        dist.barrier()
    with open(path, "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


def run_references(cases, path):
    torch.set_num_threads(1)
    with open(path, "w") as file:
        json.dump({line: reference(Case(line), Case(line).number("world")) for line in cases}, file)


def fork(work, *arguments):
    """Forks a process that does the work, and returns its id; torch is loaded once for all forks."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait(children):
    while children:
        child, status = os.wait()
        children.discard(child)
        if status:
            for other in children:
                os.kill(other, 9)
            sys.exit(f"a rank ended with status {status}")


def main():
    cases = [line for line in sys.stdin.read().splitlines() if line]
    found = {line: [] for line in cases}
    with tempfile.TemporaryDirectory() as folder:
        for world in sorted({Case(line).number("world") for line in cases}):
            lines = [line for line in cases if Case(line).number("world") == world]
            paths = [f"{folder}/{world}.{rank}" for rank in range(world)]
            wait(
                {fork(run_rank, lines, rank, world, f"{folder}/{world}.store", path) for rank, path in enumerate(paths)}
            )
            for path in paths:
                with open(path) as file:
                    for line, seen in json.load(file).items():
                        found[line].append(seen)
        plain = [line for line in cases if Case(line).has("reference")]
        wait({fork(run_references, plain, f"{folder}/reference")})
        with open(f"{folder}/reference") as file:
            references = json.load(file)
    json.dump({"ranks": found, "reference": references}, sys.stdout)


if __name__ == "__main__":
    main()
