#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/models/language_model.h"
#include "plimsoll/nn/device_scope.h"

using namespace plimsoll;
using namespace plimsoll::models;

namespace {

LanguageModel on_meta(const architecture::Architecture& architecture, const LanguageModelOptions& options) {
  const nn::DeviceScope meta(at::kMeta);
  return LanguageModel(architecture, options);
}

architecture::Architecture small(architecture::Family family) {
  architecture::Architecture a{.family = family,
                               .vocabulary = 50,
                               .dim = 32,
                               .hidden = 48,
                               .blocks = 3,
                               .heads = 4,
                               .kv_heads = family == architecture::Family::kGPT2 ? 4 : 2,
                               .head_dim = 8,
                               .positions = 16,
                               .norm_epsilon = 1e-5};
  if (family == architecture::Family::kGPT2) {
    a.qkv_bias = a.output_bias = a.mlp_bias = a.tied_embeddings = true;
  } else {
    a.rope_theta = 10000;
  }
  return a;
}

}  // namespace

TEST_CASE("each preset has the published number of parameters") {
  for (const auto& preset : architecture::presets()) {
    CAPTURE(preset.name);
    const auto model = on_meta(architecture_of(preset), {.length = 128});
    std::int64_t count = 0;
    for (const auto& parameter : model->distinct_parameters()) count += parameter.numel();
    CHECK(count == preset.parameters);
  }
}

TEST_CASE("a model computes logits for each token, and trains") {
  for (const auto family : {architecture::Family::kLlama, architecture::Family::kQwen2, architecture::Family::kQwen3,
                            architecture::Family::kPhi3, architecture::Family::kGPT2}) {
    auto a = small(family);
    if (family == architecture::Family::kQwen2) a.qkv_bias = a.tied_embeddings = true;
    if (family == architecture::Family::kQwen3) a.qk_norm = true;
    if (family == architecture::Family::kPhi3) a.kv_heads = 4;
    CAPTURE(architecture::name(family));
    LanguageModel model(a, LanguageModelOptions{.length = 16});
    model->init_weights();
    const auto tokens = at::randint(a.vocabulary, {2, 16}, at::kLong);
    const auto logits = model(tokens);
    CHECK(logits.sizes() == at::IntArrayRef({2, 16, a.vocabulary}));
    CHECK(logits.isfinite().all().item<bool>());
    at::cross_entropy_loss(logits.flatten(0, 1), tokens.flatten()).backward();
    for (const auto& parameter : model->distinct_parameters()) CHECK(parameter.grad().defined());
  }
}

TEST_CASE("later tokens do not change earlier logits") {
  for (const auto family : {architecture::Family::kLlama, architecture::Family::kGPT2}) {
    const auto a = small(family);
    LanguageModel model(a, LanguageModelOptions{.length = 16});
    model->init_weights();
    const auto tokens = at::randint(a.vocabulary, {1, 16}, at::kLong);
    auto other = tokens.clone();
    other.slice(1, 10).fill_(7);
    const at::NoGradGuard no_grad;
    CHECK(at::allclose(model(tokens).slice(1, 0, 10), model(other).slice(1, 0, 10)));
  }
}

TEST_CASE("checkpointing does not change the numbers") {
  const auto a = small(architecture::Family::kLlama);
  using job::CheckpointKind;
  at::Tensor expected;
  for (const auto kind : {CheckpointKind::kNone, CheckpointKind::kFull, CheckpointKind::kSelective}) {
    at::manual_seed(5);
    LanguageModel model(a, LanguageModelOptions{.length = 16, .checkpoint = {.kind = kind}});
    model->init_weights();
    const auto tokens = at::arange(16, at::kLong).view({1, 16});
    at::cross_entropy_loss(model(tokens).flatten(0, 1), tokens.flatten()).backward();
    const auto gradient = model->distinct_parameters().front().grad();
    if (expected.defined()) CHECK(at::equal(gradient, expected));
    expected = gradient;
  }
}

TEST_CASE("a tied head is the embedding, and is listed once") {
  auto a = small(architecture::Family::kLlama);
  const auto own = LanguageModel(a, LanguageModelOptions{.length = 4})->distinct_parameters().size();
  a.tied_embeddings = true;
  const LanguageModel model(a, LanguageModelOptions{.length = 4});
  CHECK(model->distinct_parameters().size() == own - 1);
  CHECK(model->parameters().size() == own);
}

TEST_CASE("the policy decides which blocks are wrapped") {
  const auto a = small(architecture::Family::kLlama);
  const LanguageModel model(
      a, LanguageModelOptions{.length = 4, .checkpoint = {.kind = job::CheckpointKind::kFull, .every = 3}});
  const auto is_wrapped = [&](std::size_t block) {
    return dynamic_cast<CheckpointedImpl*>(model->blocks()[block].get()) != nullptr;
  };
  CHECK_FALSE(is_wrapped(0));
  CHECK_FALSE(is_wrapped(1));
  CHECK(is_wrapped(2));
}
