// Writes the events of streams to a file, one line each. See control_c.h.

#include <cinttypes>
#include <cstdio>
#include <mutex>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/control_c.h"
#include "plimsoll/pretend/model/library_call.h"

namespace {

using namespace plimsoll::pretend;

constexpr Happenings kLogged = bit(Happening::kLaunch) | bit(Happening::kCall) | bit(Happening::kGemm) |
                               bit(Happening::kCopy) | bit(Happening::kReadBack) | bit(Happening::kFill) |
                               bit(Happening::kCollective) | bit(Happening::kRecord) | bit(Happening::kWait) |
                               bit(Happening::kSynchronize);

/// In the order of Happening.
constexpr const char* kNames[] = {"allocated", "freed", "launch",     "call",   "gemm", "copy",
                                  "read_back", "fill",  "collective", "record", "wait", "synchronize"};

class WorkLog {
 public:
  bool write_to(const char* path) {
    const std::lock_guard lock(mutex_);
    if (file_ != nullptr) std::fclose(file_);
    file_ = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file_ != nullptr && token_ == 0) {
      token_ = control::listen([this](const Event& event) { note(event); }, kLogged);
    } else if (file_ == nullptr && token_ != 0) {
      control::stop_listening(token_);
      token_ = 0;
    }
    return path == nullptr || file_ != nullptr;
  }

 private:
  void note(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (file_ == nullptr) return;
    std::fprintf(file_, "%s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", kNames[static_cast<std::size_t>(event.kind)],
                 event.device, event.stream, event.mark, static_cast<std::uint64_t>(event.bytes), event.name);
    if (event.kind == Happening::kCollective) {
      std::fprintf(file_, " %" PRIu32 " %d %d %d", event.communicator, event.rank, event.ranks, event.peer);
    }
    std::fputc('\n', file_);
  }

  std::mutex mutex_;
  std::FILE* file_ = nullptr;
  Feed::Token token_ = 0;
};

}  // namespace

PLIMSOLL_API int plimsoll_log_work(const char* path) {
  static auto* const log = new WorkLog;  // Never destroyed: other threads may still use it.
  return log->write_to(path) ? 0 : -1;
}
