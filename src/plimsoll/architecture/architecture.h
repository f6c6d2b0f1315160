#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Language models as their config.json describes them: sizes and switches, no tensors.
namespace plimsoll::architecture {

/// Named by Hugging Face's `model_type`.
enum class Family : std::uint8_t { kLlama, kMistral, kQwen2, kQwen3, kGPT2, kPhi3, kMixtral, kQwen3Moe };
inline constexpr std::string_view kFamilyNames[] = {"llama", "mistral", "qwen2",   "qwen3",
                                                    "gpt2",  "phi3",    "mixtral", "qwen3_moe"};
constexpr std::string_view name(Family family) { return kFamilyNames[static_cast<std::size_t>(family)]; }

/// Feed-forward layers of which each token uses some.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t hidden = 0;  ///< The width of each.
  /// Every how many blocks there are experts, counted from the end of each such stretch; the others are dense.
  std::int64_t sparse_step = 1;
  std::set<std::int64_t> dense_blocks = {};  ///< Blocks that are dense whatever the step says.
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
  std::int64_t positions = 0;  ///< The longest sequence it was made for; GPT-2 learns a vector for each.
  double norm_epsilon = 0;
  double rope_theta = 0;         ///< 0 where positions are learnt.
  bool tied_embeddings = false;  ///< The output head is the embedding.
  bool qkv_bias = false;
  bool output_bias = false;  ///< Of attention's output projection.
  bool mlp_bias = false;
  bool qk_norm = false;  ///< Queries and keys are normalised, head by head.
  std::optional<Experts> experts = {};
  std::vector<std::string> notes = {};  ///< Fields of the config that `plan` ignores, as sentences.

  bool has_experts(std::int64_t block) const;
};

/// How many numbers are learnt.
struct ParameterCount {
  std::int64_t total = 0;
  /// Those that take part in the forward of one token: of experts only the ones it is sent to.
  std::int64_t active = 0;
  std::int64_t embeddings = 0;  ///< Of tokens and learnt positions.
  std::int64_t head = 0;        ///< 0 where it is the embedding.
};

/// Throws InvalidArgument where the count does not fit 62 bits.
ParameterCount count_parameters(const Architecture& architecture);
/// Of one block, the first being 0.
ParameterCount count_block(const Architecture& architecture, std::int64_t block);

}  // namespace plimsoll::architecture
