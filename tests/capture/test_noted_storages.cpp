#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "capture/recording_listener.h"
#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/holders.h"
#include "plimsoll/capture/noted_storages.h"

namespace plimsoll::capture {

namespace {

const c10::Device kStandsFor(c10::kXPU, 3);

at::Tensor without_memory(std::int64_t numel) { return at::empty({numel}, at::device(at::kMeta).dtype(at::kFloat)); }

}  // namespace

TEST_CASE("a noted storage counts on its nominal device until it is destroyed") {
  RecordingListener listener;
  const Subscription subscription(listener);
  {
    const auto tensor = without_memory(16);
    CHECK(!find(tensor));
    CHECK(note_storage(tensor.storage(), kStandsFor, 64));
    CHECK(listener.total(kStandsFor) == 64);
    CHECK(find(tensor)->bytes == 64);
    const auto view = tensor.view({4, 4});
    CHECK(find(view)->id == find(tensor)->id);
  }
  CHECK(listener.total(kStandsFor) == 0);
  CHECK(listener.defects.empty());
}

TEST_CASE("a storage is noted once, and a storage with memory is never noted") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto tensor = without_memory(16);
  CHECK(note_storage(tensor.storage(), kStandsFor, 64));
  CHECK(!note_storage(tensor.storage(), kStandsFor, 64));
  CHECK(!note_storage(at::ones({4}).storage(), kStandsFor, 16));
  CHECK(listener.total(kStandsFor) == 64);
}

TEST_CASE("a noted storage that is resized counts its new size") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto tensor = without_memory(16);
  note_storage(tensor.storage(), kStandsFor, 64);
  noted_storage_resized(tensor.storage(), 0);
  CHECK(listener.total(kStandsFor) == 0);
  noted_storage_resized(tensor.storage(), 128);
  CHECK(listener.total(kStandsFor) == 128);
  noted_storage_resized(without_memory(4).storage(), 16);  // Not noted: no effect.
  CHECK(listener.total(kStandsFor) == 128);
}

TEST_CASE("on a GPU a noted storage counts in blocks of the caching allocator") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const c10::Device gpu(c10::kCUDA, 3);
  const auto tensor = without_memory(16);
  note_storage(tensor.storage(), gpu, 64);
  CHECK(listener.total(gpu) == 512);
  noted_storage_resized(tensor.storage(), 1000);
  CHECK(listener.total(gpu) == 1024);
}

TEST_CASE("a plain tensor holds its own memory") {
  const auto tensor = at::ones({4});
  int calls = 0;
  for_each_holder(tensor, [&](const at::Tensor& holder) {
    ++calls;
    CHECK(holder.is_same(tensor));
  });
  CHECK(calls == 1);
}

TEST_CASE("a forked child has no listeners and can allocate") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto before = listener.alive.size();
  const pid_t child = fork();
  if (child == 0) {
    const auto tensor = at::empty({1024});
    _exit(listener.alive.size() == before ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  const auto tensor = at::empty({1024});
  CHECK(listener.alive.size() == before + 1);
}

}  // namespace plimsoll::capture
