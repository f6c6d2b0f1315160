#pragma once

#include <array>
#include <string>

#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/nvml/abi.h"

namespace plimsoll::pretend::nvml {

/// nvmlDevice_t is the device's index plus one, in a pointer.
void* handle_of(int index);

/// The device behind a handle, in a status and an index.
struct Found {
  int status;
  int index;
};
Found find(void* handle);

/// True between nvmlInit and as many nvmlShutdown.
bool initialized();

/// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx": the text of the identifier that the runtime and the driver give in bytes
/// (`fill_uuid`).
std::string uuid_of(int index);

/// The PCI address: domain 0, bus index + 1, device 0, as the runtime's device properties say.
std::string bus_id_of(int index);

/// Copies `text` with its end into the caller's buffer.
int give_text(const std::string& text, char* out, unsigned capacity);

/// Runs `body(device index)` for a valid handle.
template <class Body>
int with_device(void* handle, Body&& body) {
  const Found found = find(handle);
  return found.status == kSuccess ? body(found.index) : found.status;
}

/// Writes `value` through a pointer that must not be null.
template <class T, class U>
int give(T* out, U value) {
  if (out == nullptr) return kInvalidArgument;
  *out = static_cast<T>(value);
  return kSuccess;
}

}  // namespace plimsoll::pretend::nvml
