// Stream capture: the part of Machine that records work into graphs.

#include <algorithm>

#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {

void Machine::wait(Stream& stream, StreamEvent& event) {
  if (active_captures_.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(capture_mutex_);
  const std::shared_ptr<Capture> capture = event.capture.lock();
  if (!capture || stream.capture) return;
  stream.capture = capture;
  stream.capturing.store(true, std::memory_order_relaxed);
  capture->streams.push_back(&stream);
}

bool Machine::begin_capture(Stream& stream, int mode, Graph* into) {
  std::lock_guard lock(capture_mutex_);
  if (stream.capture) return false;
  auto capture = std::make_shared<Capture>(next_capture_id_++, mode, into != nullptr ? into : new Graph, into == nullptr);
  capture->streams.push_back(&stream);
  stream.capture = capture;
  stream.capturing.store(true, std::memory_order_relaxed);
  captures_.push_back(std::move(capture));
  active_captures_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::optional<Graph*> Machine::end_capture(Stream& stream) {
  std::lock_guard lock(capture_mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture || capture->streams.front() != &stream) return std::nullopt;
  for (Stream* joined : capture->streams) {
    joined->capture.reset();
    joined->capturing.store(false, std::memory_order_relaxed);
  }
  std::erase(captures_, capture);
  active_captures_.fetch_sub(1, std::memory_order_relaxed);
  if (capture->state == Capture::State::kInvalidated) {
    if (capture->owns_graph) delete capture->graph;
    return std::nullopt;
  }
  return capture->graph;
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

std::shared_ptr<Capture> Machine::capture_of(Stream& stream) {
  if (!stream.capturing.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard lock(capture_mutex_);
  return stream.capture;
}

}  // namespace plimsoll::pretend
