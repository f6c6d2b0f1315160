#include "plimsoll/job/fields.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/nearest.h"
#include "plimsoll/job/spellings.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

using Kind = Field::Kind;

/// What a field of the table is made of, beside how it is read and written.
struct Label {
  std::string name;
  std::string form;
  std::string help;
};

Field base(Label label, Kind kind) {
  Field field;
  field.name = std::move(label.name);
  field.form = std::move(label.form);
  field.help = std::move(label.help);
  field.kind = kind;
  return field;
}

Field count(Label label, std::int64_t Job::* member, std::int64_t least = 1) {
  Field field = base(std::move(label), Kind::kInteger);
  field.set = [=, flag = field.flag()](Job& job, std::string_view text) {
    job.*member = parse_whole(flag, text, least);
  };
  field.get = [=](const Job& job) { return std::to_string(job.*member); };
  field.value = [=](const Job& job) -> Value { return job.*member; };
  return field;
}

Field flag(Label label, bool Job::* member) {
  Field field = base(std::move(label), Kind::kFlag);
  field.set = [=, flag = field.flag()](Job& job, std::string_view text) { job.*member = parse_boolean(flag, text); };
  field.get = [=](const Job& job) { return job.*member ? "true" : "false"; };
  field.value = [=](const Job& job) -> Value { return job.*member; };
  return field;
}

/// Anything that is written as a word of its own.
template <class Choice>
Field choice(Label label, Choice Job::* member, Choice (*parse)(const std::string&, std::string_view)) {
  Field field = base(std::move(label), Kind::kWord);
  field.set = [=, flag = field.flag()](Job& job, std::string_view text) { job.*member = parse(flag, text); };
  field.get = [=](const Job& job) { return text_of(job.*member); };
  field.value = [=](const Job& job) -> Value {
    if constexpr (std::is_same_v<Choice, Reshard>) {
      if ((job.*member).kind == Reshard::Kind::kToMesh) return (job.*member).ranks;
    }
    return text_of(job.*member);
  };
  return field;
}

Field text(Label label, std::string Job::* member) {
  Field field = base(std::move(label), Kind::kWord);
  field.set = [=, flag = field.flag()](Job& job, std::string_view value) {
    if (value.empty()) throw InvalidArgument(flag + " expects a name or the path of a file, found nothing");
    job.*member = value;
  };
  field.get = [=](const Job& job) { return job.*member; };
  field.value = [=](const Job& job) -> Value { return job.*member; };
  return field;
}

/// Makes a field of one that is given by `set` and written by `write` where it is there.
template <class T>
Field maybe(Field field, std::optional<T> Job::* member, std::string (*write)(const T&)) {
  field.optional = true;
  field.get = [=](const Job& job) -> std::optional<std::string> {
    if (!(job.*member)) return std::nullopt;
    return write(*(job.*member));
  };
  field.value = [=](const Job& job) -> Value {
    if (!(job.*member)) return nullptr;
    if constexpr (std::is_same_v<T, Bytes>) {
      return static_cast<std::int64_t>(*(job.*member));
    } else {
      return *(job.*member);
    }
  };
  field.clear = [=](Job& job) { (job.*member).reset(); };
  return field;
}

Field gpu_memory() {
  Field field = base({"gpu-memory", "80GiB", "the card's memory instead of the profile's (default: the profile's)"},
                     Kind::kBytes);
  field.set = [](Job& job, std::string_view text) { job.gpu_memory = parse_memory("--gpu-memory", text); };
  return maybe<Bytes>(std::move(field), &Job::gpu_memory, [](const Bytes& bytes) { return text_of_memory(bytes); });
}

Field seq_len() {
  Field field =
      base({"seq-len", "N", "tokens of a sequence (default: 8192, or the model's positions where it learns them)"},
           Kind::kInteger);
  field.set = [](Job& job, std::string_view text) { job.seq_len = parse_whole("--seq-len", text, 1); };
  return maybe<std::int64_t>(std::move(field), &Job::seq_len, [](const std::int64_t& n) { return std::to_string(n); });
}

Field clip_grad_norm() {
  Field field =
      base({"clip-grad-norm", "NORM|none", "clip gradients to this norm, or none: do not (default: 1)"}, Kind::kReal);
  field.set = [](Job& job, std::string_view text) {
    if (lower(text) == "none") {
      job.clip_grad_norm.reset();
    } else {
      job.clip_grad_norm = parse_positive("--clip-grad-norm (or none)", text);
    }
  };
  field = maybe<double>(std::move(field), &Job::clip_grad_norm, [](const double& norm) { return text_of(norm); });
  // Absence has a word of its own here, as it is not the default.
  field.get = [](const Job& job) { return job.clip_grad_norm ? text_of(*job.clip_grad_norm) : "none"; };
  return field;
}

Field alloc_conf() {
  Field field = base(
      {"alloc-conf", "TEXT", "PYTORCH_ALLOC_CONF, as in expandable_segments:True (default: torch's own)"}, Kind::kWord);
  field.set = [](Job& job, std::string_view text) { job.alloc_conf = text; };
  return maybe<std::string>(std::move(field), &Job::alloc_conf, [](const std::string& conf) { return conf; });
}

std::vector<Field> all_fields() {
  return {
      text({"gpu", "NAME|FILE", "the card: a name of `plimsoll gpus`, or a profile (.json) (default: H100-80GB)"},
           &Job::gpu),
      gpu_memory(),
      count({"gpus", "N", "GPUs of the job, one rank each (default: 8)"}, &Job::gpus),
      count({"replicas", "R", "HSDP: so many replicas, each sharded over gpus / R (default: 1, which is FSDP)"},
            &Job::replicas),
      count({"rank", "N", "the rank that is planned (default: 0)"}, &Job::rank, 0),
      count({"batch", "N", "sequences for each GPU and forward (default: 1)"}, &Job::batch),
      seq_len(),
      count({"steps", "N", "steps to run; memory settles after the first (default: 2)"}, &Job::steps),
      count({"grad-accum", "N", "forwards and backwards for each step (default: 1)"}, &Job::grad_accum),
      flag({"accum-no-sync", "true|false", "reduce gradients in the last backward of a step only (default: false)"},
           &Job::accum_no_sync),
      choice<Dtype>({"param-dtype", "bf16|fp16|fp32", "what blocks compute in (default: bf16)"}, &Job::param_dtype,
                    parse_dtype),
      choice<Dtype>({"reduce-dtype", "bf16|fp16|fp32", "what gradients are reduced in (default: fp32)"},
                    &Job::reduce_dtype, parse_dtype),
      choice<Dtype>(
          {"master-dtype", "bf16|fp16|fp32", "what the optimizer sees: sharded parameters and states (default: fp32)"},
          &Job::master_dtype, parse_dtype),
      choice<Reshard>({"reshard-after-forward", "auto|always|never|K",
                       "free parameters after forward; auto: all but the root's, K: keep them sharded over K ranks "
                       "(default: auto)"},
                      &Job::reshard_after_forward, parse_reshard),
      flag({"keep-last-block", "true|false",
            "do not free the last block after forward: backward needs it first (default: true)"},
           &Job::keep_last_block),
      choice<Wrap>({"wrap", "blocks|blocks:K|root",
                    "what is gathered together: each block, K of them, or all (default: blocks)"},
                   &Job::wrap, parse_wrap),
      choice<Checkpoint>({"checkpoint", "none|full|selective|every:K|RANGES",
                          "activation checkpointing; ranges as in full@0-15+selective@16-23 (default: none)"},
                         &Job::checkpoint, parse_checkpoint),
      choice<OptimizerKind>({"optimizer", "adamw|adam|sgd", "the optimizer (default: adamw)"}, &Job::optimizer,
                            parse_optimizer),
      choice<OptimizerImpl>({"optimizer-impl", "foreach|fused|forloop", "how it steps (default: foreach)"},
                            &Job::optimizer_impl, parse_optimizer_impl),
      choice<Offload>(
          {"offload", "params|none", "keep sharded parameters, gradients and states on the CPU (default: none)"},
          &Job::offload, parse_offload),
      clip_grad_norm(),
      flag({"loss-fp32", "true|false", "cast logits to fp32 for the loss (default: true)"}, &Job::loss_fp32),
      flag({"keep-logits", "true|false", "the loop holds logits until the next ones are there (default: false)"},
           &Job::keep_logits),
      choice<Norm>({"norm", "composite|fused", "norms as several operations or as one (default: composite)"},
                   &Job::norm, parse_norm),
      alloc_conf(),
  };
}

std::string with_dashes(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

/// What was found where another type was expected.
std::string shown(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return text_of(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return "the text " + in_quotes(*text);
  return "null";
}

}  // namespace

std::string Field::key() const {
  std::string result = name;
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

std::span<const Field> fields() {
  static const std::vector<Field> kFields = all_fields();
  return kFields;
}

const Field& model_field() {
  static const Field kModel = [] {
    Field field = text({"model", "NAME|FILE", "a model's name, or the path of its config.json"}, &Job::model);
    field.set = [](Job& job, std::string_view value) {
      if (value.empty()) throw InvalidArgument("model expects a name or the path of a config.json, found nothing");
      job.model = value;
    };
    return field;
  }();
  return kModel;
}

const Field& find_field(std::string_view name) {
  const std::string wanted = with_dashes(name);
  if (wanted == "model") return model_field();
  std::vector<std::string> names = {"model"};
  for (const Field& field : fields()) {
    if (field.name == wanted) return field;
    names.push_back(field.name);
  }
  const std::string meant = did_you_mean(wanted, names);
  throw InvalidArgument(in_quotes(name) + " is no field of a job" +
                        (meant.empty() ? ": there are " + listed(names) : ": " + meant));
}

void set_value(Job& job, const Field& field, const Value& value) {
  const std::string what = "'" + field.key() + "'";
  const auto refuse = [&](const std::string& expected) {
    throw InvalidArgument(what + " must be " + expected + ", found " + shown(value));
  };
  if (std::holds_alternative<std::nullptr_t>(value)) {
    if (!field.optional) refuse(field.form + ": it cannot be absent");
    return field.clear(job);
  }
  const auto* flag = std::get_if<bool>(&value);
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto* word = std::get_if<std::string>(&value);
  switch (field.kind) {
    case Kind::kFlag:
      if (!flag) refuse("true or false, without quotes");
      break;
    case Kind::kInteger:
      if (!whole) refuse("a whole number, without quotes");
      break;
    case Kind::kReal:
      if (!whole && !real && !(word && lower(*word) == "none")) refuse("a number, or \"none\"");
      break;
    case Kind::kBytes:
      if (!whole && !word) refuse("an amount of memory, as in \"80GiB\"");
      break;
    case Kind::kWord:  // A number too: ranks to reshard over.
      if (!whole && !word) refuse("a text in quotes (" + field.form + ")");
      break;
  }
  field.set(job, flag ? (*flag ? "true" : "false") : whole ? std::to_string(*whole) : real ? text_of(*real) : *word);
}

}  // namespace plimsoll::job
