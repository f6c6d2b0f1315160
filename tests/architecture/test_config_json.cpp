#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "architecture/fuzzed_configs.h"
#include "plimsoll/architecture/architecture.h"
#include "plimsoll/architecture/config_json.h"
#include "plimsoll/base/errors.h"

namespace plimsoll::architecture::test_config_json {

namespace {

constexpr auto kLlama =
    R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4})";

/// The config with one field set to something else, or added.
std::string with(const std::string& field, const std::string& value, std::string config = kLlama) {
  const auto key = "\"" + field + "\": ";
  const auto at = config.find(key);
  if (at == std::string::npos) return config.replace(config.find('{'), 1, "{" + key + value + ", ");
  const auto end = config.find_first_of(",}", at);
  return config.replace(at + key.size(), end - at - key.size(), value);
}

std::string without(const std::string& field) { return with(field, "null"); }

std::string message_of(const std::string& text) {
  try {
    read_config(text, "config.json");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "read without complaint";
}

/// A file that is gone with the test.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("plimsoll_config_" + std::to_string(std::random_device()()));
  explicit TemporaryFile(const std::string& text) { std::ofstream(path) << text; }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("a missing field of a config has the default of its family") {
  const auto llama = read_config(kLlama, "config.json");
  CHECK(llama.kv_heads == 4);
  CHECK(llama.head_dim == 16);
  CHECK_FALSE(llama.tied_embeddings);
  CHECK_FALSE(llama.qkv_bias);
  CHECK(llama.rope_theta == 10000);
  CHECK(read_config(with("model_type", "\"qwen2\""), "").qkv_bias);
  CHECK_FALSE(read_config(with("model_type", "\"qwen2\""), "").output_bias);
  const auto qwen3 = read_config(with("model_type", "\"qwen3\""), "");
  CHECK(qwen3.qk_norm);
  CHECK(qwen3.head_dim == 128);
  const auto mixtral = read_config(with("num_attention_heads", "8", with("model_type", "\"mixtral\"")), "");
  REQUIRE(mixtral.experts);
  CHECK(mixtral.experts->count == 8);
  CHECK(mixtral.experts->per_token == 2);
  CHECK(mixtral.experts->hidden == 96);
  const auto gpt2 = read_config(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4})", "");
  CHECK(gpt2.tied_embeddings);
  CHECK(gpt2.hidden == 256);
  CHECK(gpt2.positions == 1024);
}

TEST_CASE("only some blocks may have experts") {
  auto text = with("decoder_sparse_step", "2", with("model_type", "\"qwen3_moe\""));
  text = with("mlp_only_layers", "[1]", with("num_hidden_layers", "4", text));
  const auto model = read_config(text, "config.json");
  CHECK_FALSE(model.has_experts(0));
  CHECK_FALSE(model.has_experts(1));  // Its turn, but named as dense.
  CHECK_FALSE(model.has_experts(2));
  CHECK(model.has_experts(3));
}

TEST_CASE("fields that do not change the shape are ignored") {
  CHECK(message_of(with("torch_dtype", "\"bfloat16\"", with("eos_token_id", "[1, 2]"))) == "read without complaint");
  CHECK(message_of(with("rope_scaling", "{\"factor\": 8.0, \"rope_type\": \"llama3\"}")) == "read without complaint");
}

TEST_CASE("a field that a training run would heed and plan ignores gets a note") {
  const auto notes = [](const std::string& text) { return read_config(text, "").notes; };
  using Notes = std::vector<std::string>;
  CHECK(notes(kLlama).empty());
  CHECK(notes(with("attention_dropout", "0.0", with("sliding_window", "null"))).empty());
  CHECK(notes(with("attention_dropout", "0.1")) == Notes{"the config's attention_dropout 0.1 is ignored"});
  CHECK(notes(with("sliding_window", "4096")) ==
        Notes{"the config's sliding_window 4096 is ignored: attention covers the whole sequence"});
  CHECK(notes(with("sliding_window", "4096", with("use_sliding_window", "false"))).empty());
  CHECK(notes(with("architectures", "[\"LlamaForCausalLM\"]")).empty());
  CHECK(notes(with("architectures", "[\"Qwen3MoeForCausalLM\"]", with("model_type", "\"qwen3_moe\""))).empty());
  CHECK(notes(with("architectures", "[\"Gemma2ForCausalLM\"]")) ==
        Notes{"the config's architectures names Gemma2ForCausalLM, and model_type llama: planned is a llama "
              "language model"});
}

TEST_CASE("the message for an unknown model type names the supported ones and `plimsoll run`") {
  std::string families;
  for (const auto family : kFamilyNames) families += (families.empty() ? "" : ", ") + std::string(family);
  CHECK(message_of(with("model_type", "\"mamba\"")) ==
        "config.json: `plan` does not support the model type 'mamba'. Use `plimsoll run` with your training script. "
        "Supported: " +
            families);
  CHECK(message_of(without("model_type")) == "config.json: field 'model_type' is missing: expected a name");
  CHECK(message_of(with("model_type", "7")) == "config.json: field 'model_type' must be a name, found 7");
}

TEST_CASE("the message for a wrong field says what was expected and what was found") {
  CHECK(message_of(without("vocab_size")) ==
        "config.json: field 'vocab_size' is missing: expected a whole number above 0");
  CHECK(message_of(without("num_hidden_layers")) ==
        "config.json: field 'num_hidden_layers' is missing: expected the number of blocks");
  for (const std::string odd : {"0", "-4", "1.5", "\"64\"", "true", "[]", "{}", "1e3", "2147483649",
                                "18446744073709551616", "9223372036854775808"}) {
    CAPTURE(odd);
    const auto message = message_of(with("hidden_size", odd));
    CHECK(message.starts_with("config.json: field 'hidden_size' must be a whole number from 1 to 2147483648, found "));
  }
  CHECK(message_of(with("num_hidden_layers", "100000")) ==
        "config.json: field 'num_hidden_layers' must be a whole number from 1 to 16384, found 100000");
  CHECK(message_of(with("num_attention_heads", "7")) ==
        "config.json: field 'num_attention_heads' must divide hidden_size (64) if head_dim is missing, found 7");
  CHECK(message_of(with("num_key_value_heads", "3")) ==
        "config.json: field 'num_key_value_heads' must divide num_attention_heads (4), found 3");
  CHECK(message_of(with("head_dim", "5")) ==
        "config.json: field 'head_dim' must be even, for rotary embeddings, found 5");
  CHECK(message_of(with("tie_word_embeddings", "1")) ==
        "config.json: field 'tie_word_embeddings' must be true or false, found 1");
  CHECK(message_of(with("rms_norm_eps", "-1.0")) ==
        "config.json: field 'rms_norm_eps' must be a number above 0, found -1.0");
  CHECK(message_of(with("hidden_act", "\"gelu\"")) ==
        "config.json: field 'hidden_act' is \"gelu\", and `plan` supports only 'silu'");
  CHECK(message_of(with("partial_rotary_factor", "0.75", with("model_type", "\"phi3\""))) ==
        "config.json: field 'partial_rotary_factor' is 0.75, and `plan` supports only 1");
  CHECK(message_of(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 5})") ==
        "config.json: field 'n_head' must divide n_embd (64), found 5");
  const auto moe = with("model_type", "\"qwen3_moe\"");
  CHECK(message_of(with("num_experts_per_tok", "9", with("num_experts", "4", moe))) ==
        "config.json: field 'num_experts_per_tok' must be at most the number of experts (4), found 9");
  CHECK(message_of(with("mlp_only_layers", "3", moe)) ==
        "config.json: field 'mlp_only_layers' must be a list of blocks, found 3");
  CHECK(message_of(with("mlp_only_layers", "[2]", moe)) ==
        "config.json: field 'mlp_only_layers' must be a whole number from 0 to 1, found 2");
}

TEST_CASE("sizes whose product is too large are refused") {
  auto text = with("hidden_size", "2147483648", with("intermediate_size", "2147483648"));
  text = with("num_hidden_layers", "16384", with("vocab_size", "2147483648", text));
  CHECK(message_of(text) ==
        "config.json: the model has more than 2^62 parameters: one of the sizes in its config must be wrong");
}

TEST_CASE("a text that is not a JSON object is refused") {
  CHECK(message_of("").starts_with("config.json: not valid JSON: "));
  CHECK(message_of("{\n \"a\": x}") == "config.json: not valid JSON: line 2, column 7");
  CHECK(message_of("{").starts_with("config.json: not valid JSON: "));
  CHECK(message_of("{\"model_type\": NaN}").starts_with("config.json: not valid JSON: "));
  CHECK(message_of("{\"a\": 1e999}") == "config.json: not valid JSON: a number is out of range");
  CHECK(message_of("[1]") == "config.json: expected a JSON object, as in a model's config.json, found array");
  CHECK(message_of("\xff\xfe{}").starts_with("config.json: not valid JSON: "));
  CHECK(message_of(std::string(1 << 20, '[')) == "config.json: nested deeper than 32 levels");
  CHECK(message_of("{\"model_type\": \"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}").find("does not support") !=
        std::string::npos);
  // A message has no control characters, and its length is limited.
  const auto message = message_of("{\"model_type\": \"\\u001b[31m" + std::string(1000, 'x') + "\"}");
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK(message.size() < 300);
}

TEST_CASE("a file that cannot be read is refused with the reason") {
  const TemporaryFile good(kLlama);
  CHECK(read_config_file(good.path).dim == 64);
  const TemporaryFile large(std::string(kMostConfigBytes + 1, ' '));
  CHECK_THROWS_WITH_AS(read_config_file(large.path), doctest::Contains("is larger than 4 MiB: give a config.json"),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(read_config_file("/nowhere/config.json"),
                       "no such file: /nowhere/config.json: expected a model's config.json", InvalidArgument);
  CHECK_THROWS_WITH_AS(read_config_file(std::filesystem::temp_directory_path()),
                       doctest::Contains("is a folder: give the config.json in it"), InvalidArgument);
}

TEST_CASE("a config with changed, added or removed bytes is read or gives a FormatError") {
  FuzzedConfigs configs(20261116);
  int read = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    try {
      const auto architecture = read_config(configs.next(), "fuzzed");
      CHECK(architecture.heads % architecture.kv_heads == 0);
      CHECK(count_parameters(architecture).total > 0);
      ++read;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  CHECK(read > 1000);
  CHECK(refused > 1000);
}

}  // namespace plimsoll::architecture::test_config_json
