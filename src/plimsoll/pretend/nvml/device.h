#pragma once

#include <array>
#include <string>

#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/nvml/abi.h"

namespace plimsoll::pretend::nvml {

/// nvmlDevice_t is a card's number plus one, in a pointer. NVML knows all that are installed, and makes no machine (see
/// `installed`).
void* handle_of(int card);

/// The card behind a handle, in a status and a number.
struct Found {
  int status;
  int card;
};
Found find(void* handle);

/// True between nvmlInit and as many nvmlShutdown.
bool initialized();

/// The books of a card; those of one that is not in use are empty.
MemoryCounters memory_of(int card);
/// Whether this process has a context on the card.
bool has_context(int card);

/// The PCI address: domain 0, bus card + 1, device 0, as the runtime's device properties say.
std::string bus_id_of(int card);

/// Copies `text` with its end into the caller's buffer.
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
