#include <doctest/doctest.h>
#include <torch/nn/init.h>

#include <string>
#include <thread>

#include "nn/error_text.h"
#include "nn/recording.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/checkpoint/selective_checkpoint.h"
#include "plimsoll/nn/dispatch_mode.h"
#include "plimsoll/nn/modules.h"

namespace nn = plimsoll::nn;
using plimsoll::nn::test::backward;
using plimsoll::nn::test::CallLog;
using plimsoll::nn::test::Gradients;
using plimsoll::nn::test::same_bits;

namespace {

struct BlockImpl : torch::nn::Module {
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(torch::nn::LayerNormOptions({8})));
  nn::Linear up = register_module("up", nn::Linear(8, 32));
  nn::Linear down = register_module("down", nn::Linear(32, 8));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.5));

  at::Tensor forward(const at::Tensor& x) { return x + dropout(down(at::gelu(up(norm(x))))); }
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

// Runs three blocks with `run(block, x)`; returns the loss and all gradients, that of the input last.
template <class Run>
Gradients train(const Run& run) {
  at::manual_seed(7);
  std::vector<Block> blocks(3);
  for (auto& block : blocks) block = Block();
  at::Tensor input = at::randn({4, 8}).requires_grad_();
  at::Tensor x = input;
  for (auto& block : blocks) x = run(block, x);
  std::vector<at::Tensor> leaves;
  for (auto& block : blocks) {
    for (const auto& parameter : block->parameters()) leaves.push_back(parameter);
  }
  leaves.push_back(input);
  return backward(x.square().sum(), leaves);
}

Gradients plain() {
  return train([](Block& block, const at::Tensor& x) { return block(x); });
}

}  // namespace

TEST_CASE("checkpointed numbers, with dropout, are bit-equal to those without checkpoint") {
  CHECK(same_bits(plain(), train([](Block& block, const at::Tensor& x) { return nn::checkpoint(block, x); })));
}

TEST_CASE("without early stop the numbers are the same") {
  CHECK(same_bits(plain(), train([](Block& block, const at::Tensor& x) {
                    return nn::checkpoint_with({.early_stop = false}, block, x);
                  })));
}

TEST_CASE("with preserve_rng_state off, dropout differs") {
  CHECK_FALSE(same_bits(plain(), train([](Block& block, const at::Tensor& x) {
                          return nn::checkpoint_with({.preserve_rng_state = false}, block, x);
                        })));
}

TEST_CASE("nested checkpoints give the same numbers") {
  const auto nested = [](bool early_stop) {
    return train([early_stop](Block& block, const at::Tensor& x) {
      const nn::CheckpointOptions options{.early_stop = early_stop};
      return nn::checkpoint_with(
          options,
          [block, options](const at::Tensor& x) mutable {
            const auto hidden = nn::checkpoint_with(
                options, [block](const at::Tensor& x) mutable { return at::gelu(block->up(block->norm(x))); }, x);
            return x + nn::checkpoint_with(
                           options, [block](const at::Tensor& x) mutable { return block->dropout(block->down(x)); },
                           hidden);
          },
          x);
    });
  };
  CHECK(same_bits(plain(), nested(true)));
  CHECK(same_bits(plain(), nested(false)));
}

TEST_CASE("selective checkpoints give the same numbers") {
  for (const std::vector<std::string>& kept : {std::vector<std::string>{"aten::addmm"},
                                               {"aten::gelu"},
                                               {"aten::addmm", "aten::native_layer_norm", "aten::t"}}) {
    CHECK(same_bits(plain(), train([&](Block& block, const at::Tensor& x) {
                      return nn::checkpoint_with({.policy = nn::save_operators(kept)}, block, x);
                    })));
  }
}

TEST_CASE("a recomputation does not change the random numbers around it") {
  const auto draw = [](bool checkpointed) {
    at::manual_seed(3);
    nn::Dropout dropout(0.5);
    const at::Tensor x = at::ones({64}).requires_grad_();
    const at::Tensor y = checkpointed ? nn::checkpoint(dropout, x) : dropout(x);
    y.square().sum().backward();
    return at::rand({8});
  };
  CHECK(at::equal(draw(true), draw(false)));
}

TEST_CASE("early stop ends a recomputation before operators without a needed result") {
  const auto recomputed = [](bool early_stop) {
    const at::Tensor x = at::ones({4}).requires_grad_();
    const at::Tensor y = nn::checkpoint_with(
        {.early_stop = early_stop}, [](const at::Tensor& x) { return at::neg(at::neg(at::sin(x))); }, x);
    CallLog calls;
    y.sum().backward();
    return calls.names;
  };
  // Backward of sin needs its argument, which exists before any operator has run.
  const auto stopped = recomputed(true);
  const auto whole = recomputed(false);
  CHECK(std::ranges::count(stopped, "aten::sin") == 0);
  CHECK(std::ranges::count(whole, "aten::sin") == 1);
  CHECK(std::ranges::count(whole, "aten::neg") - std::ranges::count(stopped, "aten::neg") == 2);
}

TEST_CASE("a checkpoint saves only its argument") {
  std::size_t saved = 0;
  const nn::SavedTensorHooks count(
      [&](const at::Tensor& tensor) {
        saved++;
        return std::any(tensor);
      },
      [](const std::any& value) { return std::any_cast<at::Tensor>(value); });
  const at::Tensor x = at::ones({4}).requires_grad_();
  nn::checkpoint([](const at::Tensor& x) { return x.sin().exp().square(); }, x);
  CHECK(saved == 1);
}

TEST_CASE("a retained graph is recomputed in each backward pass, with the same gradients") {
  Block block;
  const at::Tensor x = at::randn({4, 8}).requires_grad_();
  int runs = 0;
  const at::Tensor y = nn::checkpoint(
      [&](const at::Tensor& x) {
        runs++;
        return block(x);
      },
      x);
  const at::Tensor loss = y.square().sum();
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor first = x.grad().clone();
  x.mutable_grad() = at::Tensor();
  loss.backward();
  CHECK(at::equal(first, x.grad()));
  CHECK(runs == 3);
}

TEST_CASE("one recomputation serves all tensors of a backward pass") {
  int runs = 0;
  const at::Tensor x = at::ones({4}).requires_grad_();
  nn::checkpoint(
      [&](const at::Tensor& x) {
        runs++;
        return x.sin().exp().square();
      },
      x)
      .sum()
      .backward();
  CHECK(runs == 2);
}

TEST_CASE("a function that calls backward itself can be checkpointed") {
  for (const bool early_stop : {true, false}) {
    const at::Tensor x = at::full({2}, 0.5).requires_grad_();
    const at::Tensor y = nn::checkpoint_with(
        {.early_stop = early_stop},
        [](const at::Tensor& x) {
          const at::Tensor inner = x.detach().requires_grad_();
          inner.sin().sum().backward();
          return x.exp() * inner.grad();
        },
        x);
    y.sum().backward();
    CHECK(at::allclose(x.grad(), x.detach().exp() * x.detach().cos()));
  }
}

TEST_CASE("recomputing() is true in recomputations, nested ones too, and only there") {
  std::vector<bool> seen;
  const at::Tensor x = at::ones({4}).requires_grad_();
  const auto inner = [&](const at::Tensor& x) {
    seen.push_back(nn::recomputing());
    return x.sin().exp();
  };
  const at::Tensor y = nn::checkpoint([&](const at::Tensor& x) { return nn::checkpoint(inner, x.sin()).square(); }, x);
  CHECK(seen == std::vector<bool>{false});
  y.sum().backward();
  CHECK(seen == std::vector<bool>{false, true, true});
  CHECK_FALSE(nn::recomputing());
}

TEST_CASE("without gradients a checkpoint is a plain call") {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::ones({4}).requires_grad_();
  const at::Tensor y = nn::checkpoint([](const at::Tensor& x) { return x.sin(); }, x);
  CHECK_FALSE(y.requires_grad());
}

TEST_CASE("arguments and results of any kind are passed on") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  const std::vector<at::Tensor> list{at::full({4}, 2.0), at::full({4}, 3.0)};
  const auto [y, n] = nn::checkpoint(
      [](const at::Tensor& x, const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& none,
         const std::vector<at::Tensor>& list, double factor) {
        CHECK_FALSE(none.has_value());
        return std::pair((x.exp() * list[0] * list[1] + *bias) * factor, list.size());
      },
      x, std::optional(at::ones({4})), std::optional<at::Tensor>(), list, 0.5);
  CHECK(n == 2);
  y.sum().backward();
  CHECK(at::equal(x.grad(), x.detach().exp() * 2 * 3 * 0.5));
}

TEST_CASE("recomputation has the autocast state of the first run") {
  const at::Tensor x = at::ones({4, 4}).requires_grad_();
  std::vector<at::ScalarType> dtypes;
  at::Tensor y;
  {
    const nn::test::CpuAutocast autocast;
    y = nn::checkpoint(
        [&](const at::Tensor& x) {
          const at::Tensor product = x.mm(x);
          dtypes.push_back(product.scalar_type());
          return product.sin().exp();
        },
        x);
  }
  y.sum().backward();
  CHECK(dtypes == std::vector<at::ScalarType>{at::kBFloat16, at::kBFloat16});
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("recomputation has the device scope of the first run") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  std::vector<at::DeviceType> devices;
  at::Tensor y;
  {
    const nn::DeviceScope scope(at::kMeta);
    y = nn::checkpoint(
        [&](const at::Tensor& x) {
          devices.push_back(at::zeros({1}).device().type());
          return x.sin().exp();
        },
        x);
  }
  y.sum().backward();
  CHECK(devices == std::vector<at::DeviceType>{at::kMeta, at::kMeta});
}

TEST_CASE("contexts surround the first run and the recomputation") {
  std::vector<std::string> events;
  const auto scope = [&](const std::string& name) {
    return [&events, name]() -> std::shared_ptr<void> {
      events.push_back(name);
      return std::shared_ptr<void>(nullptr, [&events, name](void*) { events.push_back("end of " + name); });
    };
  };
  const at::Tensor x = at::ones({4}).requires_grad_();
  nn::checkpoint_with(
      {.context_fn = [&] { return nn::CheckpointContexts{scope("forward"), scope("recompute")}; }},
      [&](const at::Tensor& x) {
        events.push_back("run");
        return x.sin().exp();
      },
      x)
      .sum()
      .backward();
  CHECK(events == std::vector<std::string>{"forward", "run", "end of forward", "recompute", "run", "end of recompute"});
}
