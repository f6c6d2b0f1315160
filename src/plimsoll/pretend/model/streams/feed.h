#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// The kinds of events on the pretend GPU.
enum class Happening : std::uint8_t {
  kAllocated,    ///< Device memory was taken: `bytes` at `address`, for `reason`.
  kFreed,        ///< Device memory was freed.
  kLaunch,       ///< A kernel: `name`, grid, block, shared bytes.
  kCall,         ///< A vendor library's routine that only puts work on a stream: `name`.
  kGemm,         ///< A matrix product: `name`, m, n, k, batch.
  kCopy,         ///< `bytes` from `source` to `destination`.
  kReadBack,     ///< A copy from the device to the host: the host received zeros.
  kFill,         ///< A memset of `bytes`.
  kCollective,   ///< `name` in `communicator`, in which this process is `rank` of `ranks` and sends `bytes`; `peer`.
  kRecord,       ///< An event was recorded on a stream; `mark` identifies the point.
  kWait,         ///< A stream waits for `mark`; 0: for an event that was never recorded.
  kSynchronize,  ///< The host waited for a stream, an event (`mark`) or a device.
  kUnpretended,  ///< A call of an unimplemented function failed: `name`.
};

/// A set of kinds, one bit each.
using Happenings = std::uint32_t;
constexpr Happenings bit(Happening kind) { return Happenings{1} << static_cast<unsigned>(kind); }
inline constexpr Happenings kEverything = ~Happenings{0};

/// The purpose of device memory.
enum class Reason : std::uint8_t { kSegments, kContext, kNccl, kHandles };
inline constexpr int kReasonCount = 4;
const char* to_string(Reason reason);

inline constexpr int kNoPeer = -1;

/// One event. Fields that its kind does not use have the default values. Pointers are valid only during the call of the
/// listener.
struct Event {
  Happening kind{};
  Reason reason{};
  bool replayed = false;  ///< Part of the launch of a CUDA graph.
  int device = 0;
  std::uint64_t stream = 0;  ///< The stream's id; 0 for the default stream.
  const char* name = "";
  Bytes bytes = 0;
  std::uint64_t address = 0;
  const void* source = nullptr;
  const void* destination = nullptr;
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  Bytes shared = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  int ranks = 0;
  std::uint32_t communicator = 0;  ///< Numbers the communicators of the process in the order of creation, from 1.
  int rank = 0;                    ///< The rank of this process in the communicator.
  int peer = kNoPeer;              ///< The root, or the other side of a transfer: a rank of the communicator.
  std::uint64_t mark = 0;          ///< Numbers the records of the process, from 1.
};

/// Passes every event to the listeners for its kind. Thread-safe. Without listeners the only cost is `listened()`, one
/// relaxed load. Listeners run on the calling thread, outside the locks of memory, streams and captures, and must not
/// throw. Events of memory that a pool or a communicator takes are sent under its lock: a listener must not call back
/// into it.
class Feed {
 public:
  using Listener = std::function<void(const Event&)>;
  using Token = std::uint64_t;

  Token subscribe(Listener listener, Happenings kinds = kEverything);

  /// No *new* call of the listener begins after this returns; a call on another thread may still be in progress.
  void unsubscribe(Token token);

  bool listened(Happening kind) const noexcept { return (kinds_.load(std::memory_order_relaxed) & bit(kind)) != 0; }

  void publish(const Event& event) noexcept;

 private:
  struct Entry {
    Token token;
    Happenings kinds;
    Listener listener;
  };
  using Entries = std::vector<Entry>;

  /// REQUIRES: mutex_ is held.
  void replace(std::shared_ptr<const Entries> entries);

  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_ = std::make_shared<Entries>();
  Token next_token_ = 1;
  std::atomic<Happenings> kinds_{0};  ///< The union of the kinds of all listeners.
};

}  // namespace plimsoll::pretend
