// Creates the machine of the process from the environment.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "plimsoll/base/errors.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/model/visible_devices.h"

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
  options.cards = static_cast<int>(number_from("PLIMSOLL_GPUS", 1));
  options.event_lag = number_from("PLIMSOLL_EVENT_LAG", 0);
  return options;
}

/// The result of `make`, never destroyed. An error ends the process.
template <class Make>
auto* made_once(Make make) {
  try {
    return new auto(make());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plimsoll: %s\n", error.what());
    std::_Exit(2);
  }
}

std::atomic<Machine*> in_use{nullptr};

Machine* make_machine() {
  MachineOptions options = installed();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    options.shown = visible_devices(visible, options.cards);
  Machine* const made = made_once([&] { return Machine(std::move(options)); });
  in_use.store(made, std::memory_order_release);
  return made;
}

}  // namespace

const MachineOptions& installed() {
  static const MachineOptions* const options = made_once(options_from_environment);
  return *options;
}

Machine& machine() {
  static Machine* const instance = make_machine();
  return *instance;
}

Machine* machine_in_use() { return in_use.load(std::memory_order_acquire); }

}  // namespace plimsoll::pretend
