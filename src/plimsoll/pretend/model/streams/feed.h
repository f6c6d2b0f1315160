#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// What happened on the pretend GPU.
enum class Happening : std::uint8_t {
  kAllocated,    ///< device memory was taken: `bytes` at `address`, for `reason`
  kFreed,        ///< and given back
  kLaunch,       ///< a kernel: `name`, grid, block, shared bytes
  kCall,         ///< a vendor library's routine that only puts work on a stream: `name`
  kGemm,         ///< a matrix product: `name`, m, n, k, batch
  kCopy,         ///< `bytes` from `source` to `destination`
  kReadBack,     ///< a copy from the device to the host: the host got zeros
  kFill,         ///< a memset of `bytes`
  kCollective,   ///< `name` in `communicator`, where this is `rank` of `ranks` and sends `bytes`; `peer`
  kRecord,       ///< an event was recorded on a stream: `mark` is the point in it
  kWait,         ///< a stream was told to wait for `mark`; 0: for an event that nobody recorded
  kSynchronize,  ///< the host waited: for a stream, an event (`mark`) or a device
  kUnpretended,  ///< a call that is not pretended was made, and failed: `name`
};

/// A set of happenings, one bit each.
using Happenings = std::uint32_t;
constexpr Happenings bit(Happening kind) { return Happenings{1} << static_cast<unsigned>(kind); }
inline constexpr Happenings kEverything = ~Happenings{0};

/// Why device memory is taken.
enum class Reason : std::uint8_t { kSegments, kContext, kNccl, kHandles };
inline constexpr int kReasonCount = 4;
const char* to_string(Reason reason);

inline constexpr int kNoPeer = -1;

/// One happening. Fields that its kind does not name are as they stand here. Pointers are valid during the call of the
/// listener only.
struct Event {
  Happening kind{};
  Reason reason{};
  bool replayed = false;  ///< part of a CUDA graph's launch
  int device = 0;
  std::uint64_t stream = 0;  ///< the stream's id, 0 for the default stream
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
  std::uint32_t communicator = 0;  ///< counts the communicators of the process in order of their making, from 1
  int rank = 0;                    ///< this process's, in the communicator
  int peer = kNoPeer;              ///< the root, or the other side of a transfer: a rank of the communicator
  std::uint64_t mark = 0;          ///< counts the records of the process, from 1
};

/// Hands every event to whoever listens for its kind. Thread-safe; where nobody does, `listened()` is one relaxed load
/// and nothing else is paid. Listeners run on the thread that made the call, outside the locks of memory, streams and
/// captures, and must not throw. What a memory pool or a communicator takes for itself is told while that one is
/// locked: a listener must not call back into it.
class Feed {
 public:
  using Listener = std::function<void(const Event&)>;
  using Token = std::uint64_t;

  Token subscribe(Listener listener, Happenings kinds = kEverything);

  /// After this returns no *new* call of the listener begins; one that runs on another thread may still finish.
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
  std::atomic<Happenings> kinds_{0};  ///< the union of all listeners' kinds
};

}  // namespace plimsoll::pretend
