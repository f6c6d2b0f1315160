// Whole state on rank 0, and shards from it.

#include <doctest/doctest.h>

#include "fsdp/checkpoint_training.h"
#include "nn/error_text.h"
#include "plimsoll/fsdp/checkpoint/files.h"
#include "plimsoll/fsdp/checkpoint/full_state.h"
#include "plimsoll/fsdp/param/fsdp_param.h"

using namespace checkpoint_tests;

namespace {

// The values of a Training with that seed, without FSDP.
template <class Model>
fsdp::TensorMap whole_values(const Model& model, int seed) {
  fsdp::TensorMap values;
  std::vector<std::pair<std::string, at::Tensor>> seen;
  for (const auto& item : model->named_parameters()) {
    const auto numbers = scenarios::numbers(item.value().numel(), ++seed).view(item.value().sizes()).to(at::kFloat);
    const auto known =
        std::find_if(seen.begin(), seen.end(), [&](auto& one) { return one.second.is_same(item.value()); });
    // A tied weight is filled again under its second name, and listed under its first.
    values[known == seen.end() ? item.key() : known->first] = numbers;
    seen.emplace_back(item.key(), item.value());
  }
  for (const auto& item : model->named_buffers()) values[item.key()] = item.value().clone();
  return values;
}

bool equal(const fsdp::TensorMap& a, const fsdp::TensorMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (!b.contains(name) || b.at(name).scalar_type() != tensor.scalar_type() || !at::equal(tensor, b.at(name))) {
      return false;
    }
  }
  return true;
}

void check_full_state(const char* line) {
  with_kind(line, [&](const Case& c, auto kind) {
    using Training = typename decltype(kind)::type;
    const bool main = distributed::get_rank() == 0;
    std::string plain_line = std::string("model=") + c.text("model") + (c.has("tied") ? " tied=1" : "");
    const auto expected = [&](int seed) {
      if constexpr (std::is_same_v<Training, checkpoint_tests::Training<scenarios::GPTCase>>) {
        return whole_values(scenarios::GPTCase(Case(plain_line)).build(), seed);
      } else {
        return whole_values(scenarios::NetworkCase(Case(plain_line)).build(), seed);
      }
    };
    Training training(c);
    if (!c.has("built")) {
      const auto found = fsdp::full_state(training.model);
      CHECK(equal(found, main ? expected(0) : fsdp::TensorMap()));
      for (const auto& [name, tensor] : found) CHECK(tensor.is_cpu());
    }
    // Other values, from rank 0, before the first forward and between steps.
    for (const int seed : {20, 30}) {
      const auto rest = fsdp::load_full_state(training.model, main ? expected(seed) : fsdp::TensorMap());
      CHECK(rest.missing.empty());
      CHECK(rest.unexpected.empty());
      CHECK(equal(fsdp::full_state(training.model), main ? expected(seed) : fsdp::TensorMap()));
      CHECK(std::isfinite(training.run(0, 1)[0]));
    }
    // As if it had been built with these values.
    if (c.has("built") || c.has("frozen")) return;
    Training built(c, /*seed=*/40), loaded(c);
    fsdp::load_full_state(loaded.model, main ? expected(40) : fsdp::TensorMap());
    CHECK(loaded.run(0, 2) == built.run(0, 2));
    CHECK(same(loaded.shards(), built.shards()));
  });
}

}  // namespace

TEST_CASE("rank 0 gets the whole state and loads it into all ranks, in every configuration") {
  for (const int world : {1, 2, 4}) {
    ranks::on_ranks(world, [](const ranks::Rank& rank) {
      join_for_training(rank);
      for (const char* line : kCases) {
        const Case c(line);
        if (rank.size < 2 && (c.has("hsdp") || c.has("second_mesh"))) continue;
        check_full_state(line);
      }
      distributed::destroy_process_group();
    });
  }
}

TEST_CASE("a module without FSDP in a process without a group has state") {
  const Folder folder;
  REQUIRE(!distributed::is_initialized());
  scenarios::Network model(17, std::vector<int>{13, 5}, 3, false, false),
      other(17, std::vector<int>{13, 5}, 3, false, false);
  fsdp::load_full_state(other, fsdp::full_state(model));
  CHECK(equal(fsdp::full_state(other), fsdp::full_state(model)));
  at::manual_seed(0);
  scenarios::Network third(17, std::vector<int>{13, 5}, 3, false, false);
  fsdp::save_state(model, folder.path());
  fsdp::load_state(third, folder.path());
  CHECK(equal(fsdp::full_state(third), fsdp::full_state(model)));
  folder.remove();
}

TEST_CASE("the padding of an uneven shard stays zero") {
  ranks::on_ranks(4, [](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    auto whole = fsdp::full_state(training.model);
    for (auto& [name, tensor] : whole) tensor.fill_(3);
    fsdp::load_full_state(training.model, whole);
    for (const auto& parameter : training.model->parameters()) {
      const fsdp::FSDPParam* const managed = fsdp::managed(parameter);
      REQUIRE(managed != nullptr);
      CHECK(managed->sharded_param_data().eq(3).sum().item<std::int64_t>() == parameter.numel());
      CHECK(managed->sharded_param_data().eq(0).sum().item<std::int64_t>() ==
            managed->sharded_param_data().numel() - parameter.numel());
    }
    distributed::destroy_process_group();
  });
}

TEST_CASE("the optimizer's state is gathered under its parameters' names") {
  ranks::on_ranks(2, [](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    CHECK(fsdp::full_optimizer_state(training.model, *training.optimizer).empty());
    training.run(0, 2);
    const auto state = fsdp::full_optimizer_state(training.model, *training.optimizer);
    const auto parameters = fsdp::full_state(training.model);
    CHECK(state.size() == 3 * parameters.size());
    for (const auto& [name, parameter] : parameters) {
      CHECK(state.at(name + ".exp_avg").sizes() == parameter.sizes());
      CHECK(state.at(name + ".exp_avg_sq").sizes() == parameter.sizes());
      CHECK(state.at(name + ".step").item<float>() == 2);
    }
    distributed::destroy_process_group();
  });
}

TEST_CASE("errors are listed on all ranks, and nothing is changed") {
  ranks::on_ranks(2, [](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    const auto before = training.shards();
    auto state = fsdp::full_state(training.model);
    if (rank.rank == 0) {
      for (auto& [name, tensor] : state) tensor = tensor + 1;
      state["layers.9.weight"] = at::ones({2});
      state.erase("head.bias");
    }
    std::string text = error_text([&] { fsdp::load_full_state(training.model, state); });
    CHECK(text ==
          "load_full_state failed on rank 0: the state does not fit the module: missing: 'head.bias'; unexpected: "
          "'layers.9.weight' (load with {.strict = false} to leave them out)");
    CHECK(same(training.shards(), before));
    const auto rest = fsdp::load_full_state(training.model, state, {.strict = false});
    CHECK(rest.missing == std::vector<std::string>{"head.bias"});
    CHECK(rest.unexpected == std::vector<std::string>{"layers.9.weight"});
    CHECK(at::equal(training.model->layers->parameters()[0], before[0] + 1));
    CHECK(at::equal(training.model->head->bias, before.back()));

    if (rank.rank == 0) state["head.weight"] = at::ones({17, 3});
    text = error_text([&] { fsdp::load_full_state(training.model, state, {.strict = false}); });
    CHECK(contains(text, "wrong shape: 'head.weight' has [17, 3], expected [3, 17]"));
    distributed::destroy_process_group();
  });
}

TEST_CASE("state that differs between ranks is refused, without a hang") {
  ranks::on_ranks(2, [](const ranks::Rank& rank) {
    join_for_training(rank);
    scenarios::Network model(17, rank.rank == 0 ? std::vector<int>{13} : std::vector<int>{13, 5}, 3, false, false);
    const std::string text = error_text([&] { fsdp::full_state(model); });
    CHECK(contains(text,
                   "full_state needs the same tensors, of the same shapes and dtypes, on all ranks, and rank 1 has "
                   "others than rank 0"));
    distributed::destroy_process_group();
  });
}

TEST_CASE("state on meta and an optimizer of another module are refused") {
  ranks::on_ranks(1, [](const ranks::Rank& rank) {
    join_for_training(rank);
    Training<scenarios::NetworkCase> training(Case("model=network"));
    scenarios::Network other(17, std::vector<int>{13}, 3, false, false);
    training.run(0, 1);
    CHECK(contains(error_text([&] { fsdp::full_optimizer_state(other, *training.optimizer); }),
                   "Parameter 0 of the optimizer, of shape [13, 17], is not a parameter of the module. Pass the module "
                   "with the optimizer's parameters."));
    const nn::DeviceScope meta(at::kMeta);
    scenarios::Network empty(17, std::vector<int>{13}, 3, false, false);
    CHECK(contains(error_text([&] { fsdp::full_state(empty); }), "Call fsdp::to_empty(module, device) first."));
    distributed::destroy_process_group();
  });
}
