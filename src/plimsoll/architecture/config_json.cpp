#include "plimsoll/architecture/config_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"

namespace plimsoll::architecture {

namespace {

using Json = nlohmann::json;

/// A larger size is a mistake, and products of sizes must not overflow.
constexpr std::int64_t kMostOfAnything = std::int64_t{1} << 31;
constexpr std::int64_t kMostBlocks = 1 << 14;
constexpr int kDeepest = 32;

/// `text` for a message: cut, without control characters.
std::string shown(std::string text) {
  constexpr std::size_t kMost = 60;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text.size() <= kMost ? text : text.substr(0, kMost) + "…";
}

std::string shown(const Json& value) {
  return shown(value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace));
}

/// The fields of a config, by name; every message names the field.
class Fields {
 public:
  Fields(const Json& object, const std::string& origin) : object_(object), origin_(origin) {}

  [[noreturn]] void fail(const std::string& field, const std::string& what) const {
    throw FormatError(origin_ + ": field '" + field + "' " + what);
  }

  [[noreturn]] void unsupported(const std::string& message) const { throw FormatError(origin_ + ": " + message); }

  /// Null counts as absent, as None does in Python.
  const Json* find(const std::string& field) const {
    const auto found = object_.find(field);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  std::int64_t size(const std::string& field, std::optional<std::int64_t> otherwise = {}) const {
    const Json* value = find(field);
    if (value == nullptr) {
      if (otherwise) return *otherwise;
      fail(field, "is missing: expected a whole number above 0");
    }
    return whole(field, *value, 1, kMostOfAnything);
  }

  std::int64_t blocks(const std::string& field) const {
    const Json* value = find(field);
    if (value == nullptr) fail(field, "is missing: expected the number of blocks");
    return whole(field, *value, 1, kMostBlocks);
  }

  std::int64_t whole(const std::string& field, const Json& value, std::int64_t least, std::int64_t most) const {
    // The parser stores a number beyond 63 bits as unsigned.
    const bool fits =
        value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(most));
    const std::int64_t number = fits ? value.get<std::int64_t>() : 0;
    if (!fits || number < least || number > most) {
      fail(field, fmt::format("must be a whole number from {} to {}, found {}", least, most, shown(value)));
    }
    return number;
  }

  double number(const std::string& field, double otherwise) const {
    const Json* value = find(field);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !(value->get<double>() > 0))
      fail(field, "must be a number above 0, found " + shown(*value));
    return value->get<double>();
  }

  bool flag(const std::string& field, bool otherwise) const {
    const Json* value = find(field);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(field, "must be true or false, found " + shown(*value));
    return value->get<bool>();
  }

  std::string text(const std::string& field) const {
    const Json* value = find(field);
    if (value == nullptr) fail(field, "is missing: expected a name");
    if (!value->is_string()) fail(field, "must be a name, found " + shown(*value));
    return value->get<std::string>();
  }

  /// Refuses a value that changes the model.
  void expect(const std::string& field, const std::vector<std::string>& known) const {
    const Json* value = find(field);
    if (value == nullptr) return;
    std::string list;
    for (const auto& one : known) {
      if (value->is_string() && value->get_ref<const std::string&>() == one) return;
      list += (list.empty() ? "'" : " or '") + one + "'";
    }
    fail(field, "is " + shown(*value) + ", and `plan` supports only " + list);
  }

 private:
  const Json& object_;
  const std::string& origin_;
};

std::string known_families() { return fmt::format("{}", fmt::join(kFamilyNames, ", ")); }

Family family_of(const Fields& fields) {
  const auto type = fields.text("model_type");
  for (std::size_t index = 0; index < std::size(kFamilyNames); ++index) {
    if (kFamilyNames[index] == type) return Family{static_cast<std::uint8_t>(index)};
  }
  fields.unsupported(fmt::format(
      "`plan` does not support the model type '{}'. Use `plimsoll run` with your training script. Supported: {}",
      shown(type), known_families()));
}

Architecture gpt2(const Fields& fields) {
  Architecture a{.family = Family::kGPT2};
  a.vocabulary = fields.size("vocab_size", 50257);
  a.dim = fields.size("n_embd");
  a.blocks = fields.blocks("n_layer");
  a.heads = a.kv_heads = fields.size("n_head");
  a.hidden = fields.size("n_inner", 4 * a.dim);
  a.positions = fields.size("n_positions", 1024);
  a.norm_epsilon = fields.number("layer_norm_epsilon", 1e-5);
  a.tied_embeddings = fields.flag("tie_word_embeddings", true);
  a.qkv_bias = a.output_bias = a.mlp_bias = true;
  fields.expect("activation_function", {"gelu_new", "gelu", "gelu_pytorch_tanh"});
  if (a.dim % a.heads != 0) {
    fields.fail("n_head", fmt::format("must divide n_embd ({}), found {}", a.dim, a.heads));
  }
  a.head_dim = a.dim / a.heads;
  return a;
}

void read_heads(const Fields& fields, Architecture& a) {
  a.heads = fields.size("num_attention_heads");
  a.kv_heads =
      fields.size("num_key_value_heads", a.family == Family::kMistral || a.family == Family::kMixtral ? 8 : a.heads);
  if (a.heads % a.kv_heads != 0) {
    fields.fail("num_key_value_heads",
                fmt::format("must divide num_attention_heads ({}), found {}", a.heads, a.kv_heads));
  }
  if (fields.find("head_dim") == nullptr && a.dim % a.heads != 0) {
    fields.fail("num_attention_heads",
                fmt::format("must divide hidden_size ({}) if head_dim is missing, found {}", a.dim, a.heads));
  }
  const bool is_qwen3 = a.family == Family::kQwen3 || a.family == Family::kQwen3Moe;
  a.head_dim = fields.size("head_dim", is_qwen3 ? 128 : a.dim / a.heads);
  if (a.head_dim % 2 != 0)
    fields.fail("head_dim", "must be even, for rotary embeddings, found " + std::to_string(a.head_dim));
}

std::set<std::int64_t> blocks_in(const Fields& fields, const std::string& field, std::int64_t blocks) {
  std::set<std::int64_t> found;
  const Json* list = fields.find(field);
  if (list == nullptr) return found;
  if (!list->is_array()) fields.fail(field, "must be a list of blocks, found " + shown(*list));
  for (const auto& entry : *list) found.insert(fields.whole(field, entry, 0, blocks - 1));
  return found;
}

std::optional<Experts> read_experts(const Fields& fields, const Architecture& a) {
  if (a.family != Family::kMixtral && a.family != Family::kQwen3Moe) return std::nullopt;
  Experts experts;
  if (a.family == Family::kMixtral) {
    experts.count = fields.size("num_local_experts", 8);
    experts.per_token = fields.size("num_experts_per_tok", 2);
    experts.hidden = a.hidden;
  } else {
    experts.count = fields.size("num_experts", 128);
    experts.per_token = fields.size("num_experts_per_tok", 8);
    experts.hidden = fields.size("moe_intermediate_size", 768);
    experts.sparse_step = fields.size("decoder_sparse_step", 1);
    experts.dense_blocks = blocks_in(fields, "mlp_only_layers", a.blocks);
  }
  if (experts.per_token > experts.count) {
    fields.fail("num_experts_per_tok",
                fmt::format("must be at most the number of experts ({}), found {}", experts.count, experts.per_token));
  }
  return experts;
}

Architecture llama_like(const Fields& fields, Family family) {
  Architecture a{.family = family};
  a.vocabulary = fields.size("vocab_size");
  a.dim = fields.size("hidden_size");
  a.hidden = fields.size("intermediate_size");
  a.blocks = fields.blocks("num_hidden_layers");
  read_heads(fields, a);
  a.positions = fields.size("max_position_embeddings", 2048);
  a.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
  a.rope_theta = fields.number("rope_theta", 10000);
  a.tied_embeddings = fields.flag("tie_word_embeddings", false);
  a.qk_norm = family == Family::kQwen3 || family == Family::kQwen3Moe;
  if (family == Family::kQwen2) {
    a.qkv_bias = true;
  } else if (family == Family::kLlama || a.qk_norm) {
    a.qkv_bias = a.output_bias = fields.flag("attention_bias", false);
  }
  if (family == Family::kLlama) a.mlp_bias = fields.flag("mlp_bias", false);
  if (family == Family::kPhi3 && fields.number("partial_rotary_factor", 1.0) != 1.0) {
    fields.fail("partial_rotary_factor",
                "is " + shown(*fields.find("partial_rotary_factor")) + ", and `plan` supports only 1");
  }
  fields.expect("hidden_act", {"silu"});
  a.experts = read_experts(fields, a);
  return a;
}

/// Refuses deep nesting during parsing: a hostile text can nest without limit.
Json parse(std::string_view text, const std::string& origin) {
  const auto refuse_deep = [&](int depth, Json::parse_event_t event, const Json&) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kDeepest)
      throw FormatError(fmt::format("{}: nested deeper than {} levels", origin, kDeepest));
    return true;
  };
  try {
    return Json::parse(text, refuse_deep);
  } catch (const Json::parse_error& error) {
    throw FormatError(origin + ": not valid JSON: " + line_and_column(text, error.byte));
  } catch (const Json::out_of_range&) {  // A number beyond the range of a double.
    throw FormatError(origin + ": not valid JSON: a number is out of range");
  }
}

/// Fields that a training run uses and `plan` ignores.
std::vector<std::string> ignored_fields(const Fields& fields, Family family) {
  std::vector<std::string> notes;
  const Json* dropout = fields.find("attention_dropout");
  if (dropout != nullptr && dropout->is_number() && *dropout != 0) {
    notes.push_back(fmt::format("the config's attention_dropout {} is ignored", shown(*dropout)));
  }
  const Json* window = fields.find("sliding_window");
  const Json* used = fields.find("use_sliding_window");
  if (window != nullptr && window->is_number() && (used == nullptr || *used == true)) {
    notes.push_back(
        fmt::format("the config's sliding_window {} is ignored: attention covers the whole sequence", shown(*window)));
  }
  const Json* names = fields.find("architectures");
  if (names == nullptr || !names->is_array() || names->size() != 1 || !names->front().is_string()) return notes;
  const auto found = names->front().get<std::string>();
  std::string expected(name(family));  // qwen3_moe: Qwen3MoeForCausalLM
  std::erase(expected, '_');
  if (lower(found) != expected + "forcausallm" && lower(found) != expected + "lmheadmodel") {
    notes.push_back(
        fmt::format("the config's architectures names {}, and model_type {}: planned is a {} language model",
                    shown(found), name(family), name(family)));
  }
  return notes;
}

}  // namespace

Architecture read_config(std::string_view text, const std::string& origin) {
  const Json config = parse(text, origin);
  if (!config.is_object())
    throw FormatError(origin + ": expected a JSON object, as in a model's config.json, found " + config.type_name());
  const Fields fields(config, origin);
  const auto family = family_of(fields);
  if (fields.find("quantization_config") != nullptr) {
    fields.fail(
        "quantization_config",
        "asks for quantized weights, which `plan` does not support: remove it to plan training in the dtypes of "
        "the job's flags");
  }
  auto architecture = family == Family::kGPT2 ? gpt2(fields) : llama_like(fields, family);
  architecture.notes = ignored_fields(fields, family);
  try {
    count_parameters(architecture);
  } catch (const InvalidArgument& error) {
    throw FormatError(origin + ": " + error.what());
  }
  return architecture;
}

Architecture read_config_file(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMostConfigBytes, "config.json", "a model's config.json");
  if (text.size() > kMostConfigBytes) {
    throw InvalidArgument(path.string() + " is larger than " + std::to_string(kMostConfigBytes >> 20) +
                          " MiB: give a config.json");
  }
  return read_config(text, path.string());
}

}  // namespace plimsoll::architecture
