#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/nn/modules.h"

namespace nn = plimsoll::nn;
using torch::nn::Module;

namespace {

struct DoubleImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    if (fails) throw std::runtime_error("forward failed");
    return x * 2;
  }
  bool fails = false;
};
TORCH_MODULE_IMPL(Double, nn::Hooked<DoubleImpl>);

using Log = std::vector<std::string>;

nn::ForwardPreHook log_before(Log& log, const std::string& name) {
  return [&log, name](Module&, nn::Tensors&) { log.push_back(name); };
}
nn::ForwardHook log_after(Log& log, const std::string& name) {
  return [&log, name](Module&, nn::Tensors&, nn::Tensors& results) {
    log.push_back(name + " with " + std::to_string(results.size()));
  };
}

}  // namespace

TEST_CASE("hooks run in the order of torch.nn.Module: global before own, prepended first") {
  Double module;
  Log log;
  module->register_forward_pre_hook(log_before(log, "pre 1"));
  module->register_forward_pre_hook(log_before(log, "pre 2"), {.prepend = true});
  module->register_forward_hook(log_after(log, "post 1"));
  module->register_forward_hook(log_after(log, "post 2"), {.prepend = true});
  auto before = nn::register_global_forward_pre_hook(log_before(log, "global pre"));
  auto after = nn::register_global_forward_hook(log_after(log, "global post"));
  module(at::ones({1}));
  CHECK(log == Log{"global pre", "pre 2", "pre 1", "global post with 1", "post 2 with 1", "post 1 with 1"});
  before.remove();
  after.remove();
  CHECK(nn::global_hook_count.load() == 0);
}

TEST_CASE("a removed hook does not run time, a copy of its handle removes it too, and a second removal does nothing") {
  Double module;
  Log log;
  nn::HookHandle handle = module->register_forward_pre_hook(log_before(log, "pre"));
  nn::HookHandle copy = handle;
  copy.remove();
  handle.remove();
  module(at::ones({1}));
  CHECK(log.empty());
}

TEST_CASE("a handle may outlive its module") {
  nn::HookHandle handle;
  {
    Double module;
    handle = module->register_forward_hook([](Module&, nn::Tensors&, nn::Tensors&) {});
  }
  handle.remove();
  nn::HookHandle().remove();
}

TEST_CASE("a hook may remove itself and others while it runs; the others still run in this call") {
  Double module;
  Log log;
  nn::HookHandle first;
  nn::HookHandle second;
  first = module->register_forward_pre_hook([&](Module&, nn::Tensors&) {
    log.push_back("first");
    first.remove();
    second.remove();
  });
  second = module->register_forward_pre_hook(log_before(log, "second"));
  module(at::ones({1}));
  module(at::ones({1}));
  CHECK(log == Log{"first", "second"});
}

TEST_CASE(
    "a pre-hook replaces the module's input, a hook the caller's result, and the caller's tensors are unchanged") {
  Double module;
  module->register_forward_pre_hook([](Module&, nn::Tensors& arguments) {
    for (at::Tensor& argument : arguments) argument = argument + 10;
  });
  const at::Tensor x = at::ones({1});
  CHECK(module(x).item<float>() == 22);
  module->register_forward_hook([](Module&, nn::Tensors& arguments, nn::Tensors& results) {
    CHECK(arguments[0].item<float>() == 11);
    results[0] = results[0] + 0.5;
  });
  CHECK(module->forward(x).item<float>() == 22.5);
  CHECK(x.item<float>() == 1);
}

TEST_CASE("only always-call hooks run when forward throws, without results, and the exception goes on") {
  Double module;
  Log log;
  module->register_forward_hook(log_after(log, "post"));
  module->register_forward_hook(log_after(log, "always"), {.always_call = true});
  auto global = nn::register_global_forward_hook(log_after(log, "global always"), {.always_call = true});
  module->fails = true;
  CHECK(error_text([&] { module(at::ones({1})); }) == "forward failed");
  CHECK(log == Log{"global always with 0", "always with 0"});
  log.clear();
  module->fails = false;
  module(at::ones({1}));
  CHECK(log == Log{"global always with 1", "post with 1", "always with 1"});
  global.remove();
}

TEST_CASE("an always-call hook runs when a pre-hook throws; forward does not") {
  Double module;
  Log log;
  module->register_forward_pre_hook([](Module&, nn::Tensors&) { throw std::runtime_error("pre-hook failed"); });
  module->register_forward_hook(log_after(log, "always"), {.always_call = true});
  module->fails = true;
  CHECK(error_text([&] { module(at::ones({1})); }) == "pre-hook failed");
  CHECK(log == Log{"always with 0"});
}

TEST_CASE("when a hook throws, each later always-call hook still runs once, with the results") {
  Double module;
  Log log;
  module->register_forward_hook(log_after(log, "before"), {.always_call = true});
  module->register_forward_hook(
      [&](Module&, nn::Tensors&, nn::Tensors&) {
        log.push_back("throws");
        throw std::runtime_error("hook failed");
      },
      {.always_call = true});
  module->register_forward_hook(log_after(log, "skipped"));
  module->register_forward_hook(log_after(log, "behind"), {.always_call = true});
  CHECK(error_text([&] { module(at::ones({1})); }) == "hook failed");
  CHECK(log == Log{"before with 1", "throws", "behind with 1"});
}

TEST_CASE("an always-call hook's exception during another one becomes a warning") {
  struct Warnings final : c10::WarningHandler {
    void process(const c10::Warning& warning) override { messages.push_back(warning.msg()); }
    Log messages;
  } warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  Double module;
  module->fails = true;
  module->register_forward_hook([](Module&, nn::Tensors&, nn::Tensors&) { throw std::runtime_error("second"); },
                                {.always_call = true});
  module->register_forward_hook([](Module&, nn::Tensors&, nn::Tensors&) { throw 3; }, {.always_call = true});
  CHECK(error_text([&] { module(at::ones({1})); }) == "forward failed");
  REQUIRE(warnings.messages.size() == 2);
  CHECK(warnings.messages[0] ==
        "An always-call forward hook of Double threw during another exception; its own exception is dropped: second");
  CHECK(warnings.messages[1].ends_with("its own exception is dropped"));
}

TEST_CASE("class names are those of the source") {
  CHECK(nn::class_name(*Double()) == "Double");
  CHECK(nn::class_name(DoubleImpl()) == "Double");
  CHECK(nn::class_name(*nn::Linear(1, 1)) == "Linear");
  CHECK(nn::class_name(*nn::Sequential()) == "Sequential");
  CHECK(nn::class_name(torch::nn::Conv2dImpl(1, 1, 1)) == "Conv2d");
}

TEST_CASE("a module without hooks is an error with its name and how to declare hooks") {
  const std::string expected =
      "which has no hooks. Declare it with hooks: TORCH_MODULE_IMPL(Double, plimsoll::nn::Hooked<DoubleImpl>)";
  DoubleImpl module;
  CHECK(error_text([&] { nn::require_hooks(module); }) ==
        "Expected a module with forward hooks, found Double, " + expected);
  CHECK(error_text([&] { nn::require_hooks(std::as_const(module), "layers.3"); }) ==
        "Expected a module with forward hooks, found Double at 'layers.3', " + expected);
  Double hooked;
  CHECK(&nn::require_hooks(*hooked) == hooked.get());
}
