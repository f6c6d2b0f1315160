#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>

/// Streams and events of any device through torch's device guard. The CPU has none: there, these functions do nothing.
namespace plimsoll::fsdp {

/// A point in a stream to wait for. Null on the CPU.
using Event = std::shared_ptr<c10::Event>;

class Stream {
 public:
  Stream() = default;  ///< The CPU's.
  explicit Stream(c10::Stream stream) : stream_(stream) {}

  static Stream current(at::Device device);
  /// A smaller number means a higher priority.
  static Stream create(at::Device device, int priority = 0);

  /// A new event after all work that the stream has so far.
  Event record_event() const;
  void wait_event(const Event& event) const;
  void wait_stream(const Stream& other) const { wait_event(other.record_event()); }

  const std::optional<c10::Stream>& stream() const { return stream_; }
  bool operator==(const Stream&) const = default;

 private:
  std::optional<c10::Stream> stream_;
};

/// Makes a stream the current one of its device for a scope.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream) {
    if (stream.stream()) guard_.emplace(*stream.stream());
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace plimsoll::fsdp
