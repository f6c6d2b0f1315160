#include <c10/core/InferenceMode.h>
#include <doctest/doctest.h>

#include "fsdp/cuda/gpu_world.h"
#include "fsdp/message_of.h"
#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/nn/optim/adamw.h"

// After model and optimizer are destroyed, no memory is in use on the pretend GPU, in any of these cases.

using namespace plimsoll;
using small::GpuWorld;

namespace {

fsdp::FullyShardOptions on_gpu() { return {.mesh = GpuWorld::mesh()}; }

/// Bytes still in use after all that `work` made is destroyed.
template <class Work>
std::int64_t left_by(Work work) {
  const GpuWorld world(4, "fake");
  plimsoll::settle();
  const auto before = small::active_bytes();
  work();
  plimsoll::settle();
  return small::active_bytes() - before;
}

void step(small::Net& net) { small::loss_of(net, small::gpu_batch()).backward(); }

}  // namespace

TEST_CASE("a trained model frees all memory") {
  CHECK(left_by([] {
          small::Net net;
          auto module = small::shard(net, on_gpu());
          nn::AdamW optimizer(net->parameters(), {.lr = 0.1});
          for (int i = 0; i < 3; ++i) {
            step(net);
            optimizer.step();
            optimizer.zero_grad();
          }
          CHECK(small::active_bytes() > 0);
        }) == 0);
}

TEST_CASE("a model that never ran, was only evaluated, or was unsharded by hand frees all memory") {
  CHECK(left_by([] {
          small::Net net;
          small::shard(net, on_gpu());
        }) == 0);
  CHECK(left_by([] {
          small::Net net;
          small::shard(net, on_gpu());
          const c10::InferenceMode inference;
          net(small::gpu_batch());
        }) == 0);
  CHECK(left_by([] {
          small::Net net;
          small::shard(net, on_gpu()).unshard();
          fsdp::FSDPModule(net->layers[0]).unshard(/*async_op=*/true);
        }) == 0);
}

TEST_CASE("a forward without a backward frees all memory") {
  CHECK(left_by([] {
          small::Net net;
          small::shard(net, on_gpu());
          auto loss = small::loss_of(net, small::gpu_batch());
        }) == 0);
}

TEST_CASE("a graph that outlives the model frees all memory when it is destroyed") {
  CHECK(left_by([] {
          at::Tensor loss;
          {
            small::Net net;
            small::shard(net, on_gpu());
            loss = small::loss_of(net, small::gpu_batch());
          }
          loss.backward();
        }) == 0);
}

TEST_CASE("after an exception without a reset, the model's end frees all memory") {
  for (const auto fault : {&small::LayerImpl::fails_in_forward, &small::LayerImpl::fails_in_backward}) {
    for (const bool sync : {true, false}) {
      CHECK(left_by([&] {
              small::Net net;
              auto module = small::shard(net, on_gpu());
              step(net);
              module.set_requires_gradient_sync(sync);
              step(net);
              (*net->layers[1]).*fault = true;
              CHECK_THROWS(step(net));
            }) == 0);
    }
  }
}

TEST_CASE("after an exception and a reset, memory is the same as before it") {
  const GpuWorld world(4, "fake");
  small::Net net;
  auto module = small::shard(net, on_gpu());
  for (int i = 0; i < 2; ++i) {
    step(net);
    small::zero_grad(*net);
  }
  plimsoll::settle();
  const auto before = small::active_bytes();
  for (const auto fault : {&small::LayerImpl::fails_in_forward, &small::LayerImpl::fails_in_backward}) {
    (*net->layers[1]).*fault = true;
    CHECK_THROWS(step(net));
    (*net->layers[1]).*fault = false;
    module.reset_iter_state();
    small::zero_grad(*net);
    plimsoll::settle();
    CHECK(small::active_bytes() == before);
  }
}

TEST_CASE("at rest a model takes only its padded shards") {
  const GpuWorld world(4, "fake");
  plimsoll::settle();
  const auto before = small::active_bytes();
  small::Net net;
  small::shard(net, on_gpu());
  const auto sharded = small::active_bytes() - before;
  CHECK(sharded == 512 * 8);  // Eight parameters, each smaller than a block.
  step(net);
  small::zero_grad(*net);
  plimsoll::settle();
  CHECK(small::active_bytes() - before == sharded);
}

TEST_CASE("hooks, prefetch, custom communication and groups form no reference cycles") {
  CHECK(left_by([] {
          small::Net net;
          fsdp::fully_shard(std::vector<fsdp::ModuleRef>{net->layers[0], net->layers[2]}, on_gpu());
          fsdp::fully_shard(net->layers[1], on_gpu());
          auto module = fsdp::fully_shard(net, on_gpu());
          fsdp::FSDPModule first(net->layers[0]), second(net->layers[1]);
          first.set_modules_to_forward_prefetch({second, module});
          second.set_modules_to_backward_prefetch({first, module});
          module.set_custom_all_gather(std::make_shared<fsdp::AllGather>());
          module.set_all_reduce_hook([](at::Tensor) {});
          nn::register_post_accumulate_grad_hook(net->head->weight, [](const at::Tensor&) {});
          for (int i = 0; i < 2; ++i) step(net);
        }) == 0);
}

TEST_CASE("two roots with one communication context free all memory") {
  CHECK(left_by([] {
          small::Net first, second;
          auto one = small::shard(first, on_gpu()), other = small::shard(second, on_gpu());
          fsdp::share_comm_ctx({one, other});
          (small::loss_of(first, small::gpu_batch()) + small::loss_of(second, small::gpu_batch())).backward();
        }) == 0);
}

TEST_CASE("with CPU offload a model at rest takes no GPU memory") {
  CHECK(left_by([] {
          small::Net net;
          auto options = on_gpu();
          options.offload_policy = fsdp::CPUOffloadPolicy{};
          small::shard(net, options);
          step(net);
          plimsoll::settle();
          CHECK(net->head->weight.is_cpu());
          CHECK(net->head->weight.grad().is_cpu());
          CHECK(net->head->weight.grad().is_pinned());
        }) == 0);
}

TEST_CASE("a model with CPU offload that was moved to the GPU is pinned again, or refused without pinned memory") {
  const GpuWorld world(4, "fake");
  small::Net pinned;
  auto options = on_gpu();
  options.offload_policy = fsdp::CPUOffloadPolicy{};
  small::shard(pinned, options);
  pinned->to(at::kCUDA);
  pinned(small::gpu_batch());
  CHECK(pinned->layers[0]->linear->weight.is_pinned());
  small::Net net;
  options.offload_policy = fsdp::CPUOffloadPolicy{.pin_memory = false};
  small::shard(net, options);
  net->to(at::kCUDA);
  const auto message = small::message_of([&] { net(small::gpu_batch()); });
  CHECK(message == doctest::Contains("With CPUOffloadPolicy the shards stay on the CPU"));
  CHECK(message == doctest::Contains("'head.weight'"));
  CHECK(message == doctest::Contains("Do not move the module after fully_shard"));
}

TEST_CASE("the root moves inputs from the CPU to the GPU") {
  const GpuWorld world(4, "fake");
  small::Net net;
  small::shard(net, on_gpu());
  CHECK(net(small::batch()).is_cuda());
}
