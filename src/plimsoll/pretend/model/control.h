#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/memory/device_memory.h"
#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/pretend/model/streams/feed.h"

/// The control interface of the pretend GPU: what it is, what it counts, what happens on it. For C++ programs in the
/// same process. Thread-safe. `control_c.h` is the same for other languages.
namespace plimsoll::pretend::control {

const Profile& profile();
int device_count();
MemoryCounters memory(int device);
void reset_peak(int device);

struct HostCounters {
  Bytes pinned = 0;
  Bytes pinned_peak = 0;
  Bytes managed = 0;
};
HostCounters host();

struct WorkCounters {
  std::uint64_t launches = 0;
  std::uint64_t read_backs = 0;
};
WorkCounters work();

/// The calling thread's next copy from the device to the host, if it is of that many bytes, gives these and no zeros:
/// whoever calls this knows what a device would hold. It is then a copy as others are, and no read-back. Of another
/// size, or while a graph is captured, it gives zeros; the answer is gone either way. Empty: there is none.
void answer_next_read_back(std::span<const std::byte> bytes);

/// The functions that were called and are not pretended, in order of their first call.
std::vector<std::string> unpretended();

/// See Feed.
Feed::Token listen(Feed::Listener listener, Happenings kinds = kEverything);
void stop_listening(Feed::Token token);

}  // namespace plimsoll::pretend::control
