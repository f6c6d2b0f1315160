"""CUDA graphs: a replay does not run Python or hooks. The replay of a graph with an optimizer step is a step."""

import weakref
from typing import Any

from plimsoll.run.observe.hooks import Hooks
from plimsoll.wrapping import around


class Graphs:
    def __init__(self, torch: Any, hooks: Hooks) -> None:
        self._graph_type = getattr(torch.cuda, "CUDAGraph", None)
        self._hooks = hooks
        self._captured: Any | None = None
        self._with_optimizer: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self) -> None:
        kind = self._graph_type
        if kind is None or not all(name in vars(kind) for name in ("capture_begin", "capture_end", "replay")):
            return

        @around(kind, "capture_begin")
        def capture_begin(begin: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._captured = graph
            return begin(graph, *args, **kwargs)

        @around(kind, "capture_end")
        def capture_end(end: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._captured = None
            return end(graph, *args, **kwargs)

        @around(kind, "replay")
        def replayed(replay: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            if graph not in self._with_optimizer:
                return replay(graph, *args, **kwargs)
            self._hooks.forward_begins()
            self._hooks.optimizer_begins()
            try:
                return replay(graph, *args, **kwargs)
            finally:
                self._hooks.optimizer_ends()

        self._hooks.on_optimizer = self._optimizer_stepped

    def _optimizer_stepped(self) -> None:
        if self._captured is not None:
            self._with_optimizer.add(self._captured)
