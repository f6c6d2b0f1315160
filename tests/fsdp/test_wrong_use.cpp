#include <doctest/doctest.h>

#include "fsdp/message_of.h"
#include "fsdp/small_net.h"

// Errors for wrong use of FSDP: each says what was found and what to do.

using namespace plimsoll;
using doctest::Contains;
using small::FakeWorld;
using small::Holder;
using small::message_of;

namespace {

/// A module around another.
struct OuterImpl : torch::nn::Module {
  small::Net net{nullptr};
  explicit OuterImpl(small::Net inner) { net = register_module("net", std::move(inner)); }
  at::Tensor forward(at::Tensor x) { return net(x); }
};
TORCH_MODULE_IMPL(Outer, nn::Hooked<OuterImpl>);

}  // namespace

// --- Modules -------------------------------------------------------------------------------------------------------

TEST_CASE("a module without forward hooks is refused, and the message says how to declare them") {
  const FakeWorld world(2);
  torch::nn::Linear plain(4, 4);
  const auto message = message_of([&] { fsdp::fully_shard(plain, {.mesh = FakeWorld::mesh()}); });
  CHECK(message == Contains("Linear"));
  CHECK(message == Contains("Hooked"));
  CHECK(plain->weight.sizes() == at::IntArrayRef({4, 4}));
}

TEST_CASE("a second fully_shard on a module is refused, and changes nothing") {
  const FakeWorld world(2);
  small::Layer layer(4);
  fsdp::fully_shard(layer, {.mesh = FakeWorld::mesh()});
  const auto message = message_of([&] { fsdp::fully_shard(layer, {.mesh = FakeWorld::mesh()}); });
  CHECK(message == Contains("fully_shard was applied to this Layer before"));
  CHECK(message == Contains("submodules first"));
  CHECK(layer->linear->weight.size(0) == 2);
}

TEST_CASE("an empty list of modules is refused") {
  const FakeWorld world(2);
  CHECK(message_of([] { fsdp::fully_shard(std::vector<fsdp::ModuleRef>{}); }) ==
        Contains("Expected at least one module"));
}

TEST_CASE("FSDPModule of an unsharded module is an error") {
  small::Layer layer(4);
  CHECK(message_of([&] { fsdp::FSDPModule{layer}; }) == Contains("Expected a module that fully_shard was applied to"));
  CHECK_FALSE(fsdp::FSDPModule::is_fsdp_module(*layer));
}

TEST_CASE("a copy of a sharded module is refused when it runs, and when it is sharded") {
  const FakeWorld world(2);
  small::Layer layer(4);
  fsdp::fully_shard(layer, {.mesh = FakeWorld::mesh()});
  small::Layer copy(std::make_shared<small::Layer::Impl>(*layer));
  CHECK_FALSE(fsdp::FSDPModule::is_fsdp_module(*copy));
  CHECK(message_of([&] { copy(small::batch(0, 4)); }) ==
        Contains("is a copy of a module that fully_shard was applied to"));
  CHECK(message_of([&] { fsdp::fully_shard(copy, {.mesh = FakeWorld::mesh()}); }) ==
        Contains("already managed by FSDP"));
  layer(small::batch(0, 4));
}

// --- Roots ---------------------------------------------------------------------------------------------------------

TEST_CASE("a child's forward before the root's is refused at the root's forward, with the child's name") {
  const FakeWorld world(2);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net->layers[1](small::batch());
  const auto message = message_of([&] { net(small::batch()); });
  CHECK(message == Contains("'layer1'"));
  CHECK(message == Contains("has run forward before, as a separate root"));
  CHECK(message == Contains("Run the first forward through the root module"));
}

TEST_CASE("a second root above one that has run is refused") {
  const FakeWorld world(2);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net(small::batch());
  Outer outer(net);
  fsdp::fully_shard(outer, {.mesh = FakeWorld::mesh()});
  CHECK(message_of([&] { outer(small::batch()); }) ==
        Contains("The FSDP module 'net' below Outer has run forward before"));
}

TEST_CASE("a module that belongs to one root is refused below another") {
  const FakeWorld world(2);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net(small::batch());
  struct BesideImpl : torch::nn::Module {
    explicit BesideImpl(const small::Layer& layer) { register_module("borrowed", layer); }
    at::Tensor forward(at::Tensor x) { return x; }
  };
  nn::Hooked<BesideImpl> beside(net->layers[0]);
  fsdp::fully_shard(beside, {.mesh = FakeWorld::mesh()});
  CHECK(message_of([&] { beside.forward(small::batch()); }) ==
        Contains("'borrowed' below Beside belongs to another root"));
}

TEST_CASE("a group of modules cannot be the root") {
  const FakeWorld world(2);
  small::Net net;
  fsdp::fully_shard(std::vector<fsdp::ModuleRef>{net->layers[0], net->layers[1]}, {.mesh = FakeWorld::mesh()});
  const auto message = message_of([&] { net(small::batch()); });
  CHECK(message == Contains("The first forward must be that of one root module, found the group Layer, Layer"));
  CHECK(message == Contains("Apply fully_shard to the model around the group"));
}

TEST_CASE("reset_iter_state on a module that is not the root is an error") {
  const FakeWorld world(2);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net(small::batch());
  const auto message = message_of([&] { fsdp::FSDPModule(net->layers[2]).reset_iter_state(); });
  CHECK(message == Contains("reset_iter_state is for the root of the FSDP modules; layer2 is not"));
}

// --- Meshes --------------------------------------------------------------------------------------------------------

TEST_CASE("a mesh that is smaller than the world, or uneven, is refused") {
  const FakeWorld world(6);
  using distributed::DeviceMesh;
  CHECK(message_of([] { DeviceMesh::init(at::kCPU, {4}); }) == Contains("6"));
  CHECK(message_of([] { DeviceMesh::init(at::kCPU, {4, 2}, {"replicate", "shard"}); }) == Contains("6"));
}

TEST_CASE("a mesh of three dimensions, or of two without names, is refused, and the message says how to name them") {
  const FakeWorld world(8);
  using distributed::DeviceMesh;
  small::Layer layer(4);
  const auto on = [&](DeviceMesh mesh) { return message_of([&] { fsdp::fully_shard(layer, {.mesh = mesh}); }); };
  CHECK(on(DeviceMesh::init(at::kCPU, {2, 2, 2}, {"a", "b", "c"})) ==
        Contains("Expected a mesh of one dimension (FSDP) or two (HSDP)"));
  CHECK(on(DeviceMesh::init(at::kCPU, {2, 4})) == Contains("Expected names for the two dimensions"));
  CHECK(layer->linear->weight.size(0) == 4);
}

TEST_CASE("reshard_after_forward to a number of ranks that does not divide is refused") {
  const FakeWorld world(6);
  small::Layer layer(4);
  for (const int ranks : {0, 4, 7, -1}) {
    const auto message =
        message_of([&] { fsdp::fully_shard(layer, {.mesh = FakeWorld::mesh(), .reshard_after_forward = ranks}); });
    CHECK(message ==
          Contains(("divide the 6 ranks that parameters are sharded over, found " + std::to_string(ranks)).c_str()));
  }
}

TEST_CASE("without a mesh and a process group, the message says how to make one") {
  distributed::destroy_process_group();
  small::Layer layer(4);
  const auto message = message_of([&] { fsdp::fully_shard(layer); });
  CHECK(message == Contains("torchrun"));
}

// --- Calls ---------------------------------------------------------------------------------------------------------

TEST_CASE("fewer than one reduce-scatter input buffer is refused") {
  const FakeWorld world(2);
  small::Layer layer(4);
  auto module = fsdp::fully_shard(layer, {.mesh = FakeWorld::mesh()});
  CHECK(message_of([&] { module.set_reduce_scatter_max_input_buffers(0); }) ==
        Contains("Expected at least one reduce-scatter input buffer, found 0"));
}

TEST_CASE("settings for one mesh are refused on a module with parameters on two") {
  const FakeWorld world(4);
  Holder holder(std::vector<at::Tensor>{at::ones({4}), at::ones({4, 4})});
  const auto mesh = distributed::DeviceMesh::init(at::kCPU, {2, 2}, {"replicate", "shard"});
  const auto second = std::make_shared<fsdp::FSDPMeshInfo>(mesh);
  auto module = fsdp::fully_shard(
      holder,
      {.mesh = FakeWorld::mesh(), .shard_placement_fn = [&](const at::Tensor& parameter) -> fsdp::ShardPlacement {
         if (parameter.dim() == 1) return {};
         return fsdp::ShardPlacementResult{std::nullopt, second};
       }});
  for (const auto& message :
       {message_of([&] { module.set_custom_all_gather(std::make_shared<fsdp::AllGather>()); }),
        message_of([&] { module.set_custom_reduce_scatter(std::make_shared<fsdp::ReduceScatter>()); }),
        message_of([&] { module.set_all_reduce_hook([](at::Tensor) {}); })}) {
    CHECK(message == Contains("needs a module with all parameters on one mesh"));
    CHECK(message == Contains("has 2 groups of parameters"));
  }
}
