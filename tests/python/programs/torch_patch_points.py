"""All that a tracker could have replaced or added to, by name, so that a test can ask whether it is as it was: functions and
properties of torch's modules and classes, hooks of the process, of modules, of parameters and of optimizers."""

import sys
from types import ModuleType

import torch
import torch.distributed.fsdp
import torch.utils.checkpoint

CLASSES = (torch.UntypedStorage, torch.Tensor, torch.nn.Module, torch.optim.Optimizer, torch.optim.AdamW)


HOOKS_OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def modules():
    """Where FSDP2, checkpoints, and hooks of modules and optimizers are."""
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
    """What stands in the owner's own names: code, and one by one the hooks of its tables."""
    tables = {key: getattr(owner, key) for key in HOOKS_OF_TENSORS} if isinstance(owner, torch.Tensor) else {}
    for key, value in list({**vars(owner), **tables}.items()):
        if isinstance(value, dict) and "hooks" in key:
            yield from ((f"{name}.{key}[{number}]", hook) for number, hook in value.items())
        elif isinstance(value, (staticmethod, classmethod)):
            yield f"{name}.{key}", value.__func__
        elif callable(value) or isinstance(value, (property, ModuleType)):
            yield f"{name}.{key}", value


def things_of(model, optimizer):
    """(it, its name) for what a training has of its own."""
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


def there_is(model, optimizer):
    """{name: what stands there}."""
    owners = [(owner, owner.__name__) for owner in (*modules(), *CLASSES)]
    for module in modules():
        owners += [(value, value.__qualname__) for value in vars(module).values()
                   if isinstance(value, type) and value.__module__ == module.__name__]  # fmt: skip
    return {name: part for owner in (*owners, *things_of(model, optimizer)) for name, part in parts_of(*owner)}


def changed(before, after):
    """The names under which something else stands, or something that was not there, or nothing any more."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) is not after.get(name))
