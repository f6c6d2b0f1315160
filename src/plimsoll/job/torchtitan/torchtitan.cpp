#include "plimsoll/job/torchtitan/torchtitan.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/toml.h"
#include "plimsoll/job/torchtitan/file.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

/// A torchtitan field whose value a field of a job takes unchanged.
struct Direct {
  std::string_view titan;
  std::string_view field;
};
constexpr Direct kDirect[] = {
    {"training.batch_size", "batch"},
    {"training.local_batch_size", "batch"},
    {"training.seq_len", "seq-len"},
    {"training.max_norm", "clip-grad-norm"},
    {"training.mixed_precision_param", "param-dtype"},
    {"training.mixed_precision_reduce", "reduce-dtype"},
    {"training.dtype", "master-dtype"},
    {"training.data_parallel_replicate_degree", "replicas"},
    {"parallelism.data_parallel_replicate_degree", "replicas"},
    {"optimizer.name", "optimizer"},
    {"optimizer.implementation", "optimizer-impl"},
};

class Reader : private TitanFile {
 public:
  Reader(const toml::Value& root, const std::string& origin, Job& job, std::span<const Setting> flags)
      : TitanFile(root, origin), job_(job), flags_(flags) {}

  JobFile read() {
    file_.torchtitan = true;
    file_.passed_over = passed_over();
    for (const Direct& direct : kDirect) read_direct(direct);
    read_switches();
    read_checkpointing();
    read_model();
    read_ranks();
    read_defaults();
    for (const Setting& flag : flags_) find_field(flag.name).set(job_, flag.text);
    read_global_batch();
    return file_;
  }

 private:
  void set(const std::string& titan, const toml::Value& value, std::string_view field, const Value& plain) {
    try {
      set_value(job_, find_field(field), plain);
    } catch (const InvalidArgument& error) {
      fail(value, titan + ": " + error.what());
    }
  }

  void read_direct(const Direct& direct) {
    const std::string name(direct.titan);
    if (const auto* value = find(name)) {
      at_line(origin(), *value, [&] { set(name, *value, direct.field, plain_value(name, *value)); });
    }
  }

  void read_switches() {
    if (const auto* value = find("training.enable_cpu_offload")) {
      job_.offload = boolean("training.enable_cpu_offload", *value) ? Offload::kParams : Offload::kNone;
    }
    if (const auto* value = find("optimizer.fused")) {
      job_.optimizer_impl = boolean("optimizer.fused", *value) ? OptimizerImpl::kFused : OptimizerImpl::kForeach;
    }
    if (const auto* value = find("parallelism.fsdp_reshard_after_forward")) {
      const std::string& policy = text("parallelism.fsdp_reshard_after_forward", *value);
      set("parallelism.fsdp_reshard_after_forward", *value, "reshard-after-forward",
          policy == "default" ? Value("auto") : Value(policy));
      if (policy == "always") job_.keep_last_block = false;
    }
    if (const auto* value = find("training.data_parallel_type")) {
      if (lower(text("training.data_parallel_type", *value)) != "fsdp") not_fsdp("training.data_parallel_type", *value);
    }
    if (const auto* value = find("model.norm_type")) {
      const std::string& type = text("model.norm_type", *value);
      if (type != "rmsnorm" && type != "fused_rmsnorm") {
        fail(*value, "model.norm_type is " + in_quotes(type) + ", and `plan` supports only rmsnorm and fused_rmsnorm");
      }
      job_.norm = type == "rmsnorm" ? Norm::kComposite : Norm::kFused;
    }
  }

  [[noreturn]] void not_fsdp(const std::string& field, const toml::Value& value) const {
    fail(value, field + " asks for DDP, and `plan` supports only FSDP2 and HSDP: " + kRunInstead);
  }

  void read_checkpointing() {
    const auto* mode = find("activation_checkpoint.mode");
    const auto* option = find("activation_checkpoint.selective_ac_option");
    if (mode == nullptr) file_.assumed.emplace_back("activation_checkpoint.mode = 'selective'");
    const std::string kind = mode == nullptr ? "selective" : text("activation_checkpoint.mode", *mode);
    if (kind != "none" && kind != "full" && kind != "selective") {
      fail(*mode, "activation_checkpoint.mode must be none, full or selective, found " + in_quotes(kind));
    }
    if (kind != "selective") {
      job_.checkpoint = {.kind = kind == "full" ? CheckpointKind::kFull : CheckpointKind::kNone};
      return;
    }
    if (option == nullptr) file_.assumed.emplace_back("activation_checkpoint.selective_ac_option = '2'");
    const bool is_number = option != nullptr && option->kind == toml::Value::Kind::kInteger;
    const std::string every = option == nullptr ? "2"
                              : is_number       ? std::to_string(option->integer)
                                                : text("activation_checkpoint.selective_ac_option", *option);
    if (every == "op") {
      job_.checkpoint = {.kind = CheckpointKind::kSelective};
    } else if (option == nullptr) {
      job_.checkpoint = {.kind = CheckpointKind::kFull, .every = 2};
    } else {
      at_line(origin(), *option, [&] {
        job_.checkpoint = {
            .kind = CheckpointKind::kFull,
            .every =
                parse_whole("activation_checkpoint.selective_ac_option ('op', or N for every N-th block)", every, 1)};
      });
    }
  }

  bool has_flag(std::string_view name) const {
    return std::any_of(flags_.begin(), flags_.end(), [&](const Setting& flag) { return flag.name == name; });
  }

  void read_model() {
    const auto* name = find("model.name");
    const auto* flavor = find("model.flavor");
    if (has_flag("model")) return;
    if (name == nullptr || flavor == nullptr) {
      throw FormatError(origin() + ": [model] needs name and flavor, as in name = \"llama3\" and flavor = \"8B\"");
    }
    const std::string model = lower(text("model.name", *name)) + "-" + lower(text("model.flavor", *flavor));
    if (!is_model_name(model)) {
      fail(*flavor, fmt::format("model.name {} with model.flavor {} would be {}, which `plan` does not support. Give "
                                "another model on the command line, by name or by its config.json; or {}",
                                in_quotes(name->text), in_quotes(flavor->text), in_quotes(model), kRunInstead));
    }
    job_.model = model;
  }

  /// REQUIRES: replicas are set.
  void read_ranks() {
    for (const std::string name : {"training.data_parallel_degree", "training.data_parallel_shard_degree",
                                   "parallelism.data_parallel_shard_degree"}) {
      const auto* value = find(name);
      if (value == nullptr || whole(name, *value) == -1) continue;  // -1: all remaining GPUs.
      at_line(origin(), *value, [&] {
        const std::int64_t shards = parse_whole(name + " (-1: all remaining GPUs)", std::to_string(value->integer), 1);
        if (shards == 1 && job_.replicas > 1) not_fsdp(name, *value);
        job_.gpus = parse_whole("replicas × " + name, std::to_string(shards * job_.replicas), 1);
      });
      return;
    }
    if (!has_flag("gpus")) file_.assumed.push_back(fmt::format("the number of GPUs, {} (--gpus)", job_.gpus));
  }

  void read_defaults() {
    if (!find("training.batch_size") && !find("training.local_batch_size")) {
      job_.batch = 8;
      file_.assumed.emplace_back("training.local_batch_size = 8");
    }
    if (!find("training.seq_len")) {
      job_.seq_len = 2048;
      file_.assumed.emplace_back("training.seq_len = 2048");
    }
    if (!find("optimizer.implementation") && !find("optimizer.fused")) {
      job_.optimizer_impl = OptimizerImpl::kFused;
      file_.assumed.emplace_back("optimizer.implementation = 'fused'");
    }
  }

  void read_global_batch() {
    const auto* value = find("training.global_batch_size");
    if (value == nullptr || whole("training.global_batch_size", *value) == -1 || has_flag("grad-accum")) return;
    at_line(origin(), *value, [&] {
      const std::int64_t global =
          parse_whole("training.global_batch_size (-1: one pass)", std::to_string(value->integer), 1);
      const std::int64_t pass = job_.batch * job_.gpus;  // Each is below 2^31.
      if (global % pass != 0) {
        throw InvalidArgument(
            fmt::format("training.global_batch_size {} is not a multiple of batch {} × {} GPUs: change one of them, or "
                        "give --grad-accum",
                        global, job_.batch, job_.gpus));
      }
      job_.grad_accum = global / pass;
    });
  }

  Job& job_;
  std::span<const Setting> flags_;
  JobFile file_;
};

}  // namespace

bool is_torchtitan(const toml::Value& root) {
  return std::any_of(root.table.begin(), root.table.end(), [](const auto& entry) {
    return entry.second->kind == toml::Value::Kind::kTable && find_titan_table(entry.first) != nullptr;
  });
}

JobFile read_torchtitan(const toml::Value& root, const std::string& origin, Job& job, std::span<const Setting> flags) {
  return Reader(root, origin, job, flags).read();
}

}  // namespace plimsoll::job
