#include "plimsoll/job/torchtitan/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

/// The fields of torchtitan's configurations of 2024 and 2025. Several moved from [training] and [experimental] to
/// [parallelism]. "*": all fields of the table.
constexpr TitanTable kTables[] = {
    {"job", "",
     "config_file dump_folder description use_for_integration_test print_args print_config "
     "save_config_file custom_config_module"},
    {"profiling", "",
     "enable_profiling save_traces_folder profile_freq profiler_active profiler_warmup "
     "enable_memory_snapshot save_memory_snapshot_folder"},
    {"metrics", "",
     "log_freq enable_color_printing disable_color_printing enable_tensorboard save_tb_folder rank_0_only "
     "save_for_all_ranks enable_wandb"},
    {.name = "model",
     .mapped = "name flavor norm_type",
     .passed_over = "tokenizer_path tokenizer_name hf_assets_path print_after_conversion attn_mask_type",
     .must_be_false = "use_flex_attn",
     .must_be_empty = "converters"},
    {.name = "optimizer",
     .mapped = "name implementation fused",
     .passed_over = "lr beta1 beta2 eps weight_decay",
     .must_be_false = "early_step_in_backward"},
    {"lr_scheduler", "", "warmup_steps total_steps decay_ratio decay_type lr_min min_lr_factor"},
    {.name = "training",
     .mapped = "batch_size local_batch_size global_batch_size seq_len max_norm mixed_precision_param "
               "mixed_precision_reduce dtype enable_cpu_offload data_parallel_degree data_parallel_type "
               "data_parallel_replicate_degree data_parallel_shard_degree",
     .passed_over = "steps dataset dataset_path warmup_steps gc_freq gc_debug seed deterministic enable_loss_parallel "
                    "precompute_float8_dynamic_scale_for_fsdp dataloader.*",
     .must_be_one = "tensor_parallel_degree",
     .must_be_false = "compile enable_float8_linear enable_fsdp_float8_all_gather",
     .must_be_empty = "fp8_linear"},
    {.name = "parallelism",
     .mapped = "data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward",
     .passed_over = "disable_loss_parallel enable_async_tensor_parallel pipeline_parallel_split_points "
                    "module_fqns_per_model_part pipeline_parallel_first_stage_less_layers "
                    "pipeline_parallel_last_stage_less_layers pipeline_parallel_layers_per_stage "
                    "pipeline_parallel_schedule pipeline_parallel_schedule_csv pipeline_parallel_microbatch_size "
                    "pipeline_parallel_expert_parallel_overlap context_parallel_rotate_method "
                    "context_parallel_load_balancer",
     .must_be_one = "tensor_parallel_degree pipeline_parallel_degree context_parallel_degree expert_parallel_degree "
                    "expert_tensor_parallel_degree",
     .must_be_false = "enable_compiled_autograd"},
    {.name = "experimental",
     .mapped = "",
     .passed_over = "custom_import custom_args_module custom_model_path enable_async_tensor_parallel "
                    "pipeline_parallel_split_points pipeline_parallel_schedule pipeline_parallel_schedule_csv "
                    "pipeline_parallel_split_mode pipeline_parallel_microbatches context_parallel_rotate_method",
     .must_be_one = "pipeline_parallel_degree context_parallel_degree",
     .must_be_false = "enable_compiled_autograd torch_spmd"},
    {"checkpoint", "",
     "enable enable_checkpoint folder interval interval_type initial_load_path initial_load_model_only "
     "initial_load_in_hf initial_load_in_hf_quantized additional_load_in_hf model_weights_only "
     "last_save_model_only last_save_in_hf export_dtype create_seed_checkpoint async_mode keep_latest_k "
     "load_step load_only exclude_from_loading enable_first_step_checkpoint"},
    {.name = "activation_checkpoint",
     .mapped = "mode selective_ac_option",
     .passed_over =
         "early_stop memory_budget visualize_memory_budget_pareto preserve_rng_state determinism_check debug",
     .must_be_empty = "per_op_sac_force_recompute_mm_shapes_by_fqns"},
    {.name = "compile", .mapped = "", .passed_over = "components backend", .must_be_false = "enable"},
    // Only a converter in [model] switches these on.
    {.name = "float8",
     .mapped = "",
     .passed_over = "enable_fsdp_float8_all_gather precompute_float8_dynamic_scale_for_fsdp "
                    "force_recompute_fp8_weight_in_bwd recipe_name filter_fqns emulate moe_fqns_prototype "
                    "scaling_type_input scaling_type_weight scaling_type_grad_output",
     .must_be_false = "enable_float8_linear"},
    {"mx", "",
     "use_fp8_dim1_cast_triton_kernel mxfp8_dim1_cast_kernel_choice recipe_name filter_fqns moe_fqns_prototype"},
    {"quantize", "", "*"},
    {"comm", "",
     "init_timeout_seconds train_timeout_seconds trace_buf_size save_traces_folder save_traces_file_prefix mode"},
    {"memory_estimation", "", "enabled disable_fake_mode"},
    {.name = "fault_tolerance",
     .mapped = "",
     .passed_over = "process_group process_group_timeout_ms replica_id group_size min_replica_size semi_sync_method "
                    "sync_steps should_quantize fragment_sync_delay fragment_update_alpha",
     .must_be_false = "enable"},
    {.name = "liger_kernel", .mapped = "", .passed_over = "", .must_be_false = "enable_fused_linear_cross_entropy"},
    {.name = "validation",
     .mapped = "",
     .passed_over = "dataset dataset_path local_batch_size seq_len freq steps dataloader.*",
     .must_be_false = "enable enabled"},
    {"debug", "", "seed deterministic deterministic_warn_only moe_force_load_balance print_config save_config_file"},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view one = words.substr(0, words.find(' '));
    if (one == word || one == "*") return true;
    if (one.ends_with(".*") && word.starts_with(one.substr(0, one.size() - 1))) return true;
    words.remove_prefix(std::min(one.size() + 1, words.size()));
  }
  return false;
}

using TomlKind = toml::Value::Kind;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(' '));
    if (!one.empty() && !one.ends_with("*")) result.emplace_back(one);
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return result;
}

std::string nearest_or_all(const std::string& word, const std::vector<std::string>& known) {
  const std::string meant = did_you_mean(word, known);
  return meant.empty() ? "it has " + listed(known) : meant;
}

}  // namespace

std::span<const TitanTable> titan_tables() { return kTables; }

const TitanTable* find_titan_table(std::string_view name) {
  for (const TitanTable& table : kTables) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

TitanMeaning meaning_of(std::string_view table, std::string_view field) {
  const TitanTable* known = find_titan_table(table);
  if (known == nullptr) return TitanMeaning::kUnknown;
  if (has_word(known->mapped, field)) return TitanMeaning::kMapped;
  if (has_word(known->must_be_one, field)) return TitanMeaning::kMustBeOne;
  if (has_word(known->must_be_false, field)) return TitanMeaning::kMustBeFalse;
  if (has_word(known->must_be_empty, field)) return TitanMeaning::kMustBeEmpty;
  return has_word(known->passed_over, field) ? TitanMeaning::kPassedOver : TitanMeaning::kUnknown;
}

TitanFile::TitanFile(const toml::Value& root, const std::string& origin) : origin_(origin) {
  for (const auto& [name, value] : root.table) {
    if (value->kind != TomlKind::kTable) {
      fail(*value, in_quotes(name) +
                       " is outside of a table: a torchtitan file has only tables, and a file of our form has none");
    }
    if (find_titan_table(name) == nullptr) unknown_table(name, *value);
    read_table(name, "", *value);
  }
}

const toml::Value* TitanFile::find(const std::string& field) const {
  const auto found = mapped_.find(field);
  return found == mapped_.end() ? nullptr : found->second;
}

std::int64_t TitanFile::whole(const std::string& field, const toml::Value& value) const {
  if (value.kind != TomlKind::kInteger) fail(value, field + " must be a whole number, found " + toml::name(value.kind));
  return value.integer;
}

bool TitanFile::boolean(const std::string& field, const toml::Value& value) const {
  if (value.kind != TomlKind::kBoolean) fail(value, field + " must be true or false, found " + toml::name(value.kind));
  return value.boolean;
}

const std::string& TitanFile::text(const std::string& field, const toml::Value& value) const {
  if (value.kind != TomlKind::kString) fail(value, field + " must be a text, found " + toml::name(value.kind));
  return value.text;
}

void TitanFile::fail(const toml::Value& value, const std::string& message) const {
  throw FormatError(fmt::format("{}:{}: {}", origin_, value.line, message));
}

void TitanFile::read_table(const std::string& name, const std::string& prefix, const toml::Value& table) {
  for (const auto& [key, value] : table.table) {
    if (value->kind == TomlKind::kTable) {
      read_table(name, prefix + key + ".", *value);
    } else {
      read_field(name, prefix + key, *value);
    }
  }
}

void TitanFile::read_field(const std::string& table, const std::string& field, const toml::Value& value) {
  const std::string full = table + "." + field;
  switch (meaning_of(table, field)) {
    case TitanMeaning::kMapped:
      mapped_[full] = &value;
      return;
    case TitanMeaning::kPassedOver:
      passed_over_.push_back(full);
      return;
    case TitanMeaning::kMustBeOne:
      if (whole(full, value) == 1) return;
      fail(value, fmt::format("{} is {}, and `plan` supports only FSDP2 and HSDP: set it to 1, or {}", full,
                              value.integer, kRunInstead));
    case TitanMeaning::kMustBeFalse:
      if (!boolean(full, value)) return;
      fail(value, fmt::format("{} is true, and `plan` runs torch eagerly: set it to false, or {}", full, kRunInstead));
    case TitanMeaning::kMustBeEmpty:
      if ((value.kind == TomlKind::kArray || value.kind == TomlKind::kString) && value.array.empty() &&
          value.text.empty())
        return;
      fail(value,
           fmt::format("{} is not empty, and `plan` does not support converted models (float8 and others): empty "
                       "it, or {}",
                       full, kRunInstead));
    case TitanMeaning::kUnknown:
      unknown_field(table, field, value);
  }
}

void TitanFile::unknown_table(const std::string& name, const toml::Value& value) const {
  std::vector<std::string> names;
  for (const TitanTable& table : titan_tables()) names.emplace_back(table.name);
  fail(value, "torchtitan has no table " + in_quotes(name) + ": " + nearest_or_all(name, names));
}

void TitanFile::unknown_field(const std::string& table, const std::string& field, const toml::Value& value) const {
  const TitanTable& known = *find_titan_table(table);
  std::vector<std::string> names;
  for (const auto list :
       {known.mapped, known.must_be_one, known.must_be_false, known.must_be_empty, known.passed_over}) {
    for (std::string& word : words(list)) names.push_back(std::move(word));
  }
  fail(value,
       fmt::format("torchtitan has no field {} in [{}]: {}", in_quotes(field), table, nearest_or_all(field, names)));
}

}  // namespace plimsoll::job
