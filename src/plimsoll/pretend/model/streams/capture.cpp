// Stream capture: the part of Machine that records work into graphs.

#include <algorithm>
#include <unordered_set>

#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {
namespace {

/// Whether the origin waits for all work that other streams captured.
bool joined(const Capture& capture) {
  if (capture.streams.size() == 1) return true;
  std::unordered_set<const GraphNode*> before;
  std::vector<const GraphNode*> open;
  const auto reach = [&](const GraphNode* node) {
    if (before.insert(node).second) open.push_back(node);
  };
  const auto ends_of = [&](const Stream* stream) {
    const auto found = capture.ends.find(stream);
    return found != capture.ends.end() ? found->second : std::vector<GraphNode*>();
  };
  for (const GraphNode* node : ends_of(capture.streams.front())) reach(node);
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    for (const GraphNode* dependency : node->dependencies) reach(dependency);
  }
  for (const Stream* stream : capture.streams) {
    for (const GraphNode* node : ends_of(stream)) {
      if (!before.contains(node)) return false;
    }
  }
  return true;
}

}  // namespace

Waited Machine::wait(Stream& stream, StreamEvent& event) {
  std::unique_lock lock(capture_mutex_, std::defer_lock);
  std::shared_ptr<Capture> capture;
  if (active_captures_.load(std::memory_order_relaxed) > 0) {
    lock.lock();
    capture = event.capture.lock();
  }
  if (!capture) {
    if (lock.owns_lock()) lock.unlock();
    tell(Happening::kWait, stream, event);
    return Waited::kDone;
  }
  if (stream.id == 0) {
    capture->state = Capture::State::kInvalidated;
    return Waited::kOnDefaultStream;
  }
  if (!stream.capture) {
    stream.capture = capture;
    stream.capturing.store(true, std::memory_order_relaxed);
    capture->streams.push_back(&stream);
  }
  if (stream.capture != capture) {
    capture->state = Capture::State::kInvalidated;
    stream.capture->state = Capture::State::kInvalidated;
    return Waited::kAcrossCaptures;
  }
  std::vector<GraphNode*>& ends = capture->ends[&stream];
  for (GraphNode* node : event.captured_ends) {
    if (std::find(ends.begin(), ends.end(), node) == ends.end()) ends.push_back(node);
  }
  return Waited::kDone;
}

bool Machine::begin_capture(Stream& stream, Graph* into, std::vector<GraphNode*> ends) {
  std::lock_guard lock(capture_mutex_);
  if (stream.capture) return false;
  auto capture = std::make_shared<Capture>();
  capture->id = next_capture_id_++;
  capture->graph = into != nullptr ? into : new Graph;
  capture->owns_graph = into == nullptr;
  capture->streams.push_back(&stream);
  capture->ends[&stream] = std::move(ends);
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

EndedCapture Machine::end_capture(Stream& stream) {
  using How = EndedCapture::How;
  std::lock_guard lock(capture_mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return {.how = How::kNotCaptured};
  if (capture->streams.front() != &stream) return {.how = How::kNotOrigin};
  abandon(capture);
  const bool valid = capture->state == Capture::State::kActive;
  if (valid && joined(*capture)) return {.how = How::kDone, .graph = capture->graph};
  if (capture->owns_graph) delete capture->graph;
  return {.how = valid ? How::kUnjoined : How::kInvalidated};
}

bool Machine::set_capture_ends(Stream& stream, std::vector<GraphNode*> ends) {
  std::lock_guard lock(capture_mutex_);
  if (!stream.capture || stream.capture->state != Capture::State::kActive) return false;
  stream.capture->ends[&stream] = std::move(ends);
  return true;
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
                     .ends = ends != capture.ends.end() ? ends->second : std::vector<GraphNode*>()};
}

}  // namespace plimsoll::pretend
