#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

/// Process groups for C++ programs, like those of torch.distributed in Python: torch's own c10d backends, by name.
///
/// A "gloo" group makes the process ignore SIGPIPE, as Python does, unless the program handles it. Otherwise a rank
/// with a dead peer would end without an error.
///
/// Only one thread at a time may create and destroy groups. For collectives, c10d's rules hold.
namespace plimsoll::distributed {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

struct InitOptions {
  /// "gloo" for CPU tensors (and, through the CPU, for GPUs), "nccl" for GPUs if torch is a CUDA build, "fake" for one
  /// process that is a rank of any world size: it does not communicate, and an all-gather assumes that every rank has
  /// this rank's input, like torch's own "fake". Or one for each device type: "cpu:gloo,cuda:nccl". Empty: "nccl" if
  /// there is a GPU, otherwise "gloo".
  std::string backend = {};
  /// The store through which the ranks connect; for one default group only. Null: a TCP store at torchrun's MASTER_ADDR
  /// and MASTER_PORT ("fake" does not need one).
  c10::intrusive_ptr<c10d::Store> store = {};
  std::optional<int> rank = {};        ///< Absent: torchrun's RANK.
  std::optional<int> world_size = {};  ///< Absent: torchrun's WORLD_SIZE.
  std::chrono::milliseconds timeout =
      std::chrono::minutes(30);  ///< For each collective, and for the connection of the ranks.
  /// Python's device_id: communicators for this device are made at once, not by their first collective; also those of
  /// new_group.
  std::optional<c10::Device> device = {};
};

/// Creates the default group. Throws if there is already one, or if the backend, the rank or the world size is missing
/// or invalid; the message says what to set.
ProcessGroup init_process_group(InitOptions options = {});

/// Makes a group of the caller's own the default one. Its ranks are assumed to be 0 to size - 1.
void set_default_group(ProcessGroup group);

bool is_initialized();

/// Throws if there is no default group, and says how to make one.
ProcessGroup default_group();

/// Drops the default group and all groups made from it. Does nothing without a default group.
void destroy_process_group();

int get_rank();        ///< In the default group.
int get_world_size();  ///< Of the default group.
/// The default group's: "gloo", "nccl", "fake", or the name that a group of the caller's own returns.
std::string get_backend();

struct NewGroupOptions {
  std::string description = {};
  std::optional<std::chrono::milliseconds> timeout = {};  ///< Absent: the default group's.
};

/// A group of some ranks of the default one, in rising order, with the same backend. Every member must call this in the
/// same order relative to other groups of the same ranks; other ranks need not call it.
///
/// REQUIRES: `ranks` are distinct and contain this process's rank.
ProcessGroup new_group(const std::vector<int>& ranks, const NewGroupOptions& options = {});

/// The ranks (in the default group) of a group's members, in the group's order.
std::vector<int> group_ranks(const ProcessGroup& group);

/// The same; empty for a group of the caller's own with unknown ranks. Such a group is assumed to be the whole world if
/// it has the world's size, or if there is no default group.
std::optional<std::vector<int>> known_ranks(const ProcessGroup& group);

/// "ranks 0 to 7", "ranks 0, 4, 8"; a long list is shortened.
std::string describe_ranks(const std::vector<int>& ranks);

}  // namespace plimsoll::distributed
