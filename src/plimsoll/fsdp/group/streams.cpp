#include "plimsoll/fsdp/group/streams.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace plimsoll::fsdp {

Stream Stream::current(at::Device device) {
  if (device.is_cpu()) return {};
  return Stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

Stream Stream::create(at::Device device, int priority) {
  if (device.is_cpu()) return {};
  return Stream(c10::impl::VirtualGuardImpl(device.type()).getNewStream(device, priority));
}

Event Stream::record_event() const {
  if (!stream_) return nullptr;
  auto event = std::make_shared<c10::Event>(stream_->device_type());
  event->record(*stream_);
  return event;
}

void Stream::wait_event(const Event& event) const {
  if (stream_ && event) event->block(*stream_);
}

}  // namespace plimsoll::fsdp
