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
#include "plimsoll/pretend/model/memory/memory_pools.h"
#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/pretend/model/streams/clock.h"
#include "plimsoll/pretend/model/streams/feed.h"
#include "plimsoll/pretend/model/streams/graph.h"
#include "plimsoll/pretend/model/streams/stream.h"

namespace plimsoll::pretend {

/// One pretended card, as the program sees it.
struct Device {
  Device(int index, int card, const Profile& profile, Bytes window, std::uint64_t lag, Feed& feed);

  const int index;  ///< the number that the program knows it by
  const int card;   ///< its number among the installed ones: another where some are not shown
  DeviceMemory memory;
  MemoryPool default_pool;
  MemoryPools made_pools;  ///< by the program
  Clock clock;
  Stream default_stream;
  std::atomic<unsigned> flags{0};  ///< as the program set them; nothing depends on them
  /// Sizes that a program may ask for and set, by their number; nothing depends on them.
  std::size_t limit(int which) const;
  void set_limit(int which, std::size_t value);

  /// True once the primary context exists. Creating it charges the profile's context bytes.
  bool has_context() const { return context_.load(std::memory_order_acquire); }
  /// False: not even the context fits.
  bool ensure_context(const Profile& profile);

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> context_{false};
  std::map<int, std::size_t> limits_;
};

/// How a process's machine is equipped.
struct MachineOptions {
  Profile profile;
  int cards = 1;
  /// The cards that are the program's devices, in this order; without it all. None at all is possible too.
  std::optional<std::vector<int>> shown = {};
  std::uint64_t event_lag = 0;  ///< launches until an event completes; see Clock
};

/// The machine that the process believes to have: its cards, host memory, streams, graphs, and the feed of what happens
/// on them. Knows nothing of CUDA's API; the faces translate. Thread-safe.
///
/// `machine()` is the one of the process, made at first use from the environment:
///   PLIMSOLL_GPU_PROFILE  a profile's JSON file (the build's H100-80GB without it)
///   PLIMSOLL_GPUS         number of cards (1)
///   PLIMSOLL_EVENT_LAG    MachineOptions::event_lag (0)
///   CUDA_VISIBLE_DEVICES  MachineOptions::shown, as the driver reads it: once, when it is first called
/// What is wrong in the first three is said on stderr, and the process ends with status 2.
class Machine {
 public:
  explicit Machine(MachineOptions options);

  const Profile& profile() const { return options_.profile; }
  int device_count() const { return device_count_; }
  Device& device(int index) { return *devices_[static_cast<std::size_t>(index)]; }
  Feed& feed() { return feed_; }
  HostMemory& host() { return host_; }

  /// The device that an installed card is, if it is shown.
  Device* device_of_card(int card);
  /// True where a device can reach another's memory.
  bool are_peers(int device, int peer) const { return device != peer && options_.profile.peer_access; }

  /// The device whose address space `pointer` lies in.
  std::optional<int> device_of(const void* pointer) const;

  Stream* create_stream(int device, int priority, unsigned flags);
  void destroy_stream(Stream* stream);
  StreamEvent* create_event(int device, unsigned flags);
  void destroy_event(StreamEvent* event);

  /// Puts work on a stream: ticks its device's clock, reports it, does `host_work` if there is any; or adds it to the
  /// graph under capture, to be done at each launch.
  void enqueue(Stream& stream, Event event, std::function<void()> host_work = nullptr);

  /// False: they belong to different devices.
  bool record(StreamEvent& event, Stream& stream);
  bool completed(const StreamEvent& event);
  /// Makes `stream` join the capture that `event` was recorded in, if any.
  Waited wait(Stream& stream, StreamEvent& event);
  /// The host waits for `device`.
  void synchronize(int device, const char* what);
  /// The host waits for `event`: for nothing, where it has completed.
  void synchronize(const StreamEvent& event, const char* what);

  /// From here on work on `stream` goes to a new graph; or to the caller's own, after its nodes `ends`.
  /// False: the stream is in a capture already.
  bool begin_capture(Stream& stream, Graph* into, std::vector<GraphNode*> ends = {});
  EndedCapture end_capture(Stream& stream);
  /// What the next piece of work on a captured stream waits for, instead of what it would have waited for.
  /// False: the stream is in no capture that is still good. REQUIRES: the nodes are of the capture's graph.
  bool set_capture_ends(Stream& stream, std::vector<GraphNode*> ends);
  /// For calls that are not allowed in a capture. True, and the capture invalidated, when `stream` is in one.
  bool forbid_in_capture(Stream& stream);
  /// The same for calls that concern a whole device: any capture on it.
  bool forbid_in_captures_of(int device);
  std::optional<CaptureView> capture_of(Stream& stream);
  void launch(const Graph& graph, Stream& stream);

  /// What the counters of the report come from.
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  std::uint64_t read_backs() const { return read_backs_.load(std::memory_order_relaxed); }

 private:
  const MachineOptions options_;
  Feed feed_;
  HostMemory host_;
  std::vector<std::unique_ptr<Device>> devices_;  ///< Where none is shown, one without memory, for calls that ask none.
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

/// The process's machine. Never destroyed: vendor libraries are called until the very end of a process.
Machine& machine();
/// The same, without making it: null before its first use.
Machine* machine_in_use();
/// What is in the machine, shown or not. To ask it makes no machine: a program may still change what it will be shown.
const MachineOptions& installed();

}  // namespace plimsoll::pretend
