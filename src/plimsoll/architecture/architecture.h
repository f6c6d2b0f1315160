#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Language models as described by a config.json: sizes and switches, no tensors.
namespace plimsoll::architecture {

/// The names are those of Hugging Face's `model_type`.
enum class Family : std::uint8_t { kLlama, kMistral, kQwen2, kQwen3, kGPT2, kPhi3, kMixtral, kQwen3Moe };
inline constexpr std::string_view kFamilyNames[] = {"llama", "mistral", "qwen2",   "qwen3",
                                                    "gpt2",  "phi3",    "mixtral", "qwen3_moe"};
constexpr std::string_view name(Family family) { return kFamilyNames[static_cast<std::size_t>(family)]; }

/// The feed-forward layers of a mixture of experts; each token uses some of them.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t hidden = 0;  ///< The width of one expert.
  /// Block i has experts if i + 1 is a multiple of this; other blocks are dense.
  std::int64_t sparse_step = 1;
  std::set<std::int64_t> dense_blocks = {};  ///< Blocks that are dense in any case.
};

struct Architecture {
  Family family{};
  std::int64_t vocabulary = 0;
  std::int64_t dim = 0;
  std::int64_t hidden = 0;  ///< The width of a dense feed-forward layer.
  std::int64_t blocks = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t positions = 0;  ///< The longest sequence of the config; GPT-2 learns a vector for each position.
  double norm_epsilon = 0;
  double rope_theta = 0;         ///< 0 if positions are learnt.
  bool tied_embeddings = false;  ///< The output head uses the weight of the embedding.
  bool qkv_bias = false;
  bool output_bias = false;  ///< Attention's output projection has a bias.
  bool mlp_bias = false;
  bool qk_norm = false;  ///< Each head normalises its queries and keys.
  std::optional<Experts> experts = {};
  std::vector<std::string> notes = {};  ///< Fields of the config that `plan` ignores, as sentences.

  bool has_experts(std::int64_t block) const;
};

/// Numbers of parameters.
struct ParameterCount {
  std::int64_t total = 0;
  /// Parameters used for one token: of the experts, only those that the token uses.
  std::int64_t active = 0;
  std::int64_t embeddings = 0;  ///< Of tokens and of learnt positions.
  std::int64_t head = 0;        ///< 0 if the head uses the weight of the embedding.
};

/// Throws InvalidArgument if the count does not fit in 62 bits.
ParameterCount count_parameters(const Architecture& architecture);
/// Of one block; the first is 0.
ParameterCount count_block(const Architecture& architecture, std::int64_t block);

/// A public model. presets.json has them all; the build embeds it.
struct Preset {
  std::string name;
  std::vector<std::string> aliases;
  std::int64_t parameters;  ///< The published number, exact. Tied parameters count once.
  std::string config;       ///< Its config.json, without fields that do not change the shape.
};

std::span<const Preset> presets();
/// Finds a preset by its name or an alias; case does not matter. Null if no preset has the name.
const Preset* find_preset(std::string_view name);
Architecture architecture_of(const Preset& preset);

}  // namespace plimsoll::architecture
