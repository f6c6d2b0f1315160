"""Everything in torch that a tracker could patch, by name: functions and properties of torch's modules and classes, and hooks
of the process, of modules, of parameters and of optimizers. A test compares it before and after a tracker's scope."""

import sys
from types import ModuleType

import torch
import torch.distributed.fsdp
import torch.utils.checkpoint

CLASSES = (torch.UntypedStorage, torch.Tensor, torch.nn.Module, torch.optim.Optimizer, torch.optim.AdamW)


HOOKS_OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def modules():
    """The modules of torch that hold FSDP2, checkpointing, and hooks of modules and optimizers."""
    fsdp2 = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("torch.distributed.fsdp._fully_shard.")
    ]
    return [
        torch.nn.modules.module,
        torch.utils.checkpoint,
        torch.autograd.graph,
        sys.modules["torch.optim.optimizer"],
        *fsdp2,
    ]


def parts_of(owner, name):
    """(name, value) for the owner's own code and for each hook in its tables."""
    tables = {key: getattr(owner, key) for key in HOOKS_OF_TENSORS} if isinstance(owner, torch.Tensor) else {}
    for key, value in list({**vars(owner), **tables}.items()):
        if isinstance(value, dict) and "hooks" in key:
            yield from ((f"{name}.{key}[{number}]", hook) for number, hook in value.items())
        elif isinstance(value, (staticmethod, classmethod)):
            yield f"{name}.{key}", value.__func__
        elif callable(value) or isinstance(value, (property, ModuleType)):
            yield f"{name}.{key}", value


def objects_of(model, optimizer):
    """(object, name) for the objects of one training."""
    for name, module in model.named_modules():
        yield module, f"module {name}"
        if isinstance(module, torch.distributed.fsdp.FSDPModule):
            state = module._get_fsdp_state()
            yield state, f"FSDPState {name}"
            for group in state._fsdp_param_groups:
                yield group, f"FSDPParamGroup {name}"
                for param in group.fsdp_params:
                    yield param, f"FSDPParam {param._param_fqn}"
                    yield param.sharded_param, f"parameter {param._param_fqn}"
                    yield param._unsharded_param, f"whole parameter {param._param_fqn}"
    if not isinstance(model, torch.distributed.fsdp.FSDPModule):
        yield from ((parameter, f"parameter {name}") for name, parameter in model.named_parameters())
    yield optimizer, "optimizer"


def current(model, optimizer):
    """{name: the code or hook that it names now}."""
    owners = [(owner, owner.__name__) for owner in (*modules(), *CLASSES)]
    for module in modules():
        owners += [(value, value.__qualname__) for value in vars(module).values()
                   if isinstance(value, type) and value.__module__ == module.__name__]  # fmt: skip
    return {name: part for owner in (*owners, *objects_of(model, optimizer)) for name, part in parts_of(*owner)}


def changed(before, after):
    """The names that were added, removed, or now name another object."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) is not after.get(name))
