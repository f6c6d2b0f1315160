#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/memory/device_memory.h"
#include "plimsoll/pretend/model/memory/host_memory.h"
#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/pretend/model/streams/feed.h"

/// The control interface of the pretend GPU: its profile, counters and events. For C++ programs in the same process;
/// `control_c.h` is the same interface for other languages. Thread-safe.
namespace plimsoll::pretend::control {

const Profile& profile();
int device_count();
MemoryCounters memory(int device);
void reset_peak(int device);

HostCounters host();

struct WorkCounters {
  std::uint64_t launches = 0;
  std::uint64_t read_backs = 0;
};
WorkCounters work();

/// Sets the bytes that the calling thread's next copy from the device to the host writes, instead of zeros. Such a copy
/// does not count as a read-back. If the copy has another size, or is captured into a graph, it writes zeros. The next
/// copy always uses up the answer. An empty span removes the answer.
void answer_next_read_back(std::span<const std::byte> bytes);

/// The unimplemented functions that were called, in the order of the first call.
std::vector<std::string> unpretended();

/// See Feed.
Feed::Token listen(Feed::Listener listener, Happenings kinds = kEverything);
void stop_listening(Feed::Token token);

}  // namespace plimsoll::pretend::control
