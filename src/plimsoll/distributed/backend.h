#pragma once

#include <c10/core/DeviceType.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

/// The backends behind a process group. Each is made in one file, the only one that sees the backend's own headers;
/// where those or the library are missing, another file of the same function throws and says what to do.
namespace plimsoll::distributed {

struct BackendRequest {
  c10::intrusive_ptr<c10d::Store> store;  ///< Of this group alone: the backend's prefix is on it.
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{};
  std::string group_name;
  std::vector<std::uint64_t> global_ranks;  ///< Empty for the default group, as torch has it.
};

using Backend = c10::intrusive_ptr<c10d::Backend>;

Backend make_gloo(const BackendRequest& request);
Backend make_nccl(const BackendRequest& request);
Backend make_fake(const BackendRequest& request);

/// What is known of a backend by its name. Throws for a name that is none.
struct BackendKind {
  std::string_view name;
  std::vector<c10::DeviceType> devices;  ///< Whose tensors it takes. The first one names its part of the store.
  Backend (*make)(const BackendRequest&);
};
const BackendKind& backend_kind(std::string_view name);

}  // namespace plimsoll::distributed
