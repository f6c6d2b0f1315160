"""Categories of memory and states of modules, with the names and values of torch's trackers: a member equals torch's member.
A test compares the categories with the table in C++ (base/categories.h)."""

from torch.distributed._tools.mem_tracker import _RefType, _State


class MemRefType(_RefType):
    PARAM = "Parameter"
    BUFFER = "Buffer"
    GRAD = "Gradient"
    ACT = "Activation"
    TEMP = "Temp"
    OPT = "Optstate"
    OTH = "Other"


class ModState(_State):
    PRE_FW = "Pre-Forward"
    POST_FW = "Post-Forward"
    PEAK_FW = "Peak-Forward"
    PRE_BW = "Pre-Backward"
    PRE_FW_AC = "Pre-Forward-AC"
    POST_FW_AC = "Post-Forward-AC"
    POST_BW = "Post-Backward"
    PEAK_BW = "Peak-Backward"


class FSDPRefType(_RefType):
    SHARDED_PARAM = "Sharded Param"
    UNSHARDED_PARAM = "Unsharded Param"
    BUFFER = "Buffer"
    SHARDED_GRAD = "Sharded Grad"
    UNSHARDED_GRAD = "Unsharded Grad"
    ACT = "Activation"
    TEMP = "Temp"
    ALL_GATHER = "All Gather"
    REDUCE_SCATTER = "Reduce Scatter"
    OPT = "OptState"
    INP = "Inputs"


class FSDPModState(_State):
    BEF_PRE_FW = "Before Pre-Forward"
    AFT_PRE_FW = "After Pre-Forward"
    BEF_POST_FW = "Before Post-Forward"
    AFT_POST_FW = "After Post-Forward"
    BEF_PRE_BW = "Before Pre-Backward"
    AFT_PRE_BW = "After Pre-Backward"
    BEF_POST_BW = "Before Post-Backward"
    AFT_POST_BW = "After Post-Backward"
    PRE_FW_AC = "Pre-Forward AC"
    POST_FW_AC = "Post-Forward AC"
    PEAK_FW = "Peak Forward"
    PEAK_BW = "Peak Backward"


class OwnRefType(_RefType):
    """Categories that torch's trackers do not have. A snapshot has one only if it has bytes."""

    WORKSPACE = "Workspace"  # the workspaces of cuBLAS
    OTH = "Other"  # made outside of tracking
    PARAM = "Parameter"  # not sharded, in a model that is
    GRAD = "Gradient"
    ALL_GATHER_INPUT = "All Gather Input"
    ALL_GATHER_COPY_OUT = "All Gather Copy-Out"
    POST_FORWARD_SHARD = "Post-Forward Shard"
    ACCUMULATED_GRAD = "Accumulated Grad"
    REDUCE_SCATTER_OUTPUT = "Reduce Scatter Output"
    ALL_REDUCE = "All Reduce"
    PARTIAL_GRAD = "Partial Grad"
