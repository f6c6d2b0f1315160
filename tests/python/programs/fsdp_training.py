"""Training under torch's FSDP2 as a case describes it: the Python version of tests/fsdp/training.h.

A case is a line of `key=value` words, from fsdp_cases.py.
"""

import contextlib

import torch
import torch.distributed as dist
from models import fsdp_llama, fsdp_models
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, HSDPMeshInfo, ShardPlacementResult
from torch.distributed.tensor import DTensor, Shard

KINDS = {"network": fsdp_models.NetworkCase, "gpt": fsdp_models.GPTCase, "llama": fsdp_llama.LlamaCase}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}


class Case:
    def __init__(self, line):
        self.line = line
        self.words = dict(word.split("=") for word in line.split())

    def has(self, key):
        return key in self.words

    def text(self, key, otherwise=None):
        return self.words.get(key, otherwise)

    def number(self, key, otherwise=0):
        return int(self.words.get(key, otherwise))

    def dtype(self, key):
        return DTYPES[self.words[key]] if key in self.words else None


class Training:
    """A model, sharded and with its optimizer. `look(phase)` is called before each part of a step."""

    def __init__(self, case, device, look=lambda phase: None, plain=False):
        self.case, self.device, self.look = case, device, look
        self.kind = KINDS[case.text("model")](case)
        look("build")
        with torch.device(case.text("built")) if case.has("built") else contextlib.nullcontext():
            self.model = self.kind.build()
        self.blocks = self.kind.blocks(self.model)
        if case.has("store"):
            self.model.to(case.dtype("store"))
        self.sizes = {name: param.size() for name, param in self.model.named_parameters()}
        self.freeze()
        self.fill()
        if not plain:
            look("shard")
            self.shard()
            self.configure()
        if case.text("built") == "meta":
            look("materialise")
            self.model.to_empty(device="cpu" if case.has("offload") else device)
            self.fill()
        look("optimizer")
        self.optimizer = self.make_optimizer()

    def freeze(self):
        if self.case.has("frozen"):  # All parameters of some blocks, and single parameters of others.
            self.blocks[1].requires_grad_(False)
            for param in self.blocks[0].parameters():
                if param.dim() == 1:
                    param.requires_grad_(False)

    @torch.no_grad()
    def fill(self):
        if self.device != "cpu" and not self.case.has("fill"):
            return
        for index, (name, param) in enumerate(self.model.named_parameters()):
            if param.is_meta:
                continue
            full = fsdp_models.numbers(self.sizes[name].numel(), index + 1).view(self.sizes[name]).to(param.dtype)
            if not isinstance(param, DTensor):
                param.copy_(full)
            elif param.to_local().numel() > 0:  # Materialised as a shard of the only mesh at that time.
                param.to_local().copy_(full.chunk(dist.get_world_size())[dist.get_rank()])
        if isinstance(self.model, fsdp_models.GPT) and not self.model.order.is_meta:
            self.model.order.copy_(torch.arange(self.kind.context))

    def units(self):
        """The blocks that are sharded as their own group."""
        return [] if self.case.text("wrap") == "root" else self.blocks

    def shard(self):
        case, world = self.case, dist.get_world_size()
        hsdp = case.number("hsdp")
        if hsdp:
            mesh = init_device_mesh(self.device, (hsdp, world // hsdp), mesh_dim_names=("replicate", "shard"))
        else:
            mesh = init_device_mesh(self.device, (world,))
        options = {"mesh": mesh}
        reshard = case.text("reshard")
        if reshard is not None:
            options["reshard_after_forward"] = reshard == "true" if reshard.isalpha() else int(reshard)
        cast_inputs = bool(case.number("cast_inputs", 1))
        options["mp_policy"] = MixedPrecisionPolicy(case.dtype("param"), case.dtype("reduce"), None, cast_inputs)
        options["offload_policy"] = (
            CPUOffloadPolicy(pin_memory=case.text("offload") == "pin") if case.has("offload") else OffloadPolicy()
        )
        if case.has("shard_dim"):
            options["shard_placement_fn"] = lambda param: self.along(param, mesh.size(-1))
        if case.has("second_mesh"):
            second = self.second_mesh(case.text("second_mesh"), world)
            options["shard_placement_fn"] = lambda param: (
                ShardPlacementResult(None, second) if param.dim() == 2 and param.size(0) < param.size(1) else None
            )
        if case.has("ignored"):
            options["ignored_params"] = {self.model.head.weight}
            self.model.head.weight.data = self.model.head.weight.data.to(self.device)
        for block in self.units():
            fully_shard(block, **options)
        if case.has("separate"):
            fully_shard(self.model.tokens, **options)
        if case.has("group"):
            fully_shard([self.model.tokens, self.model.norm, self.model.head], **options)
        output = case.dtype("output")
        options["mp_policy"] = MixedPrecisionPolicy(case.dtype("param"), case.dtype("reduce"), output, cast_inputs)
        fully_shard(self.model, **options)

    def along(self, param, ranks):
        dim = self.case.number("shard_dim")
        if param.dim() < 2 or param.size(dim) % ranks:
            return None
        return Shard(dim)

    def second_mesh(self, kind, world):
        mesh = init_device_mesh(self.device, (2, world // 2), mesh_dim_names=("replicate", "shard"))
        if kind == "hsdp":
            return HSDPMeshInfo(mesh, shard_mesh_dim=1, replicate_mesh_dim=0)
        return FSDPMeshInfo(mesh["shard"], shard_mesh_dim=0)

    def configure(self):
        case, model, blocks = self.case, self.model, self.units()
        if case.has("prefetch"):
            ahead = case.number("prefetch")
            for index, block in enumerate(blocks):
                block.set_modules_to_forward_prefetch(blocks[index + 1 : index + 1 + ahead])
                block.set_modules_to_backward_prefetch(blocks[:index][::-1][:ahead])
            model.set_modules_to_forward_prefetch(blocks[:ahead])
            model.set_modules_to_backward_prefetch(blocks[::-1][:ahead])
        if case.has("set_reshard_after_forward"):
            model.set_reshard_after_forward(bool(case.number("set_reshard_after_forward")))
        if case.has("reduce_unused"):
            model.set_reduce_scatter_unused_params(True)
        if case.has("input_buffers"):
            model.set_reduce_scatter_max_input_buffers(case.number("input_buffers"))
        if case.has("unshard_in_backward"):
            (model.tokens if case.has("separate") else blocks[0]).set_unshard_in_backward(False)
        if case.has("divide"):
            for module in (*blocks, model):
                module.set_gradient_divide_factor(float(case.text("divide")))
        if case.has("force_sum"):
            for module in (*blocks, model):
                module.set_force_sum_reduction_for_comms(True)
        if case.has("separate_reduce_group"):
            model.set_separate_reduce_scatter_group(True)
        if case.has("all_reduce_hook"):
            for module in (*blocks, model):
                module.set_all_reduce_hook(lambda gradients: gradients.mul_(0.5))
        if case.has("unshard_async"):
            for module in (*blocks, model):
                module._set_unshard_async_op(True)
        if case.text("unused") == "odd_ranks":
            for block in self.model.layers:
                block.use_spare = dist.get_rank() % 2 == 0

    def make_optimizer(self):
        name = self.case.text("optimizer", "adamw_foreach")
        params = list(self.model.parameters())
        if name == "sgd":
            return torch.optim.SGD(params, lr=0.01, momentum=0.9, foreach=False)
        form = name.removeprefix("adamw_")
        forms = {"forloop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
        return torch.optim.AdamW(params, lr=0.01, **forms[form])

    def before_backward(self, micro, last):
        """Sets the options that change for each backward pass of a step."""
        model, accumulate = self.model, self.case.text("accumulate", "").split("+")
        if "no_sync" in accumulate:
            model.set_requires_gradient_sync(last)
        if "no_all_reduce" in accumulate:
            model.set_requires_all_reduce(last)
        if "keep" in accumulate:
            model.set_reshard_after_backward(last)
        if "last" in accumulate:
            model.set_is_last_backward(last)

    def unshard_by_hand(self):
        handles = [block.unshard(async_op=True) for block in self.blocks[:2]]
        self.model.unshard()
        for handle in handles:
            handle.wait()

    def backward(self, name, seed):
        inputs, targets = self.kind.data(seed)
        if targets is not None:
            targets = targets.to(self.device)
        self.look(f"{name} forward")
        if self.case.has("chunked"):
            return self.kind.backward_by_chunks(self.model, inputs, targets)
        loss = self.kind.loss(self.model, inputs, targets)
        self.look(f"{name} backward")
        loss.backward()
        self.look(f"{name} after backward")
        return loss.detach() if self.device == "cpu" else None

    def run(self, rank, see=lambda step, losses: None):
        """Calls `see(step, losses)` after the backward passes of a step and before the optimizer's step."""
        micros = 2 if self.case.has("accumulate") else 1
        for step in range(self.case.number("steps", 3)):
            losses = []
            if self.case.has("by_hand"):
                self.look(f"step {step} unshard")
                self.unshard_by_hand()
            for micro in range(micros):
                self.before_backward(micro, micro == micros - 1)
                losses.append(self.backward(f"step {step}.{micro}", step * 1000 + micro * 100 + rank))
            if self.case.has("by_hand"):
                self.look(f"step {step} reshard")
                self.model.reshard()
                self.blocks[0].reshard()
            see(step, losses)
            if self.case.has("clip"):
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), float(self.case.text("clip")))
            self.look(f"step {step} optimizer")
            self.optimizer.step()
            if self.case.has("optimizer_event"):
                self.model.set_post_optim_event(torch.get_device_module(self.device).current_stream().record_event())
            self.look(f"step {step} zero_grad")
            self.optimizer.zero_grad()

    def batch(self, seed):
        """Inputs and targets on the device of the model."""
        return tuple(data if data is None else data.to(self.device) for data in self.kind.data(seed))

    def watched_step(self, inputs, targets, look):
        """One step with only its passes and the optimizer's step; `look(point)` is called after each part."""
        look("before")
        self.watched_passes(inputs, targets, look)
        look("loss dropped")
        self.optimizer.step()
        look("step")
        self.optimizer.zero_grad()
        look("zero_grad")

    def watched_passes(self, inputs, targets, look):
        loss = self.kind.loss(self.model, inputs, targets)
        look("forward")
        loss.backward()
        look("backward")
