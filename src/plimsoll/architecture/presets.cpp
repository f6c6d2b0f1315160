#include "plimsoll/architecture/presets.h"

#include <algorithm>
#include <string>

#include "plimsoll/architecture/config_json.h"
#include "plimsoll/base/errors.h"

namespace plimsoll::architecture {

namespace {

/// Each as its config.json has it, without what does not change the shape, and how many parameters it is published
/// with.
constexpr Preset kPresets[] = {
    {"llama2-7b", 6738415616,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false})"},
    {"llama2-13b", 13015864320,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false})"},
    {"llama2-70b", 68976648192,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false})"},
    {"llama3-8b", 8030261248,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": false})"},
    {"llama3-70b", 70553706496,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": false})"},
    {"llama3.1-8b", 8030261248,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": false})"},
    {"llama3.1-70b", 70553706496,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": false})"},
    {"llama3.1-405b", 405853388800,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": false})"},
    {"llama3.2-1b", 1235814400,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000, "head_dim": 64, "tie_word_embeddings": true})"},
    {"llama3.2-3b", 3212749824,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000, "head_dim": 128, "tie_word_embeddings": true})"},
    {"mistral-7b-v0.1", 7241732096,
     R"({"model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false})"},
    {"mistral-7b-v0.3", 7248023552,
     R"({"model_type": "mistral", "vocab_size": 32768, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05, "rope_theta": 1000000, "tie_word_embeddings": false})"},
    {"mistral-nemo-12b", 12247782400,
     R"({"model_type": "mistral", "vocab_size": 131072, "hidden_size": 5120, "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": false})"},
    {"qwen2.5-0.5b", 494032768,
     R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"qwen2.5-1.5b", 1543714304,
     R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"qwen2.5-3b", 3085938688,
     R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"qwen2.5-7b", 7615616512, R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})"},
    {"qwen2.5-14b", 14770033664,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})"},
    {"qwen2.5-32b", 32763876352,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})"},
    {"qwen2.5-72b", 72706203648,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})"},
    {"qwen3-0.6b", 596049920,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": true})"},
    {"qwen3-1.7b", 1720574976,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": true})"},
    {"qwen3-4b", 4022468096,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": true})"},
    {"qwen3-8b", 8190735360, R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": false})"},
    {"qwen3-14b", 14768307200,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": false})"},
    {"qwen3-32b", 32762123264,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 25600, "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": false})"},
    {"qwen3-30b-a3b", 30532122624,
     R"({"model_type": "qwen3_moe", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": false, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})"},
    {"qwen3-235b-a22b", 235093634560,
     R"({"model_type": "qwen3_moe", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "head_dim": 128, "tie_word_embeddings": false, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1536})"},
    {"phi3-mini", 3821079552,
     R"({"model_type": "phi3", "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false})"},
    {"phi3-medium", 13960238080,
     R"({"model_type": "phi3", "vocab_size": 32064, "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false})"},
    {"phi4",
     14659507200, R"({"model_type": "phi3", "vocab_size": 100352, "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10, "max_position_embeddings": 16384, "rms_norm_eps": 1e-05, "rope_theta": 250000, "tie_word_embeddings": false})"},
    {"mixtral-8x7b", 46702792704,
     R"({"model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05, "rope_theta": 1000000, "tie_word_embeddings": false, "num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"mixtral-8x22b", 140620634112,
     R"({"model_type": "mixtral", "vocab_size": 32000, "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56, "num_attention_heads": 48, "num_key_value_heads": 8, "max_position_embeddings": 65536, "rms_norm_eps": 1e-05, "rope_theta": 1000000, "tie_word_embeddings": false, "num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"gpt2", 124439808,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12})"},
    {"gpt2-medium", 354823168,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1024, "n_layer": 24, "n_head": 16})"},
    {"gpt2-large", 774030080,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1280, "n_layer": 36, "n_head": 20})"},
    {"gpt2-xl", 1557611200,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1600, "n_layer": 48, "n_head": 25})"},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const auto& preset) { return preset.name == name; });
  return found == std::end(kPresets) ? nullptr : found;
}

Architecture architecture_of(const Preset& preset) {
  return read_config(preset.config, "preset " + std::string(preset.name));
}

}  // namespace plimsoll::architecture
