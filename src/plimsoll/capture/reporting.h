#pragma once

#include <memory>

/// The source for all other devices (XPU, MPS, user devices): the channel through which allocators report to torch's
/// profiler.

namespace plimsoll::capture {

/// Whether the process has a device without a source of its own. If not, the channel stays closed, because torch's CPU
/// allocator reports to it too, at a cost.
bool has_other_devices();

/// Observes allocator reports on this thread, and on autograd threads that work for it. A profiler that was started
/// earlier still receives the reports. A profiler that starts inside the scope takes the channel until it stops;
/// missed() tells.
class ReportingScope {
 public:
  ReportingScope();
  ~ReportingScope();
  ReportingScope(const ReportingScope&) = delete;
  ReportingScope& operator=(const ReportingScope&) = delete;

  /// Whether a profiler holds the channel now.
  bool missed() const;

 private:
  class Channel;
  std::shared_ptr<Channel> channel_;
};

}  // namespace plimsoll::capture
