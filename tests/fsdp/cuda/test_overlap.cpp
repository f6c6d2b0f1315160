#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "fsdp/cuda/gpu_world.h"
#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/pretend/model/control.h"

// Overlap: the order of work, records and waits on the streams of the pretend GPU. Work on two streams can overlap
// unless a wait orders it. So these tests check which waits exist and which do not.

using namespace plimsoll;
using pretend::Happening;
using small::GpuWorld;

namespace {

struct Entry {
  Happening kind{};
  std::uint64_t stream = 0;
  std::uint64_t mark = 0;
  std::string name;
};

bool is_work(const Entry& entry) { return entry.kind != Happening::kRecord && entry.kind != Happening::kWait; }
bool is_all_gather(const Entry& entry) {
  return entry.kind == Happening::kCollective && entry.name.find("AllGather") != std::string::npos;
}
bool is_reduce_scatter(const Entry& entry) {
  return entry.kind == Happening::kCollective && entry.name.find("ReduceScatter") != std::string::npos;
}

/// Records the stream operations of its lifetime, and marks of the test.
class Timeline {
 public:
  Timeline()
      : token_(pretend::control::listen(
            [this](const pretend::Event& event) {
              const std::lock_guard lock(mutex_);
              entries_.push_back({event.kind, event.stream, event.mark, event.name});
            },
            pretend::bit(Happening::kLaunch) | pretend::bit(Happening::kGemm) | pretend::bit(Happening::kCall) |
                pretend::bit(Happening::kCollective) | pretend::bit(Happening::kCopy) | pretend::bit(Happening::kFill) |
                pretend::bit(Happening::kRecord) | pretend::bit(Happening::kWait))) {}
  ~Timeline() { pretend::control::stop_listening(token_); }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  std::size_t now() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  const std::vector<Entry>& entries() const { return entries_; }

  /// Whether the work at `later` must wait for that at `earlier`, because of stream order and waits.
  bool is_ordered(std::size_t earlier, std::size_t later) const {
    // The entries that each stream, and each mark, must come after.
    std::vector<std::uint64_t> streams{entries_[earlier].stream}, marks;
    const auto has = [](const auto& list, std::uint64_t value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    for (std::size_t i = earlier + 1; i < later; ++i) {
      const Entry& entry = entries_[i];
      if (entry.kind == Happening::kRecord && has(streams, entry.stream)) marks.push_back(entry.mark);
      if (entry.kind == Happening::kWait && has(marks, entry.mark)) streams.push_back(entry.stream);
    }
    return has(streams, entries_[later].stream);
  }

  /// The indices of entries from `first` to `last` that satisfy the predicate.
  template <class Is>
  std::vector<std::size_t> find(Is is, std::size_t first = 0, std::size_t last = SIZE_MAX) const {
    std::vector<std::size_t> found;
    for (std::size_t i = first; i < std::min(last, entries_.size()); ++i) {
      if (is(entries_[i])) found.push_back(i);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
  pretend::Feed::Token token_;
};

/// The positions of each layer's compute in the timeline, in forward and in backward.
struct Spans {
  std::vector<std::size_t> begins, ends;                    // Of forward, one per layer.
  std::vector<std::size_t> backward_begins, backward_ends;  // Of backward, the last layer first.
};

/// A model after one step, so that all one-time allocations exist.
struct Trained {
  GpuWorld world{8};
  small::Net net{64, 4};

  explicit Trained(const fsdp::FullyShardOptions& given = {}) {
    auto options = given;
    options.mesh = GpuWorld::mesh();
    small::shard(net, options);
    step();
  }
  void step() { small::loss_of(net, small::gpu_batch(64)).backward(); }

  void watch(Timeline& timeline, Spans& spans) {
    for (auto& layer : net->layers) {
      // Between FSDP's own hooks and the module's forward; in backward, between pre-backward and the first gradient.
      layer->register_forward_pre_hook([&](torch::nn::Module&, nn::Tensors& arguments) {
        spans.begins.push_back(timeline.now());
        if (!arguments[0].requires_grad()) return;
        arguments[0].register_hook([&](const at::Tensor&) { spans.backward_ends.push_back(timeline.now()); });
      });
      layer->register_forward_hook([&](torch::nn::Module&, nn::Tensors&, nn::Tensors& results) {
        spans.ends.push_back(timeline.now());
        results[0].register_hook([&](const at::Tensor&) { spans.backward_begins.push_back(timeline.now()); });
      });
    }
  }
};

}  // namespace

TEST_CASE("in forward the next all-gather does not wait for the current compute") {
  Trained trained;
  Timeline timeline;
  Spans spans;
  trained.watch(timeline, spans);
  trained.step();
  REQUIRE(spans.begins.size() == 4);
  for (std::size_t layer = 0; layer + 1 < 4; ++layer) {
    const auto compute = timeline.find([](const Entry& e) { return e.kind == Happening::kGemm; }, spans.begins[layer],
                                       spans.ends[layer]);
    const auto gathers = timeline.find(is_all_gather, spans.ends[layer], spans.begins[layer + 1]);
    REQUIRE(compute.size() == 1);
    REQUIRE(gathers.size() == 1);
    CHECK_FALSE(timeline.is_ordered(compute[0], gathers[0]));
    // The compute of the following layer waits for it.
    const auto next = timeline.find(is_work, spans.begins[layer + 1], spans.ends[layer + 1]);
    CHECK(timeline.is_ordered(gathers[0], next[0]));
    CHECK(timeline.entries()[gathers[0]].stream != timeline.entries()[compute[0]].stream);
  }
}

TEST_CASE("in forward copy-in waits neither for the previous all-gather nor for compute") {
  Trained trained;
  Timeline timeline;
  Spans spans;
  trained.watch(timeline, spans);
  trained.step();
  for (std::size_t layer = 0; layer + 1 < 4; ++layer) {
    const auto gathers = timeline.find(is_all_gather, spans.ends[layer], spans.begins[layer + 1]);
    const auto compute = timeline.find([](const Entry& e) { return e.kind == Happening::kGemm; }, spans.begins[layer],
                                       spans.ends[layer]);
    const auto copies = timeline.find(is_work, spans.ends[layer], gathers[0]);
    REQUIRE(copies.size() >= 1);
    CHECK(timeline.entries()[copies[0]].stream != timeline.entries()[gathers[0]].stream);
    CHECK_FALSE(timeline.is_ordered(compute[0], copies[0]));
    CHECK(timeline.is_ordered(copies.back(), gathers[0]));
    const auto before = timeline.find(is_all_gather, 0, gathers[0]);
    if (layer > 0) CHECK_FALSE(timeline.is_ordered(before.back(), copies[0]));
  }
}

TEST_CASE("with explicit prefetch the next layers' all-gathers are issued before the current compute") {
  Trained trained;
  auto& layers = trained.net->layers;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    fsdp::FSDPModule(layers[i]).set_modules_to_forward_prefetch({fsdp::FSDPModule(layers[i + 1])});
  }
  Timeline timeline;
  Spans spans;
  trained.watch(timeline, spans);
  trained.step();
  for (std::size_t layer = 0; layer + 1 < 4; ++layer) {
    const auto issued = timeline.find(is_all_gather, 0, spans.begins[layer]);
    CHECK(issued.size() == layer + 3);  // The root's, the earlier ones', its own and the next one's.
    CHECK(timeline.find(is_all_gather, spans.begins[layer], spans.ends[layer]).empty());
  }
}

TEST_CASE("in backward the previous module's all-gather is issued before the current module's compute") {
  Trained trained;
  Timeline timeline;
  Spans spans;
  trained.watch(timeline, spans);
  trained.step();
  REQUIRE(spans.backward_begins.size() == 4);
  const auto forward_end = spans.ends.back();
  for (std::size_t layer = 0; layer < 4; ++layer) {  // From the last to the first.
    const auto issued = timeline.find(is_all_gather, forward_end, spans.backward_begins[layer]);
    CHECK(issued.size() == std::min<std::size_t>(layer + 2, 4));  // Its own, and one ahead.
    const auto next =
        timeline.find([](const Entry& e) { return e.kind == Happening::kGemm; }, spans.backward_begins[layer]);
    REQUIRE_FALSE(next.empty());
    if (layer + 1 < 4) CHECK_FALSE(timeline.is_ordered(next[0], issued.back()));
    CHECK(timeline.is_ordered(issued[layer], next[0]));
  }
}

TEST_CASE("compute waits for a reduce-scatter only if its buffer is reused") {
  Trained trained;
  Timeline timeline;
  Spans spans;
  trained.watch(timeline, spans);
  trained.step();
  const auto scatters = timeline.find(is_reduce_scatter);
  REQUIRE(scatters.size() == 5);
  const auto gemms = timeline.find([](const Entry& e) { return e.kind == Happening::kGemm; });
  const auto compute_stream = timeline.entries()[gemms.back()].stream;
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(timeline.entries()[scatters[i]].stream != compute_stream);
    CHECK(timeline.entries()[scatters[i]].stream == timeline.entries()[scatters[0]].stream);
    // All products until the next reduction's copy-in may run beside it.
    const auto until = i + 1 < 5 ? scatters[i + 1] : timeline.entries().size();
    for (const std::size_t gemm : gemms) {
      if (scatters[i] < gemm && gemm < until) CHECK_FALSE(timeline.is_ordered(scatters[i], gemm));
    }
    // The next copy-in reuses its memory, so comes after it.
    if (i + 1 < 5) {
      const auto copies = timeline.find([&](const Entry& e) { return is_work(e) && e.stream == compute_stream; },
                                        scatters[i], scatters[i + 1]);
      REQUIRE_FALSE(copies.empty());
      CHECK(timeline.is_ordered(scatters[i], copies.back()));
    }
  }
}

TEST_CASE("with two reduce-scatter inputs compute waits for the last but one") {
  GpuWorld world(8);
  small::Net net(64, 4);
  auto module = small::shard(net, {.mesh = GpuWorld::mesh()});
  module.set_reduce_scatter_max_input_buffers(2);
  const auto step = [&] { small::loss_of(net, small::gpu_batch(64)).backward(); };
  step();
  Timeline timeline;
  step();
  const auto scatters = timeline.find(is_reduce_scatter);
  REQUIRE(scatters.size() == 5);
  for (std::size_t i = 0; i + 2 < 5; ++i) {
    const auto stream = timeline.entries()[scatters[i]].stream;
    const auto copies = [&](std::size_t n) {
      return timeline.find([&](const Entry& e) { return is_work(e) && e.stream == 0; }, scatters[n], scatters[n + 1]);
    };
    CHECK(stream != 0);
    CHECK_FALSE(timeline.is_ordered(scatters[i], copies(i).back()));
    CHECK(timeline.is_ordered(scatters[i], copies(i + 1).back()));
  }
}

TEST_CASE("after backward, the compute stream sees all reduced gradients") {
  Trained trained;
  Timeline timeline;
  trained.step();
  const auto last = timeline.find(is_reduce_scatter).back();
  at::ones({1}, at::TensorOptions().device(at::kCUDA)).add_(1);
  const auto next = timeline.find([](const Entry& e) { return is_work(e) && e.stream == 0; }, last);
  CHECK(timeline.is_ordered(last, next.back()));
}

TEST_CASE("the first all-gather of a step waits for the optimizer, or for the given event") {
  Trained trained;
  const auto options = at::TensorOptions().device(at::kCUDA);
  for (const bool given : {false, true}) {
    Timeline timeline;
    at::ones({1}, options).add_(1);  // The optimizer's last work.
    const auto optimizer = timeline.now() - 1;
    std::size_t logging = 0;
    if (given) {
      auto event = std::make_shared<c10::Event>(at::kCUDA);
      event->record(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(at::Device(at::kCUDA, 0)));
      fsdp::FSDPModule(trained.net).set_post_optim_event(event);
      at::ones({1}, options).add_(1);
      logging = timeline.now() - 1;
    }
    trained.step();
    const auto first = timeline.find(is_all_gather)[0];
    CHECK(timeline.is_ordered(optimizer, first));
    if (given) CHECK_FALSE(timeline.is_ordered(logging, first));
  }
}
