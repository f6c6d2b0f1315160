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

/// The backends of process groups. Each is made in one file, the only one that includes the backend's headers. If the
/// headers or the library are missing, another file has the same function, which throws and says what to do.
namespace plimsoll::distributed {

struct BackendRequest {
  c10::intrusive_ptr<c10d::Store> store;  ///< Of this group; it has the backend's prefix.
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{};
  std::string group_name;
  std::vector<std::uint64_t> global_ranks;  ///< Empty for the default group, as in torch.
};

using Backend = c10::intrusive_ptr<c10d::Backend>;

Backend make_gloo(const BackendRequest& request);
Backend make_nccl(const BackendRequest& request);
Backend make_fake(const BackendRequest& request);

/// The properties of a backend, by its name. Throws for an unknown name.
struct BackendKind {
  std::string_view name;
  std::vector<c10::DeviceType>
      devices;  ///< The device types of the tensors that it takes. The first one names its part of the store.
  Backend (*make)(const BackendRequest&);
};
const BackendKind& backend_kind(std::string_view name);

}  // namespace plimsoll::distributed
