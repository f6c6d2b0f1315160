#pragma once

namespace plimsoll::pretend::nccl {

/// How many ranks a child of ncclCommSplit has, as far as a lone process can know: NCCL learns it from the other ranks,
/// which do not exist here. The answer is never below the true number; it is the true number where the colour tells.
///
/// torch (new_group) makes the colour from the list of the group's ranks, by Python's hash of the tuple. Groups of
/// training jobs are arithmetic sequences (a block of neighbours, or every n-th rank), and this rank's place in the
/// group is the split's key; so the sequences through this rank are tried until one has that colour. torch in C++
/// (split_group, device meshes) takes the group's first rank as its colour: with the key that gives the stride, and the
/// group ends within the parent. Any other colour: the parent's size; so it is for torch 2.5, whose colours are cut
/// from a longer number and may be negative. NCCL asks for none such, and takes them.
///
/// REQUIRES: 0 <= key <= parent_rank < parent_ranks.
int ranks_of_color(int color, int key, int parent_rank, int parent_ranks);

}  // namespace plimsoll::pretend::nccl
