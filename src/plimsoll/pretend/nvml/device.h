#pragma once

#include <array>
#include <string>

#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/nvml/abi.h"

namespace plimsoll::pretend::nvml {

/// nvmlDevice_t is a card's number plus one, as a pointer. NVML knows all installed cards and does not create the
/// machine (see `installed`).
void* handle_of(int card);

/// The card behind a handle, as a status and a number.
struct Found {
  int status;
  int card;
};
Found find(void* handle);

/// Whether nvmlInit was called more often than nvmlShutdown.
bool initialized();

/// The counters of a card; zero if the card is not in use.
MemoryCounters memory_of(int card);
/// Whether this process has a context on the card.
bool has_context(int card);

/// The PCI address: domain 0, bus card + 1, device 0, as in the runtime's device properties.
std::string bus_id_of(int card);

/// Copies `text` with its terminator to the caller's buffer.
int give_text(const std::string& text, char* out, unsigned capacity);

/// Runs `body(card)` for a valid handle.
template <class Body>
int with_device(void* handle, Body&& body) {
  const Found found = find(handle);
  return found.status == kSuccess ? body(found.card) : found.status;
}

/// Writes `value` through a pointer that must not be null.
template <class T, class U>
int give(T* out, U value) {
  if (out == nullptr) return kInvalidArgument;
  *out = static_cast<T>(value);
  return kSuccess;
}

}  // namespace plimsoll::pretend::nvml
