#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <torch/csrc/distributed/c10d/Store.hpp>

/// What torchrun tells a process in its environment.
namespace plimsoll::distributed {

/// A whole number of the environment. Nothing where the variable is missing or empty; throws where it is no number.
std::optional<int> number_of_environment(const char* variable);

/// The value given, or else that of the variable; throws, naming both ways to set it, where there is none.
int given_or_environment(std::optional<int> given, const char* what, const char* variable);

/// The TCP store at MASTER_ADDR and MASTER_PORT: rank 0 hosts it, unless torchrun's agent does already. Returns when
/// all ranks have come, as far as rank 0 knows; throws after the timeout.
c10::intrusive_ptr<c10d::Store> environment_store(int rank, int world_size, std::chrono::milliseconds timeout);

}  // namespace plimsoll::distributed
