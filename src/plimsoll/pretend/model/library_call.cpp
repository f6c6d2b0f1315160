#include "plimsoll/pretend/model/library_call.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/model/streams/functions.h"

namespace plimsoll::pretend {
namespace {

thread_local int t_device = 0;
thread_local const char* t_unpretended = "";
thread_local std::vector<std::byte> t_answer;

struct Unpretended {
  std::mutex mutex;
  std::vector<std::string> names;
};

Unpretended& unpretended_calls() {
  static auto* const calls = new Unpretended;
  return *calls;
}

void enqueue(void* handle, const Event& event) {
  Stream* stream = stream_of(handle);
  if (stream != nullptr) machine().enqueue(*stream, event);
}

}  // namespace

int current_device() { return t_device; }

void set_current_device(int device) { t_device = device; }

bool has_device(int device) { return device >= 0 && device < machine().device_count(); }

Device& ensure_context() {
  Device& device = machine().device(t_device);
  device.ensure_context(machine().profile());
  return device;
}

Stream* stream_of(void* handle) {
  // cudaStreamLegacy is 1, cudaStreamPerThread is 2. Nothing waits on a stream here, so both are the default stream.
  if (reinterpret_cast<std::uintptr_t>(handle) <= 2) return &machine().device(t_device).default_stream;
  auto* stream = static_cast<Stream*>(handle);
  return stream->magic.load(std::memory_order_relaxed) == Stream::kAlive ? stream : nullptr;
}

void enqueue_call(const char* function, void* stream) { enqueue(stream, {.kind = Happening::kCall, .name = function}); }

void enqueue_gemm(const char* function, void* stream, const Gemm& gemm) {
  enqueue(stream,
          {.kind = Happening::kGemm, .name = function, .m = gemm.m, .n = gemm.n, .k = gemm.k, .batch = gemm.batch});
}

void enqueue_collective(const char* function, void* stream, const Collective& collective) {
  enqueue(stream, {.kind = Happening::kCollective,
                   .name = function,
                   .bytes = collective.bytes,
                   .ranks = collective.ranks,
                   .communicator = collective.communicator,
                   .rank = collective.rank,
                   .peer = collective.peer});
}

bool enqueue_launch(const Launch& launch, void* handle) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return false;
  Event event{.kind = Happening::kLaunch, .shared = launch.shared};
  // Names cost a search, so look them up only for a listener or a graph.
  const bool named = machine().feed().listened(Happening::kLaunch) || stream->capturing.load(std::memory_order_relaxed);
  event.name = named ? functions().kernel_name(launch.key) : "";
  std::copy_n(launch.grid, 3, event.grid);
  std::copy_n(launch.block, 3, event.block);
  machine().enqueue(*stream, event);
  return true;
}

void control::answer_next_read_back(std::span<const std::byte> bytes) { t_answer.assign(bytes.begin(), bytes.end()); }

bool enqueue_read_back(const char* function, const void* source, const HostRows& destination, void* handle) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return false;
  Event event{.name = function,
              .bytes = destination.width * destination.height,
              .source = source,
              .destination = destination.start};
  std::vector<std::byte> answer = std::exchange(t_answer, {});
  const bool is_known =
      !answer.empty() && answer.size() == event.bytes && !stream->capturing.load(std::memory_order_relaxed);
  event.kind = is_known ? Happening::kCopy : Happening::kReadBack;
  if (!is_known) answer.clear();
  machine().enqueue(*stream, event, [destination, answer = std::move(answer)] {
    for (Bytes row = 0; row < destination.height; ++row) {
      char* const start = static_cast<char*>(destination.start) + row * destination.pitch;
      if (answer.empty()) {
        machine().host().zero(start, destination.width);
      } else {
        std::memcpy(start, answer.data() + row * destination.width, destination.width);
      }
    }
  });
  return true;
}

bool charge(int device, Bytes bytes, Reason reason) { return machine().device(device).memory.charge(bytes, reason); }

void discharge(int device, Bytes bytes, Reason reason) { machine().device(device).memory.discharge(bytes, reason); }

int unpretended(const char* function, int status) noexcept {
  t_unpretended = function;
  Unpretended& calls = unpretended_calls();
  bool first = false;
  {
    std::lock_guard lock(calls.mutex);
    first = std::find(calls.names.begin(), calls.names.end(), function) == calls.names.end();
    if (first) calls.names.emplace_back(function);
  }
  if (first) std::fprintf(stderr, "plimsoll: %s is not implemented by the pretend GPU; the call failed\n", function);
  machine().feed().publish({.kind = Happening::kUnpretended, .name = function});
  return status;
}

const char* last_unpretended(std::string_view prefix) noexcept {
  return std::string_view(t_unpretended).starts_with(prefix) ? t_unpretended : "";
}

bool is_host(const void* pointer) { return pointer != nullptr && !machine().device_of(pointer).has_value(); }

std::vector<std::string> control::unpretended() {
  Unpretended& calls = unpretended_calls();
  std::lock_guard lock(calls.mutex);
  return calls.names;
}

}  // namespace plimsoll::pretend

PLIMSOLL_API int plimsoll_fail_by_name(const char* function, int status) {
  return plimsoll::pretend::unpretended(function, status);
}
