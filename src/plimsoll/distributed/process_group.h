#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

/// Process groups for C++ programs, as torch.distributed has them for Python: torch's own c10d backends, found by name.
///
/// A "gloo" group makes the process ignore SIGPIPE, as Python does, where the program does not handle it itself: else a
/// rank whose peer has died would end without an error.
///
/// One thread at a time may create and destroy groups. What a group's collectives allow is c10d's to say.
namespace plimsoll::distributed {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

struct InitOptions {
  /// "gloo" for CPU tensors (and, by way of the CPU, for GPUs), "nccl" for GPUs where torch is a CUDA build, "fake" for
  /// one process that stands for a rank of any world size: nobody is asked, and an all-gather takes every rank to have
  /// what this one has, as torch's own "fake" does. Or one for each type of device: "cpu:gloo,cuda:nccl". Empty: "nccl"
  /// where there is a GPU, "gloo" otherwise.
  std::string backend = {};
  /// Where the ranks meet; a store is good for one default group. Null: a TCP store at torchrun's MASTER_ADDR and
  /// MASTER_PORT ("fake" needs none).
  c10::intrusive_ptr<c10d::Store> store = {};
  std::optional<int> rank = {};                                  ///< Absent: torchrun's RANK.
  std::optional<int> world_size = {};                            ///< Absent: torchrun's WORLD_SIZE.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);  ///< For each collective, and for the ranks to meet.
  /// Python's device_id: communicators for this device, those of new_group too, are made at once and not by their first
  /// collective.
  std::optional<c10::Device> device = {};
};

/// Creates the default group. Throws where there is one already, and where the backend, the rank or the world size is
/// missing or makes no sense, saying what to set.
ProcessGroup init_process_group(InitOptions options = {});

/// Makes a group of the caller's own the default one. Its ranks are taken to be 0 to size - 1.
void set_default_group(ProcessGroup group);

bool is_initialized();

/// Throws where there is none, saying how to make one.
ProcessGroup default_group();

/// Drops the default group and all made from it. Nothing happens where there is none.
void destroy_process_group();

int get_rank();        ///< In the default group.
int get_world_size();  ///< Of the default group.
/// The default group's: "gloo", "nccl", "fake", or the name that a group of the caller's own gives.
std::string get_backend();

struct NewGroupOptions {
  std::string description = {};
  std::optional<std::chrono::milliseconds> timeout = {};  ///< Absent: the default group's.
};

/// A group of some ranks of the default one, in rising order, with the same backend. Every member must call this in the
/// same order with respect to other groups of the same ranks; ranks outside need not call it at all.
///
/// REQUIRES: `ranks` are distinct and contain this process's rank.
ProcessGroup new_group(const std::vector<int>& ranks, const NewGroupOptions& options = {});

/// The ranks (in the default group) of a group's members, in the group's order.
std::vector<int> group_ranks(const ProcessGroup& group);

}  // namespace plimsoll::distributed
