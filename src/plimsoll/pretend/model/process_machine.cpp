// The process's one machine, equipped from the environment.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "plimsoll/base/errors.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (*end != '\0' || *text == '-') {
    throw InvalidArgument(std::string(variable) + " is '" + text + "': expected a whole number");
  }
  return value;
}

MachineOptions options_from_environment() {
  MachineOptions options;
  const char* profile = std::getenv("PLIMSOLL_GPU_PROFILE");
  options.profile = load_profile(profile != nullptr && *profile != '\0' ? profile : PLIMSOLL_DEFAULT_PROFILE);
  options.profile.memory = number_from("PLIMSOLL_GPU_MEMORY", options.profile.memory);
  options.devices = static_cast<int>(number_from("PLIMSOLL_GPUS", 1));
  options.event_lag = number_from("PLIMSOLL_EVENT_LAG", 0);
  return options;
}

Machine* make_machine() {
  try {
    return new Machine(options_from_environment());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plimsoll: %s\n", error.what());
    std::_Exit(2);
  }
}

}  // namespace

Machine& machine() {
  static Machine* const instance = make_machine();
  return *instance;
}

}  // namespace plimsoll::pretend
