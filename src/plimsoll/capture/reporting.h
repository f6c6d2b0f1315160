#pragma once

#include <memory>

/// The source for every other device (XPU, MPS, one of the user's own): the channel through which allocators report to
/// torch's profiler.

namespace plimsoll::capture {

/// Whether this process knows a device that has no source of its own. Where it knows none, nobody needs the channel,
/// and torch's CPU allocator, which reports to it too, is spared the work.
bool has_other_devices();

/// While it lives, what allocators report on this thread, and on the threads that autograd runs for it, is heard. A
/// profiler that was started before goes on hearing it too; one that is started inside takes the channel over until it
/// stops, and missed() tells that it did.
class ReportingScope {
 public:
  ReportingScope();
  ~ReportingScope();
  ReportingScope(const ReportingScope&) = delete;
  ReportingScope& operator=(const ReportingScope&) = delete;

  /// Whether somebody else holds the channel now.
  bool missed() const;

 private:
  class Channel;
  std::shared_ptr<Channel> channel_;
};

}  // namespace plimsoll::capture
