#include "plimsoll/pretend/model/control.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "plimsoll/pretend/model/control_c.h"
#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::control {

const Profile& profile() { return machine().profile(); }

int device_count() { return machine().device_count(); }

MemoryCounters memory(int device) { return machine().device(device).memory.counters(); }

void reset_peak(int device) { machine().device(device).memory.reset_peak(); }

HostCounters host() { return machine().host().counters(); }

WorkCounters work() { return {.launches = machine().launches(), .read_backs = machine().read_backs()}; }

Feed::Token listen(Feed::Listener listener, Happenings kinds) {
  return machine().feed().subscribe(std::move(listener), kinds);
}

void stop_listening(Feed::Token token) { machine().feed().unsubscribe(token); }

}  // namespace plimsoll::pretend::control

namespace {

namespace control = plimsoll::pretend::control;

bool there(int device) { return device >= 0 && device < control::device_count(); }

int copy_text(const std::string& text, char* out, int capacity) {
  if (out != nullptr && capacity > 0) {
    const auto bytes = std::min(text.size(), static_cast<std::size_t>(capacity - 1));
    std::memcpy(out, text.data(), bytes);
    out[bytes] = '\0';
  }
  return static_cast<int>(text.size());
}

}  // namespace

PLIMSOLL_API int plimsoll_control_version() { return PLIMSOLL_CONTROL_VERSION; }

PLIMSOLL_API int plimsoll_device_count() { return control::device_count(); }

PLIMSOLL_API int plimsoll_memory(int device, uint64_t* out) {
  if (!there(device)) return -1;
  const auto counters = control::memory(device);
  for (const plimsoll::Bytes value : {counters.capacity, counters.used, counters.peak}) *out++ = value;
  out = std::copy(counters.used_by.begin(), counters.used_by.end(), out);
  out = std::copy(counters.peak_by.begin(), counters.peak_by.end(), out);
  for (const std::uint64_t value : {counters.allocations, counters.frees, counters.refusals}) *out++ = value;
  return 0;
}

PLIMSOLL_API int plimsoll_reset_peak(int device) {
  if (!there(device)) return -1;
  control::reset_peak(device);
  return 0;
}

PLIMSOLL_API int plimsoll_refusal(int device, uint64_t* out) {
  if (!there(device)) return -1;
  const auto counters = control::memory(device);
  if (counters.refusals == 0) return -1;
  *out++ = counters.last_refusal.requested;
  *out++ = static_cast<uint64_t>(counters.last_refusal.reason);
  std::copy(counters.last_refusal.used_by.begin(), counters.last_refusal.used_by.end(), out);
  return 0;
}

PLIMSOLL_API void plimsoll_host_memory(uint64_t* out) {
  const auto counters = control::host();
  out[0] = counters.pinned;
  out[1] = counters.pinned_peak;
  out[2] = counters.managed;
}

PLIMSOLL_API void plimsoll_work(uint64_t* out) {
  const auto counters = control::work();
  out[0] = counters.launches;
  out[1] = counters.read_backs;
}

PLIMSOLL_API void plimsoll_on_read_back(plimsoll_read_back_listener listener) {
  using plimsoll::pretend::Event;
  using plimsoll::pretend::Happening;
  static std::atomic<plimsoll::pretend::Feed::Token> current{0};
  plimsoll::pretend::Feed::Token next = 0;
  if (listener != nullptr) {
    next = control::listen([listener](const Event& event) { listener(event.device, event.bytes); },
                           plimsoll::pretend::bit(Happening::kReadBack));
  }
  if (const auto previous = current.exchange(next); previous != 0) control::stop_listening(previous);
}

PLIMSOLL_API void plimsoll_answer_next_read_back(const void* bytes, uint64_t size) {
  control::answer_next_read_back({static_cast<const std::byte*>(bytes), size});
}

PLIMSOLL_API int plimsoll_unpretended(char* text, int capacity) {
  std::string lines;
  for (const std::string& name : control::unpretended()) lines += name + "\n";
  return copy_text(lines, text, capacity);
}

PLIMSOLL_API int plimsoll_profile(char* text, int capacity) {
  return copy_text(plimsoll::pretend::to_json(control::profile()), text, capacity);
}
