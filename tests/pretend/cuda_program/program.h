#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/control.h"
#include "pretend/recorder.h"

// The functions that a CUDA compiler calls from a program.
extern "C" {
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int);
}

namespace program {

using namespace plimsoll::literals;
namespace control = plimsoll::pretend::control;
using plimsoll::pretend::Happening;

/// The events of one kind during `action`.
inline std::vector<Recorder::Entry> events_during(Happening kind, const auto& action) {
  Recorder recorder;
  action();
  std::vector<Recorder::Entry> entries = recorder.take();
  std::erase_if(entries, [kind](const Recorder::Entry& entry) { return entry.event.kind != kind; });
  return entries;
}

/// A kernel's host stub, registered as "program_kernel".
inline const void* kernel() {
  static const char stub = 0;
  static const bool registered = [] {
    __cudaRegisterFunction(nullptr, &stub, nullptr, "program_kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    return true;
  }();
  return registered ? &stub : nullptr;
}

inline cudaError_t launch_on(cudaStream_t stream) {
  return cudaLaunchKernel(kernel(), dim3(1), dim3(1), nullptr, 0, stream);
}

/// A stream of the current device, destroyed with its scope.
class OwnStream {
 public:
  OwnStream() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess); }
  ~OwnStream() { CHECK(cudaStreamDestroy(stream_) == cudaSuccess); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// An event of the current device.
class OwnEvent {
 public:
  explicit OwnEvent(unsigned flags = 0) { REQUIRE(cudaEventCreateWithFlags(&event_, flags) == cudaSuccess); }
  ~OwnEvent() { CHECK(cudaEventDestroy(event_) == cudaSuccess); }
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The current device for the length of a scope.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    REQUIRE(cudaGetDevice(&before_) == cudaSuccess);
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
  }
  ~OnDevice() { CHECK(cudaSetDevice(before_) == cudaSuccess); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// Whether `given` is `expected` and is the thread's last error, which is then cleared.
inline bool fails_with(cudaError_t expected, cudaError_t given) {
  return given == expected && cudaGetLastError() == expected;
}

/// Whether `name` is among the calls that failed by name.
inline bool failed_by_name(const std::string& name) {
  const std::vector<std::string> names = control::unpretended();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace program
