#include <doctest/doctest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

using Names = std::set<std::string>;

struct IdentityImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x; }
};
TORCH_MODULE_IMPL(Identity, nn::Hooked<IdentityImpl>);

struct PassedThroughImpl : torch::nn::Module {
  nn::Linear first{nullptr};
  Identity nothing{nullptr};

  PassedThroughImpl() {
    first = register_module("first", nn::Linear(8, 8));
    nothing = register_module("nothing", Identity());
  }
  at::Tensor forward(at::Tensor x) { return nothing(first(x)); }
};
TORCH_MODULE_IMPL(PassedThrough, nn::Hooked<PassedThroughImpl>);

struct SharedImpl : torch::nn::Module {
  nn::Linear first{nullptr}, second{nullptr};

  SharedImpl() {
    first = register_module("first", nn::Linear(8, 8));
    second = register_module("second", first);
  }
  at::Tensor forward(at::Tensor x) { return second(x); }
};
TORCH_MODULE_IMPL(Shared, nn::Hooked<SharedImpl>);

std::vector<std::string> names(MemTracker& tracker) {
  std::vector<std::string> found;
  for (const auto& module : tracker.module_stats()) found.push_back(module.fqn);
  return found;
}

}  // namespace

TEST_CASE("user hooks are called at every state, with the running modules") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  std::vector<std::string> heard;
  const auto running = [&] {
    std::string text;
    for (const auto& name : tracker.parents()) text += " " + name;
    return text;
  };
  tracker.register_user_hooks({
      .pre_forward =
          [&](torch::nn::Module& module, nn::Tensors&) {
            CHECK_FALSE(tracker.is_bw());
            heard.push_back("pre forward " + nn::class_name(module) + ":" + running());
          },
      .post_forward =
          [&](torch::nn::Module& module, nn::Tensors&, nn::Tensors& results) {
            CHECK(results.size() == 1);
            heard.push_back("post forward " + nn::class_name(module) + ":" + running());
          },
      .pre_backward =
          [&](torch::nn::Module* module, const std::string& fqn, const auto&) {
            CHECK(tracker.is_bw());
            CHECK(module != nullptr);
            heard.push_back("pre backward " + fqn + ":" + running());
          },
      .post_backward = [&](torch::nn::Module*, const std::string& fqn,
                           const auto&) { heard.push_back("post backward " + fqn + ":" + running()); },
  });
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  CHECK(heard == std::vector<std::string>{
                     "pre forward MLP: Global MLP",
                     "pre forward Linear: Global MLP MLP.fc1",
                     "post forward Linear: Global MLP MLP.fc1",
                     "pre forward ReLU: Global MLP MLP.act",
                     "post forward ReLU: Global MLP MLP.act",
                     "pre forward Linear: Global MLP MLP.fc2",
                     "post forward Linear: Global MLP MLP.fc2",
                     "post forward MLP: Global MLP",
                     "pre backward MLP.fc2: Global MLP.fc2",
                     "pre backward MLP: Global MLP MLP.fc2",
                     "pre backward MLP.act: Global MLP MLP.act MLP.fc2",  // One tensor has both hooks.
                     "post backward MLP.fc2: Global MLP MLP.act MLP.fc2",
                     "pre backward MLP.fc1: Global MLP MLP.act MLP.fc1",
                     "post backward MLP.act: Global MLP MLP.act MLP.fc1",
                     "post backward MLP.fc1: Global MLP MLP.fc1",
                     "post backward MLP: Global MLP",
                 });
  CHECK(tracker.parents() == Names{"Global"});

  const auto once = heard.size();
  CHECK_THROWS_WITH_AS(
      tracker.register_user_hooks({}),
      doctest::Contains("this tracker has user hooks already: call clear_user_hooks() before registering others"),
      c10::Error);
  tracker.clear_user_hooks();
  model(at::ones({2, 8})).sum().backward();
  CHECK(heard.size() == once);
  tracker.register_user_hooks({});
}

TEST_CASE("a module run twice has two snapshots of each state") {
  MemTracker tracker;
  models::Twice model(24);
  const auto scope = tracker.enter();
  model(at::ones({3, 24})).sum().backward();
  const auto shared = tracker.module_stats("Twice.shared"), last = tracker.module_stats("Twice.last");
  for (const auto state : {ModuleState::kPreForward, ModuleState::kPostForward, ModuleState::kPeakForward,
                           ModuleState::kPreBackward, ModuleState::kPostBackward, ModuleState::kPeakBackward}) {
    CHECK(calls(shared, state) == 2);
    CHECK(calls(last, state) == 1);
  }
  CHECK(shared.parameter_bytes == (24 * 24 + 24) * 4);
}

TEST_CASE("a tied parameter and its gradient are counted once, and belong to its first module") {
  MemTracker tracker;
  models::Transformer model(
      models::TransformerOptions{.vocabulary = 500, .dim = 16, .heads = 2, .layers = 1, .tied = true});
  const auto scope = tracker.enter();
  model(at::arange(4).view({1, 4})).sum().backward();
  const auto now = tracker.snapshot().at("cpu");
  const auto whole = tracker.module_stats("Transformer");
  CHECK(now["Parameter"] == whole.parameter_bytes);
  CHECK(now["Gradient"] == whole.parameter_bytes);
  CHECK(tracker.module_stats("Transformer.head").parameter_bytes == 500 * 16 * 4);
  CHECK(tracker.module_stats("Transformer.embed").parameter_bytes == 500 * 16 * 4);
  int found = 0;
  for (const auto& tensor : tracker.alive_at_peak("cpu")) {
    if (tensor.bytes != 500 * 16 * 4 || tensor.category != "Parameter") continue;
    CHECK(tensor.owner == "Transformer.embed");
    ++found;
  }
  CHECK(found == 1);
}

TEST_CASE("modules outside of the registered root are own roots") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::Linear beside(4, 2);
  tracker.track_external(model);
  const auto scope = tracker.enter();
  beside(model(at::ones({2, 8}))).sum().backward();
  CHECK(names(tracker) == std::vector<std::string>{"Linear", "MLP", "MLP.act", "MLP.fc1", "MLP.fc2"});
  CHECK(bytes_of(tracker, "Parameter") == (16 * 8 + 16 + 4 * 16 + 4 + 2 * 4 + 2) * 4);
  CHECK(bytes_of(tracker, "Gradient") == bytes_of(tracker, "Parameter"));
}

TEST_CASE("name_apart gives live modules of one class their own names") {
  MemTracker tracker;
  tracker.name_apart();
  const auto scope = tracker.enter();
  const auto run = [](auto& model) { return model(at::ones({3, 8})); };
  Identity without_parameters, another;
  nn::Linear first(8, 8), second(8, 8);
  run(without_parameters), run(another), run(first), run(second), run(first);
  CHECK(names(tracker) == std::vector<std::string>{"Identity", "Identity", "Linear", "Linear#2"});
  first = nullptr;
  nn::Linear third(8, 8);
  run(third);
  CHECK(names(tracker) == std::vector<std::string>{"Identity", "Identity", "Linear", "Linear#2"});
}

TEST_CASE("name_apart gives a module the first of its paths; otherwise it has the last, as in torch's tracker") {
  for (const bool apart : {true, false}) {
    MemTracker tracker;
    if (apart) tracker.name_apart();
    const auto scope = tracker.enter();
    Shared model;
    model(at::ones({3, 8}));
    CHECK(names(tracker) == std::vector<std::string>{"Shared", apart ? "Shared.first" : "Shared.second"});
  }
}

TEST_CASE("a module that is built in a scope is known from its run until its end") {
  MemTracker tracker;
  const auto scope = tracker.enter();
  for (int i = 0; i < 3; ++i) {
    models::MLP model(8, 16, 4);
    const std::int64_t parameters = (16 * 8 + 16 + 4 * 16 + 4) * 4;
    CHECK(bytes_of(tracker, "Activation") == parameters);
    model(at::ones({2, 8})).sum().backward();
    CHECK(bytes_of(tracker, "Parameter") == parameters);
    CHECK(bytes_of(tracker, "Gradient") == parameters);
    CHECK(names(tracker) == std::vector<std::string>{"MLP", "MLP.act", "MLP.fc1", "MLP.fc2"});
  }
  CHECK(now(tracker) == kNothing);
}

TEST_CASE("a module that ran alone gets its path when its root runs") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  const auto scope = tracker.enter();
  model->fc1(at::ones({2, 8}));
  CHECK(names(tracker) == std::vector<std::string>{"Linear"});
  model(at::ones({2, 8})).sum().backward();
  CHECK(names(tracker) == std::vector<std::string>{"MLP", "MLP.act", "MLP.fc1", "MLP.fc2"});
  for (const auto& tensor : tracker.alive_at_peak("cpu")) CHECK(tensor.owner != "Linear");
}

TEST_CASE("a module on the stack has its forward states") {
  MemTracker tracker;
  nn::Hooked<models::MLPImpl> model(8, 16, 4);
  const auto scope = tracker.enter();
  model.forward(at::ones({2, 8})).sum().backward();
  CHECK(calls(tracker.module_stats("MLP"), ModuleState::kPostForward) == 1);
  CHECK(calls(tracker.module_stats("MLP.fc1"), ModuleState::kPostBackward) == 1);
  CHECK(tracker.parents() == Names{"Global"});
  CHECK(bytes_of(tracker, "Gradient") == bytes_of(tracker, "Parameter"));
}

TEST_CASE("a module that returns its argument begins its backward before it ends it") {
  MemTracker tracker;
  PassedThrough model;
  std::vector<std::string> heard;
  const auto text = [](const std::string& place, const std::string& fqn, const Gradients& gradients) {
    std::string found = place + " " + fqn;
    for (const auto& gradient : gradients) found += " " + std::to_string(gradient.sum().item<int>());
    return found;
  };
  tracker.register_user_hooks(
      {.pre_backward = [&](auto*, const auto& fqn, const auto& grads) { heard.push_back(text("pre", fqn, grads)); },
       .post_backward = [&](auto*, const auto& fqn, const auto& grads) { heard.push_back(text("post", fqn, grads)); }});
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  // What takes the batch alone ends with the pass, and without gradients.
  CHECK(heard == std::vector<std::string>{"pre PassedThrough.first 16", "pre PassedThrough.nothing 16",
                                          "post PassedThrough.nothing 16", "pre PassedThrough 16",
                                          "post PassedThrough.first", "post PassedThrough"});
}

TEST_CASE("a module with an unused result has no backward") {
  MemTracker tracker;
  nn::Linear used(8, 8), unused(8, 8);
  const auto scope = tracker.enter();
  auto x = at::ones({2, 8}).requires_grad_() * 2;
  const auto dropped = unused(x);
  used(x).sum().backward();
  const auto all = tracker.module_stats();
  std::size_t passes = 0;
  for (const auto& stats : all) passes += calls(stats, ModuleState::kPostBackward);
  CHECK(passes == 1);
}

TEST_CASE("a backward within a forward leaves that forward open") {
  struct PenaltyImpl : torch::nn::Module {
    nn::Linear inner{nullptr};
    MemTracker* tracker = nullptr;
    Names seen;
    PenaltyImpl() { inner = register_module("inner", nn::Linear(8, 8)); }
    at::Tensor forward(const at::Tensor& x) {
      inner(x).sum().backward();
      seen = tracker->parents();
      const auto large = at::empty({100'000}, at::kByte);
      return inner(x);
    }
  };
  MemTracker tracker;
  const auto model = std::make_shared<nn::Hooked<PenaltyImpl>>();
  model->tracker = &tracker;
  const auto scope = tracker.enter();
  model->forward(at::ones({2, 8})).sum().backward();
  CHECK(model->seen.size() == 2);
  const auto stats = tracker.module_stats();
  REQUIRE(stats.size() == 2);
  const auto& outer = stats[0];
  const auto& peak = outer.snapshots.at(ModuleState::kPeakForward)[0].at("cpu");
  CHECK(peak.total() > 100'000);
  CHECK(peak["Gradient"] == (8 * 8 + 8) * 4);
  CHECK(calls(outer, ModuleState::kPostForward) == 1);
}

TEST_CASE("module stats that are reset start again, also in the middle of a forward") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  tracker.reset_mod_stats();
  CHECK(tracker.module_stats().empty());
  CHECK_THROWS_WITH_AS(
      tracker.module_stats("MLP"),
      doctest::Contains("no module 'MLP' has run in a scope of this tracker since its stats were reset"),
      c10::ValueError);
  tracker.register_user_hooks({.pre_forward = [&](torch::nn::Module& module, auto&) {
    if (nn::class_name(module) == "ReLU") tracker.reset_mod_stats();
  }});
  model(at::ones({2, 8}));
  CHECK(names(tracker) == std::vector<std::string>{"MLP.fc2"});
  tracker.clear_user_hooks();
  model(at::ones({2, 8}));
  CHECK(names(tracker).size() == 4);
  CHECK(bytes_of(tracker, "Parameter") == (16 * 8 + 16 + 4 * 16 + 4) * 4);
}

TEST_CASE("modules may run on several threads at once") {
  MemTracker tracker;
  const ExpectedCpuTotal expected(tracker);
  std::vector<models::MLP> replicas;
  for (int i = 0; i < 3; ++i) replicas.emplace_back(8, 16, 4);
  {
    const auto scope = tracker.enter();
    std::vector<std::thread> threads;
    for (auto& replica : replicas) {
      threads.emplace_back([&replica] {
        for (int i = 0; i < 50; ++i) replica(at::ones({2, 8})).sum().backward();
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(tracker.parents() == Names{"Global"});
    CHECK(bytes_of(tracker, "Gradient") == bytes_of(tracker, "Parameter"));
    CHECK(total(tracker) == expected());
  }
  replicas.clear();
  CHECK(now(tracker) == kNothing);
}

}  // namespace plimsoll
