#pragma once

namespace plimsoll::pretend::nccl {

/// The number of ranks in a child of ncclCommSplit, as far as a lone rank can compute it: NCCL asks the other ranks,
/// which do not exist here. The result is exact if the color identifies the group; otherwise it is an upper bound.
///
/// torch (new_group) computes the color from the group's list of ranks, with Python's hash of the tuple. Groups of
/// training jobs are arithmetic sequences (consecutive ranks, or every n-th rank), and the rank's index in the group is
/// the key. So the function tries the sequences through this rank until one has the color. torch in C++ (split_group,
/// device meshes) uses the group's first rank as the color: with the key this gives the stride, and the group ends
/// within the parent. For any other color the result is the parent's size. This includes torch 2.5, whose colors are
/// truncated from a longer number and may be negative; NCCL requires non-negative colors but accepts these.
///
/// REQUIRES: 0 <= key <= parent_rank < parent_ranks.
int ranks_of_color(int color, int key, int parent_rank, int parent_ranks);

}  // namespace plimsoll::pretend::nccl
