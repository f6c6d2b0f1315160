#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/device_memory.h"
#include "plimsoll/pretend/model/feed.h"
#include "plimsoll/pretend/model/profile.h"

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

/// The functions that were called and are not pretended, in order of their first call.
std::vector<std::string> unpretended();

/// See Feed.
Feed::Token listen(Feed::Listener listener, Happenings kinds = kEverything);
void stop_listening(Feed::Token token);

}  // namespace plimsoll::pretend::control
