"""torch.distributed.pipelining for a lone rank, which holds some of the stages.

Before the first step the stages vote whether all of them know the metadata of their inputs and outputs. If not, each stage sends
metadata to the next. Here the peers vote like this rank. The metadata from a neighbour comes from this rank:

- gradients from the next stage have the metadata of this stage's outputs;
- inputs have the metadata of the ``input_args`` of this stage, if it has any;
- if not, and this rank holds an earlier stage, inputs have the metadata of that stage's outputs: stages are assumed equal;
- if not, and the variable PLIMSOLL_STAGES names a file, inputs have the metadata of an earlier stage's outputs in a run with
  the same file: first run a rank with the first stage, then the others.

In all other cases a stage cannot run alone, and the error says what to do.
"""

import dataclasses
import os
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import torch.distributed as dist

from plimsoll.wrapping import around


class _SentOn(NamedTuple):
    stage_index: int
    metas: tuple[Any, ...]


_sent_on: dict[tuple[int, int], _SentOn] = {}  # by pipeline: its group and its number of stages


def _pipeline_of(stage: Any) -> tuple[int, int]:
    return (id(stage.group), stage.num_stages)


_VARIABLE = "PLIMSOLL_STAGES"


def _save_for_later_runs(sent: _SentOn, num_stages: int) -> None:
    path = os.environ.get(_VARIABLE)
    if path:
        with open(path, "wb") as file:
            pickle.dump((num_stages, tuple(sent)), file)


def _saved_by_earlier_run(num_stages: int) -> _SentOn | None:
    """None without a file name, or if the file does not exist."""
    path = os.environ.get(_VARIABLE)
    if not path or not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        stages_then, sent = pickle.load(file)
    if stages_then != num_stages:
        raise ValueError(
            f"{_VARIABLE}: {path} is from a pipeline of {stages_then} stages, but this one has {num_stages}"
        )
    return _SentOn(*sent)


def _raise_unknown_inputs(stage: Any, error: Callable[[str], Exception]) -> NoReturn:
    raise error(
        f"pipeline stage {stage.stage_index} of {stage.num_stages} runs alone: it does not know what stage "
        f"{stage.stage_index - 1} sends. First run a rank that holds the first stage, then this rank, both with "
        f"{_VARIABLE}=FILE in the environment. Or give PipelineStage example tensors of one microbatch: "
        "input_args=… (and output_args=…); tensors on the meta device are enough."
    )


def _with_grad(meta: Any, requires_grad: bool) -> Any:
    return dataclasses.replace(meta, requires_grad=requires_grad and meta.dtype.is_floating_point)


def change_stages(module: ModuleType) -> None:
    if hasattr(module.PipelineStage, "_recv_meta"):
        _answer_for_neighbours(module, module.PipelineStage)
    elif hasattr(
        module.PipelineStage, "_shape_inference"
    ):  # Before torch 2.13, stages with input_args need no metadata.
        _refuse_to_ask(module.PipelineStage)


def _answer_for_neighbours(module: ModuleType, stage_type: Any) -> None:
    def inputs(stage: Any) -> tuple[Any, ...]:
        given = stage._user_meta.inputs
        sent_on = _sent_on.get(_pipeline_of(stage)) or _saved_by_earlier_run(stage.num_stages)
        if given is None and sent_on is not None and sent_on.stage_index < stage.stage_index:
            given = sent_on.metas
        if given is None:
            _raise_unknown_inputs(stage, module.PipeliningMetadataError)
        # The output of another stage has a gradient, also if the example tensor does not require one.
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

    @around(stage_type, "_send_meta")
    def send_and_keep(send: Any, self: Any, meta: Any, dst_stage: int) -> None:
        if dst_stage > self.stage_index:
            sent = _sent_on[_pipeline_of(self)] = _SentOn(self.stage_index, meta.forward_metas)
            if self.is_first:
                _save_for_later_runs(sent, self.num_stages)
        send(self, meta, dst_stage)

    @around(stage_type, "_forward_metadata_inference")
    def infer_noting_backward(infer: Any, self: Any, args: Any, kwargs: Any = None, has_backward: bool = False) -> Any:
        self._lone_has_backward = has_backward
        return infer(self, args, kwargs, has_backward)

    stage_type._recv_meta = receive


def _refuse_to_ask(stage_type: Any) -> None:
    @around(stage_type, "_shape_inference")
    def infer_or_refuse(infer: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_first and self.stage_index_to_group_rank[self.stage_index - 1] != self.group_rank:
            _raise_unknown_inputs(self, RuntimeError)
        return infer(self, *args, **kwargs)


def change_schedules(module: ModuleType) -> None:
    if not hasattr(module._PipelineSchedule, "_warmup_p2p"):  # Before torch 2.13 the stages do not vote.
        return

    @around(module._PipelineSchedule, "_warmup_p2p")
    def vote(warm_up: Any, self: Any, stages: Any, has_backward: bool, p2p_done: bool) -> None:
        warm_up(self, stages, has_backward, p2p_done)
        if not all(isinstance(stage, module.PipelineStage) for stage in stages):
            return
        mode = module.InferenceMode
        asks = any(mode.needs_dynamic(stage._user_meta, has_backward) for stage in stages)
        for stage in stages:
            stage._inference_mode = mode.DYNAMIC if asks else mode.STATIC
