"""torch.distributed.pipelining for a lone rank, which holds some of the stages and hears of no other.

Before the first step the stages agree on whether all of them know their inputs and outputs, and if not they tell each
other, stage after stage. The peers vote as this rank does. What a neighbour would tell is known here:

- the gradients that the next stage sends back are like this stage's outputs;
- the inputs are like the ``input_args`` that this stage was made with, if it was;
- else, where this rank holds an earlier stage too, like what that one sent on: the stages are taken to be alike;
- else, where the variable PLIMSOLL_STAGES names a file, like what an earlier stage sent on in a run that was given the
  same file: run a rank that holds the first stage, then the others.

A stage for which none of these holds cannot run alone: the error says what to do.
"""

import dataclasses
import functools
import os
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import torch.distributed as dist

from plimsoll.run.torch_patches.after_import import after_import


class _SentOn(NamedTuple):
    stage_index: int
    metas: tuple[Any, ...]


_sent_on: dict[tuple[int, int], _SentOn] = {}  # by the pipeline: its group and its number of stages


def _pipeline_of(stage: Any) -> tuple[int, int]:
    return (id(stage.group), stage.num_stages)


_VARIABLE = "PLIMSOLL_STAGES"


def _tell_later_runs(sent: _SentOn, num_stages: int) -> None:
    path = os.environ.get(_VARIABLE)
    if path:
        with open(path, "wb") as file:
            pickle.dump((num_stages, tuple(sent)), file)


def _told_by_earlier_run(num_stages: int) -> _SentOn | None:
    """None where no file is named, or none was written."""
    path = os.environ.get(_VARIABLE)
    if not path or not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        stages_then, sent = pickle.load(file)
    if stages_then != num_stages:
        raise ValueError(f"{_VARIABLE}: {path} is of a pipeline of {stages_then} stages, and this one has {num_stages}")
    return _SentOn(*sent)


def _say_what_to_give(stage: Any, error: Callable[[str], Exception]) -> NoReturn:
    raise error(
        f"pipeline stage {stage.stage_index} of {stage.num_stages} runs alone: there is no stage "
        f"{stage.stage_index - 1} to tell it what it receives. Run a rank that holds the first stage before this one, "
        f"both with {_VARIABLE}=FILE in the environment; or give PipelineStage example tensors of one microbatch: "
        "input_args=… (and output_args=…); tensors on the meta device will do."
    )


def _with_grad(meta: Any, requires_grad: bool) -> Any:
    return dataclasses.replace(meta, requires_grad=requires_grad and meta.dtype.is_floating_point)


def _stage_imported(module: ModuleType) -> None:
    stage_type = module.PipelineStage
    if hasattr(stage_type, "_recv_meta"):
        _answer_for_neighbours(module, stage_type)
    elif hasattr(stage_type, "_shape_inference"):  # before torch 2.13, stages made with input_args do not ask
        _refuse_to_ask(stage_type)


def _answer_for_neighbours(module: ModuleType, stage_type: Any) -> None:
    infer, send = stage_type._forward_metadata_inference, stage_type._send_meta

    def inputs(stage: Any) -> tuple[Any, ...]:
        given = stage._user_meta.inputs
        sent_on = _sent_on.get(_pipeline_of(stage)) or _told_by_earlier_run(stage.num_stages)
        if given is None and sent_on is not None and sent_on.stage_index < stage.stage_index:
            given = sent_on.metas
        if given is None:
            _say_what_to_give(stage, module.PipeliningMetadataError)
        # What another stage computed has a gradient; an example tensor need not say so.
        return tuple(_with_grad(meta, stage._lone_has_backward) for meta in given)

    def output_grads(stage: Any) -> tuple[Any, ...]:
        return tuple(_with_grad(meta, False) if meta.requires_grad else None for meta in stage._stage_meta.outputs)

    def receive(self: Any, src_stage: int) -> Any:
        if src_stage < self.stage_index:
            answer = module._StageForwardMeta(forward_metas=inputs(self))
        else:
            answer = module._StageBackwardMeta(backward_metas=output_grads(self))
        source = self._resolve_peer_global_rank(src_stage)
        dist.recv_object_list([answer], src=source, group=self.group, device=self.device, use_batch=True)
        return answer

    @functools.wraps(send)
    def send_and_keep(self: Any, meta: Any, dst_stage: int) -> None:
        if dst_stage > self.stage_index:
            sent = _sent_on[_pipeline_of(self)] = _SentOn(self.stage_index, meta.forward_metas)
            if self.is_first:
                _tell_later_runs(sent, self.num_stages)
        send(self, meta, dst_stage)

    @functools.wraps(infer)
    def infer_knowing(self: Any, args: Any, kwargs: Any = None, has_backward: bool = False) -> Any:
        self._lone_has_backward = has_backward
        return infer(self, args, kwargs, has_backward)

    stage_type._recv_meta = receive
    stage_type._send_meta = send_and_keep
    stage_type._forward_metadata_inference = infer_knowing


def _refuse_to_ask(stage_type: Any) -> None:
    infer = stage_type._shape_inference

    @functools.wraps(infer)
    def infer_or_refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_first and self.stage_index_to_group_rank[self.stage_index - 1] != self.group_rank:
            _say_what_to_give(self, RuntimeError)
        return infer(self, *args, **kwargs)

    stage_type._shape_inference = infer_or_refuse


def _schedules_imported(module: ModuleType) -> None:
    schedule = module._PipelineSchedule
    warm_up = getattr(schedule, "_warmup_p2p", None)
    if warm_up is None:  # before torch 2.13 there was no vote
        return

    @functools.wraps(warm_up)
    def vote(self: Any, stages: Any, has_backward: bool, p2p_done: bool) -> None:
        warm_up(self, stages, has_backward, p2p_done)
        if not all(isinstance(stage, module.PipelineStage) for stage in stages):
            return
        mode = module.InferenceMode
        asks = any(mode.needs_dynamic(stage._user_meta, has_backward) for stage in stages)
        for stage in stages:
            stage._inference_mode = mode.DYNAMIC if asks else mode.STATIC

    schedule._warmup_p2p = vote


def install() -> None:
    after_import.call("torch.distributed.pipelining.stage", _stage_imported)
    after_import.call("torch.distributed.pipelining.schedules", _schedules_imported)
