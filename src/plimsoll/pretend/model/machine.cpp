#include "plimsoll/pretend/model/machine.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/errors.h"

namespace plimsoll::pretend {
namespace {

/// Addresses for one card: far more than its memory, because expandable segments reserve more than they map, and
/// addresses are reused only after the end is reached.
constexpr Bytes kWindow = Bytes{8} << 40;
/// The limit for all cards, which leaves addresses for the program itself in a 47-bit address space.
constexpr Bytes kAllWindows = Bytes{64} << 40;

/// Expandable segments reserve more than a card's memory for each stream.
constexpr Bytes kCardsInWindow = 16;

Bytes window_for(int devices, Bytes memory) {
  return std::min(std::max(kWindow, kCardsInWindow * memory), kAllWindows / static_cast<Bytes>(devices));
}

}  // namespace

Device::Device(int index, int card, const Profile& profile, Bytes window, std::uint64_t lag, Feed& feed)
    : index(index), card(card), memory(index, profile.memory, window, feed), default_pool(index, memory), clock(lag) {
  default_stream.device = index;
}

bool Device::ensure_context(const Profile& profile) {
  if (has_context()) return true;
  std::lock_guard lock(mutex_);
  if (has_context()) return true;
  if (!memory.charge(profile.context, Reason::kContext)) return false;
  context_.store(true, std::memory_order_release);
  return true;
}

std::size_t Device::limit(int which) const {
  constexpr int kStackSize = 0;  // cudaLimitStackSize and CU_LIMIT_STACK_SIZE
  std::lock_guard lock(mutex_);
  const auto found = limits_.find(which);
  if (found != limits_.end()) return found->second;
  return which == kStackSize ? 1024 : 0;
}

void Device::set_limit(int which, std::size_t value) {
  std::lock_guard lock(mutex_);
  limits_[which] = value;
}

Machine::Machine(MachineOptions options) : options_(std::move(options)) {
  if (options_.cards < 1)
    throw InvalidArgument("a machine needs at least one GPU, found " + std::to_string(options_.cards));
  std::vector<int> shown(static_cast<std::size_t>(options_.cards));
  std::iota(shown.begin(), shown.end(), 0);
  if (options_.shown) shown = *options_.shown;
  device_count_ = static_cast<int>(shown.size());
  Profile profile = options_.profile;
  if (shown.empty()) {
    profile.memory = 0;
    shown.push_back(0);
  }
  const Bytes window = window_for(static_cast<int>(shown.size()), profile.memory);
  for (const int card : shown) {
    const int index = static_cast<int>(devices_.size());
    devices_.push_back(std::make_unique<Device>(index, card, profile, window, options_.event_lag, feed_));
  }
}

Device* Machine::device_of_card(int card) {
  for (int index = 0; index < device_count_; ++index) {
    if (device(index).card == card) return &device(index);
  }
  return nullptr;
}

std::optional<int> Machine::device_of(const void* pointer) const {
  const auto address = reinterpret_cast<Address>(pointer);
  for (const auto& device : devices_) {
    if (device->memory.contains(address)) return device->index;
  }
  return std::nullopt;
}

Stream* Machine::create_stream(int device, int priority, unsigned flags) {
  std::lock_guard lock(streams_mutex_);
  Stream& stream = streams_.emplace_back();
  stream.device = device;
  stream.priority = std::clamp(priority, Stream::kGreatestPriority, Stream::kLeastPriority);
  stream.flags = flags;
  stream.id = next_stream_id_++;
  return &stream;
}

void Machine::destroy_stream(Stream* stream) {
  if (stream->capturing.load(std::memory_order_relaxed)) {
    std::lock_guard lock(capture_mutex_);
    if (const std::shared_ptr<Capture> capture = stream->capture) {
      abandon(capture);
      if (capture->owns_graph) delete capture->graph;
    }
  }
  std::lock_guard lock(streams_mutex_);
  stream->magic.store(0, std::memory_order_relaxed);
}

StreamEvent* Machine::create_event(int device, unsigned flags) {
  std::lock_guard lock(streams_mutex_);
  StreamEvent* event = nullptr;
  if (idle_events_.empty()) {
    event = &events_.emplace_back();
  } else {
    event = idle_events_.back();
    idle_events_.pop_back();
  }
  event->device = device;
  event->flags = flags;
  event->recorded.store(false, std::memory_order_relaxed);
  event->mark.store(0, std::memory_order_relaxed);
  event->magic.store(StreamEvent::kAlive, std::memory_order_relaxed);
  return event;
}

void Machine::destroy_event(StreamEvent* event) {
  if (active_captures_.load(std::memory_order_relaxed) > 0) {
    std::lock_guard lock(capture_mutex_);
    event->capture.reset();
    event->captured_ends.clear();
  }
  std::lock_guard lock(streams_mutex_);
  event->magic.store(0, std::memory_order_relaxed);
  idle_events_.push_back(event);
}

void Machine::enqueue(Stream& stream, Event event, std::function<void()> host_work) {
  event.device = stream.device;
  event.stream = stream.id;
  if (stream.capturing.load(std::memory_order_relaxed)) {
    std::lock_guard lock(capture_mutex_);
    if (stream.capture) {
      std::vector<GraphNode*>& ends = stream.capture->ends[&stream];
      GraphNode& node = stream.capture->graph->add(event, ends);
      node.host_work = std::move(host_work);
      ends = {&node};
      return;
    }
  }
  if (event.kind == Happening::kLaunch) launches_.fetch_add(1, std::memory_order_relaxed);
  if (event.kind == Happening::kReadBack) read_backs_.fetch_add(1, std::memory_order_relaxed);
  devices_[static_cast<std::size_t>(stream.device)]->clock.tick();
  feed_.publish(event);
  if (host_work) host_work();
}

bool Machine::record(StreamEvent& event, Stream& stream) {
  if (event.device != stream.device) return false;
  if (active_captures_.load(std::memory_order_relaxed) > 0) {
    std::lock_guard lock(capture_mutex_);
    event.capture = stream.capture;
    event.captured_ends = stream.capture ? stream.capture->ends[&stream] : std::vector<GraphNode*>();
  }
  event.due.store(devices_[static_cast<std::size_t>(stream.device)]->clock.record(), std::memory_order_relaxed);
  event.recorded.store(true, std::memory_order_relaxed);
  event.mark.store(marks_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!stream.capturing.load(std::memory_order_relaxed)) tell(Happening::kRecord, stream, event);
  return true;
}

void Machine::tell(Happening kind, const Stream& stream, const StreamEvent& about) {
  feed_.publish(
      {.kind = kind, .device = stream.device, .stream = stream.id, .mark = about.mark.load(std::memory_order_relaxed)});
}

bool Machine::completed(const StreamEvent& event) {
  if (!event.recorded.load(std::memory_order_relaxed)) return true;
  return device(event.device).clock.has_reached(event.due.load(std::memory_order_relaxed));
}

void Machine::complete_everything(int index) {
  device(index).clock.wait();
  device(index).default_pool.synchronized();
  device(index).made_pools.synchronized();
}

void Machine::synchronize(int index, const char* what) {
  complete_everything(index);
  tell_synchronized(index, what, 0);
}

void Machine::synchronize(const StreamEvent& event, const char* what) {
  if (!completed(event)) complete_everything(event.device);
  tell_synchronized(event.device, what, event.mark.load(std::memory_order_relaxed));
}

void Machine::tell_synchronized(int index, const char* what, std::uint64_t mark) {
  feed_.publish({.kind = Happening::kSynchronize, .device = index, .name = what, .mark = mark});
}

void Machine::launch(const Graph& graph, Stream& stream) {
  for (const auto& node : graph.nodes()) {
    Event event = node->event;
    event.replayed = true;
    enqueue(stream, event, node->host_work);
  }
}

}  // namespace plimsoll::pretend
