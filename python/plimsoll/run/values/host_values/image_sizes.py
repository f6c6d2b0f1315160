"""Image sizes: models of transformers get them as tensors, move these to the device and read them back for shapes. The forward of
such a model runs with host values known.
"""

import inspect
from types import ModuleType
from typing import Any

from plimsoll.run.values.host_values import known_values

_SIZES = {"image_grid_thw", "video_grid_thw", "grid_thw", "image_sizes", "spatial_shapes"}


def answer(modeling_utils: ModuleType) -> None:
    """REQUIRES: no class of a model exists yet."""
    base = getattr(modeling_utils, "PreTrainedModel", None)
    if base is None:
        return
    own = vars(base).get("__init_subclass__")  # None in older versions

    @classmethod  # type: ignore[misc]
    def init_subclass(cls: Any, **options: Any) -> None:
        if own is not None:
            own.__func__(cls, **options)
        else:
            super(base, cls).__init_subclass__(**options)
        forward = vars(cls).get("forward")
        if inspect.isfunction(forward) and _SIZES & inspect.signature(forward).parameters.keys():
            cls.forward = known_values.where_known(forward)

    base.__init_subclass__ = init_subclass
