#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/memory/device_memory.h"
#include "plimsoll/pretend/model/memory/host_memory.h"
#include "plimsoll/pretend/model/memory/memory_pool.h"
#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/pretend/model/streams/clock.h"
#include "plimsoll/pretend/model/streams/feed.h"
#include "plimsoll/pretend/model/streams/graph.h"
#include "plimsoll/pretend/model/streams/stream.h"

namespace plimsoll::pretend {

/// One device of the program.
struct Device {
  Device(int index, int card, const Profile& profile, Bytes window, std::uint64_t lag, Feed& feed);

  const int index;  ///< The index in the program.
  const int card;   ///< The number of its card; it differs from `index` if some cards are hidden.
  DeviceMemory memory;
  MemoryPool default_pool;
  MemoryPools made_pools;  ///< Pools that the program made.
  Clock clock;
  Stream default_stream;
  std::atomic<unsigned> flags{0};  ///< As the program set them; nothing depends on them.
  /// The sizes that a program may read and set (cudaLimit), by number; nothing depends on them.
  std::size_t limit(int which) const;
  void set_limit(int which, std::size_t value);

  /// Whether the primary context exists. Creating it charges the profile's context bytes.
  bool has_context() const { return context_.load(std::memory_order_acquire); }
  /// Returns false if the context does not fit.
  bool ensure_context(const Profile& profile);

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> context_{false};
  std::map<int, std::size_t> limits_;
};

/// The equipment of a machine.
struct MachineOptions {
  Profile profile;
  int cards = 1;
  /// The cards that are the program's devices, in this order; may be empty. Without a value: all cards.
  std::optional<std::vector<int>> shown = {};
  std::uint64_t event_lag = 0;  ///< Launches until an event completes; see Clock.
};

/// The machine of the process: its cards, host memory, streams, graphs, and the feed of events. It does not know CUDA's
/// API; the faces translate. Thread-safe.
///
/// `machine()` creates the machine of the process at first use, from the environment:
///   PLIMSOLL_GPU_PROFILE  a profile's JSON file (default: the H100-80GB of the build)
///   PLIMSOLL_GPUS         number of cards (1)
///   PLIMSOLL_EVENT_LAG    MachineOptions::event_lag (0)
///   CUDA_VISIBLE_DEVICES  MachineOptions::shown, read once, at first use, as the driver does
/// An error in the first three is printed on stderr, and the process ends with status 2.
class Machine {
 public:
  explicit Machine(MachineOptions options);

  const Profile& profile() const { return options_.profile; }
  int device_count() const { return device_count_; }
  Device& device(int index) { return *devices_[static_cast<std::size_t>(index)]; }
  Feed& feed() { return feed_; }
  HostMemory& host() { return host_; }

  /// The device of an installed card; null if the card is hidden.
  Device* device_of_card(int card);
  /// Whether a device can access the memory of another.
  bool are_peers(int device, int peer) const { return device != peer && options_.profile.peer_access; }

  /// The device that owns the address `pointer`.
  std::optional<int> device_of(const void* pointer) const;

  Stream* create_stream(int device, int priority, unsigned flags);
  void destroy_stream(Stream* stream);
  StreamEvent* create_event(int device, unsigned flags);
  void destroy_event(StreamEvent* event);

  /// Puts work on a stream: ticks the device's clock, reports `event` and runs `host_work`. During a capture, adds both
  /// to the graph instead, to run at each launch.
  void enqueue(Stream& stream, Event event, std::function<void()> host_work = nullptr);

  /// Returns false if they belong to different devices.
  bool record(StreamEvent& event, Stream& stream);
  bool completed(const StreamEvent& event);
  /// If `event` was recorded in a capture, `stream` joins that capture.
  Waited wait(Stream& stream, StreamEvent& event);
  /// Makes the host wait for `device`.
  void synchronize(int device, const char* what);
  /// Makes the host wait for `event`; no effect if it has completed.
  void synchronize(const StreamEvent& event, const char* what);

  /// Captures work on `stream` into a new graph, or into `into` after its nodes `ends`. Returns false if the stream is
  /// already captured.
  bool begin_capture(Stream& stream, Graph* into, std::vector<GraphNode*> ends = {});
  EndedCapture end_capture(Stream& stream);
  /// Replaces the dependencies of the next work on a captured stream. Returns false if the stream is not in a valid
  /// capture. REQUIRES: the nodes belong to the capture's graph.
  bool set_capture_ends(Stream& stream, std::vector<GraphNode*> ends);
  /// For calls that a capture forbids. If `stream` is captured, invalidates the capture and returns true.
  bool forbid_in_capture(Stream& stream);
  /// The same for calls that affect a whole device: any capture on it.
  bool forbid_in_captures_of(int device);
  std::optional<CaptureView> capture_of(Stream& stream);
  void launch(const Graph& graph, Stream& stream);

  /// The counters of the report.
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  std::uint64_t read_backs() const { return read_backs_.load(std::memory_order_relaxed); }

 private:
  const MachineOptions options_;
  Feed feed_;
  HostMemory host_;
  /// If no card is shown: one device without memory, for calls that need no device.
  std::vector<std::unique_ptr<Device>> devices_;
  int device_count_ = 0;
  std::mutex streams_mutex_;
  std::deque<Stream> streams_;
  std::vector<StreamEvent*> idle_events_;
  std::deque<StreamEvent> events_;
  std::uint64_t next_stream_id_ = 1;
  void tell(Happening kind, const Stream& stream, const StreamEvent& about);
  void tell_synchronized(int device, const char* what, std::uint64_t mark);
  void complete_everything(int device);
  /// REQUIRES: capture_mutex_ is held.
  void abandon(const std::shared_ptr<Capture>& capture);

  std::mutex capture_mutex_;
  std::vector<std::shared_ptr<Capture>> captures_;
  std::uint64_t next_capture_id_ = 1;
  std::atomic<int> active_captures_{0};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> read_backs_{0};
  std::atomic<std::uint64_t> marks_{0};
};

/// Sets the calling thread's current device. REQUIRES: 0 <= device < machine().device_count().
void set_current_device(int device);

/// The machine of the process. Never destroyed: vendor libraries are called until the process ends.
Machine& machine();
/// The same, but null before its first use.
Machine* machine_in_use();
/// The installed cards, shown or hidden. Does not create the machine, so the program can still change the visible
/// cards.
const MachineOptions& installed();

}  // namespace plimsoll::pretend
