#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/machine.h"

/// Records the events of the pretend GPU while it lives. Copies the names, which are valid only during the listener's
/// call.
class Recorder {
 public:
  struct Entry {
    plimsoll::pretend::Event event;
    std::string name;
  };

  Recorder()
      : token_(plimsoll::pretend::control::listen([this](const plimsoll::pretend::Event& event) {
          std::lock_guard lock(mutex_);
          entries_.push_back({event, event.name});
        })) {}
  ~Recorder() { plimsoll::pretend::control::stop_listening(token_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The events since the last call.
  std::vector<Entry> take() {
    std::lock_guard lock(mutex_);
    return std::move(entries_);
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
  plimsoll::pretend::Feed::Token token_;
};

/// Device memory: an address that faults on a host access.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(plimsoll::Bytes bytes)
      : address_(plimsoll::pretend::machine().device(0).memory.allocate(bytes).value()) {}
  ~DeviceBuffer() { plimsoll::pretend::machine().device(0).memory.free(address_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  template <typename T = void>
  T* get() const {
    return reinterpret_cast<T*>(address_);
  }

 private:
  plimsoll::pretend::Address address_;
};
