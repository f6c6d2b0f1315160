#include "plimsoll/architecture/architecture.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "plimsoll/architecture/config_json.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"

namespace plimsoll::architecture {
namespace {

/// Sums and products with a check for overflow.
class Count {
 public:
  Count(std::int64_t value = 0) : value_(value) {}  // NOLINT: converts implicitly

  friend Count operator+(Count a, Count b) {
    std::int64_t sum = 0;
    const bool overflowed = __builtin_add_overflow(a.value_, b.value_, &sum);
    return checked(overflowed, sum);
  }
  friend Count operator*(Count a, Count b) {
    std::int64_t product = 0;
    const bool overflowed = __builtin_mul_overflow(a.value_, b.value_, &product);
    return checked(overflowed, product);
  }
  Count& operator+=(Count other) { return *this = *this + other; }

  std::int64_t value() const { return value_; }

 private:
  static Count checked(bool overflowed, std::int64_t value) {
    if (overflowed || value >= std::int64_t{1} << 62) {
      throw InvalidArgument("the model has more than 2^62 parameters: one of the sizes in its config must be wrong");
    }
    return value;
  }

  std::int64_t value_;
};

Count linear(Count in, Count out, bool bias) { return in * out + (bias ? out : Count(0)); }

Count attention(const Architecture& a) {
  const Count queries = Count(a.heads) * a.head_dim, keys = Count(a.kv_heads) * a.head_dim;
  Count count = linear(a.dim, queries, a.qkv_bias) + linear(a.dim, keys, a.qkv_bias) + linear(a.dim, keys, a.qkv_bias) +
                linear(queries, a.dim, a.output_bias);
  if (a.qk_norm) count += Count(2) * a.head_dim;
  return count;
}

/// GPT-2 has two matrices, other families three.
Count feed_forward(const Architecture& a, std::int64_t hidden) {
  const Count up = linear(a.dim, hidden, a.mlp_bias), down = linear(hidden, a.dim, a.mlp_bias);
  return a.family == Family::kGPT2 ? up + down : up + up + down;
}

/// Layer norm has a bias, RMS norm does not.
Count norm(const Architecture& a) { return Count(a.dim) * (a.family == Family::kGPT2 ? 2 : 1); }

struct Sum {
  Count total, active;
};

Sum block_sum(const Architecture& a, std::int64_t block) {
  const Count shared = attention(a) + norm(a) + norm(a);
  if (!a.has_experts(block)) {
    const Count all = shared + feed_forward(a, a.hidden);
    return {all, all};
  }
  const Experts& experts = *a.experts;
  const Count one = feed_forward(a, experts.hidden), router = Count(a.dim) * experts.count;
  return {shared + router + one * experts.count, shared + router + one * experts.per_token};
}

}  // namespace

bool Architecture::has_experts(std::int64_t block) const {
  return experts && (block + 1) % experts->sparse_step == 0 && !experts->dense_blocks.contains(block);
}

ParameterCount count_block(const Architecture& architecture, std::int64_t block) {
  const auto sum = block_sum(architecture, block);
  return {sum.total.value(), sum.active.value(), 0, 0};
}

ParameterCount count_parameters(const Architecture& a) {
  Count embeddings = Count(a.vocabulary) * a.dim;
  if (a.family == Family::kGPT2) embeddings += Count(a.positions) * a.dim;
  const Count head = a.tied_embeddings ? Count(0) : Count(a.vocabulary) * a.dim;
  Count total = embeddings + head + norm(a), active = total;
  for (std::int64_t block = 0; block < a.blocks; ++block) {
    const auto sum = block_sum(a, block);
    total += sum.total;
    active += sum.active;
  }
  return {total.value(), active.value(), embeddings.value(), head.value()};
}

extern const std::string_view kPresetsJson;  // The build writes its source from presets.json.

namespace {

std::vector<Preset> read_presets() {
  std::vector<Preset> read;
  for (const auto& entry : nlohmann::ordered_json::parse(kPresetsJson)) {
    read.push_back({.name = entry.at("name"),
                    .aliases = entry.at("aliases"),
                    .parameters = entry.at("parameters"),
                    .config = entry.at("config").dump()});
  }
  return read;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> all = read_presets();
  return all;
}

const Preset* find_preset(std::string_view name) {
  const std::string wanted = lower(name);
  const auto all = presets();
  const auto found = std::ranges::find_if(all, [&](const Preset& preset) {
    return preset.name == wanted || std::ranges::find(preset.aliases, wanted) != preset.aliases.end();
  });
  return found == all.end() ? nullptr : &*found;
}

Architecture architecture_of(const Preset& preset) { return read_config(preset.config, "preset " + preset.name); }

}  // namespace plimsoll::architecture
