#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <optional>
#include <torch/csrc/distributed/c10d/Store.hpp>

/// The settings that torchrun passes in a process's environment.
namespace plimsoll::distributed {

/// The value of a variable as a whole number. Empty if the variable is missing or empty; throws if it is not a number.
std::optional<int> number_of_environment(const char* variable);

/// `given`, or the value of the variable. Throws if both are missing, and names both ways to set it.
int given_or_environment(std::optional<int> given, const char* what, const char* variable);

/// The TCP store at MASTER_ADDR and MASTER_PORT. Rank 0 hosts it, unless torchrun's agent already does. Returns when
/// rank 0 has seen all ranks; throws after the timeout.
c10::intrusive_ptr<c10d::Store> environment_store(int rank, int world_size, std::chrono::milliseconds timeout);

}  // namespace plimsoll::distributed
