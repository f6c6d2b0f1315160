// Stream capture: the part of Machine that records work into graphs.

#include <algorithm>

#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {

bool Machine::wait(Stream& stream, StreamEvent& event) {
  std::unique_lock lock(capture_mutex_, std::defer_lock);
  std::shared_ptr<Capture> capture;
  if (active_captures_.load(std::memory_order_relaxed) > 0) {
    lock.lock();
    capture = event.capture.lock();
  }
  if (!capture) {
    if (lock.owns_lock()) lock.unlock();
    tell(Happening::kWait, stream, event);
    return true;
  }
  if (stream.id == 0) {
    capture->state = Capture::State::kInvalidated;
    return false;
  }
  if (!stream.capture) {
    stream.capture = capture;
    stream.capturing.store(true, std::memory_order_relaxed);
    capture->streams.push_back(&stream);
  }
  if (stream.capture != capture) return true;
  std::vector<GraphNode*>& ends = capture->ends[&stream];
  for (GraphNode* node : event.captured_ends) {
    if (std::find(ends.begin(), ends.end(), node) == ends.end()) ends.push_back(node);
  }
  return true;
}

bool Machine::begin_capture(Stream& stream, Graph* into) {
  std::lock_guard lock(capture_mutex_);
  if (stream.capture) return false;
  auto capture = std::make_shared<Capture>();
  capture->id = next_capture_id_++;
  capture->graph = into != nullptr ? into : new Graph;
  capture->owns_graph = into == nullptr;
  capture->streams.push_back(&stream);
  stream.capture = capture;
  stream.capturing.store(true, std::memory_order_relaxed);
  captures_.push_back(std::move(capture));
  active_captures_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Machine::abandon(const std::shared_ptr<Capture>& capture) {
  const std::shared_ptr<Capture> kept = capture;
  for (Stream* stream : kept->streams) {
    stream->capture.reset();
    stream->capturing.store(false, std::memory_order_relaxed);
  }
  std::erase(captures_, kept);
  active_captures_.fetch_sub(1, std::memory_order_relaxed);
}

std::optional<Graph*> Machine::end_capture(Stream& stream) {
  std::lock_guard lock(capture_mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture || capture->streams.front() != &stream) return std::nullopt;
  abandon(capture);
  if (capture->state == Capture::State::kActive) return capture->graph;
  if (capture->owns_graph) delete capture->graph;
  return std::nullopt;
}

bool Machine::forbid_in_capture(Stream& stream) {
  if (!stream.capturing.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(capture_mutex_);
  if (!stream.capture) return false;
  stream.capture->state = Capture::State::kInvalidated;
  return true;
}

bool Machine::forbid_in_captures_of(int index) {
  if (active_captures_.load(std::memory_order_relaxed) == 0) return false;
  std::lock_guard lock(capture_mutex_);
  bool found = false;
  for (const auto& capture : captures_) {
    for (const Stream* stream : capture->streams) {
      if (stream->device != index) continue;
      capture->state = Capture::State::kInvalidated;
      found = true;
    }
  }
  return found;
}

std::optional<CaptureView> Machine::capture_of(Stream& stream) {
  if (!stream.capturing.load(std::memory_order_relaxed)) return std::nullopt;
  std::lock_guard lock(capture_mutex_);
  if (!stream.capture) return std::nullopt;
  const Capture& capture = *stream.capture;
  const auto ends = capture.ends.find(&stream);
  return CaptureView{.active = capture.state == Capture::State::kActive,
                     .id = capture.id,
                     .graph = capture.graph,
                     .is_origin = capture.streams.front() == &stream,
                     .ends = ends != capture.ends.end() ? ends->second : std::vector<GraphNode*>()};
}

}  // namespace plimsoll::pretend
