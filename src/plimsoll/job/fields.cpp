#include "plimsoll/job/fields.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/check.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

using Kind = Field::Kind;

/// The texts of a row.
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

/// A field that is never absent.
template <class T, class Parse, class Write>
Field always(Label label, Kind kind, T Job::* member, Parse parse, Write write) {
  Field field = base(std::move(label), kind);
  field.set = [=, flag = field.flag()](Job& job, std::string_view text) { job.*member = parse(flag, text); };
  field.get = [=](const Job& job) { return write(job.*member); };
  field.value = [=](const Job& job) -> Value {
    if constexpr (std::is_same_v<T, Reshard>) {
      if ((job.*member).kind == Reshard::Kind::kToMesh) return (job.*member).ranks;
    }
    if constexpr (std::is_convertible_v<T, Value>) {
      return job.*member;
    } else {
      return write(job.*member);
    }
  };
  return field;
}

Field count(Label label, std::int64_t Job::* member, std::int64_t least = 1, std::int64_t most = kMostOfAnything) {
  const auto parse = [=](const std::string& flag, std::string_view text) {
    return parse_whole(flag, text, least, most);
  };
  return always(std::move(label), Kind::kInteger, member, parse, [](std::int64_t n) { return std::to_string(n); });
}

Field flag(Label label, bool Job::* member) {
  return always(std::move(label), Kind::kFlag, member, parse_boolean, [](bool on) { return on ? "true" : "false"; });
}

/// A field with a grammar of its own.
template <class T>
Field spelled(Label label, T Job::* member, T (*parse)(const std::string&, std::string_view)) {
  return always(std::move(label), Kind::kWord, member, parse, [](const T& value) { return text_of(value); });
}

/// A field with one word for each enumerator. `words` has the enumerators in their order, then perhaps other spellings
/// of the last of them, in the same order.
template <class Enum>
Field word(Label label, Enum Job::* member, std::size_t enumerators, std::vector<std::string> words,
           const std::string& expected = "") {
  const auto parse = [=](const std::string& flag, std::string_view text) {
    const std::size_t index = parse_word(flag, text, words, expected);
    return static_cast<Enum>(index < enumerators ? index : index - (words.size() - enumerators));
  };
  return always(std::move(label), Kind::kWord, member, parse,
                [=](Enum value) { return words.at(static_cast<std::size_t>(value)); });
}

Field dtype(Label label, Dtype Job::* member) {
  return word(std::move(label), member, 3, {"fp32", "bf16", "fp16", "float32", "bfloat16", "float16"},
              "bf16, fp16 or fp32");
}

Field text(Label label, std::string Job::* member) {
  const auto parse = [](const std::string& flag, std::string_view value) {
    if (value.empty()) throw InvalidArgument(flag + " expects a name or the path of a file, found nothing");
    return std::string(value);
  };
  return always(std::move(label), Kind::kWord, member, parse, [](const std::string& value) { return value; });
}

/// Completes a field that may be absent: `field` has its `set`, and `write` makes text of its value.
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
  Field field = base({"gpu-memory", "80GiB", "memory of the GPU (default: the profile's)"}, Kind::kBytes);
  field.set = [](Job& job, std::string_view text) { job.gpu_memory = parse_memory("--gpu-memory", text); };
  return maybe<Bytes>(std::move(field), &Job::gpu_memory, [](const Bytes& bytes) { return text_of_memory(bytes); });
}

Field seq_len() {
  Field field =
      base({"seq-len", "N", "tokens in a sequence (default: 8192, or the model's limit if it learns fewer positions)"},
           Kind::kInteger);
  field.set = [](Job& job, std::string_view text) { job.seq_len = parse_whole("--seq-len", text, 1); };
  return maybe<std::int64_t>(std::move(field), &Job::seq_len, [](const std::int64_t& n) { return std::to_string(n); });
}

Field clip_grad_norm() {
  Field field =
      base({"clip-grad-norm", "NORM|none", "clip gradients to this norm; none: do not clip (default: 1)"}, Kind::kReal);
  field.set = [](Job& job, std::string_view text) {
    if (lower(text) == "none") {
      job.clip_grad_norm.reset();
    } else {
      job.clip_grad_norm = parse_positive("--clip-grad-norm", text, "a number above 0, or none");
    }
  };
  field = maybe<double>(std::move(field), &Job::clip_grad_norm, [](const double& norm) { return text_of(norm); });
  // The default is a norm, so absence needs a word.
  field.get = [](const Job& job) { return job.clip_grad_norm ? text_of(*job.clip_grad_norm) : "none"; };
  return field;
}

Field alloc_conf() {
  Field field = base({"alloc-conf", "TEXT", "PYTORCH_ALLOC_CONF, such as expandable_segments:True (default: torch's)"},
                     Kind::kWord);
  field.set = [](Job& job, std::string_view text) { job.alloc_conf = text; };
  return maybe<std::string>(std::move(field), &Job::alloc_conf, [](const std::string& conf) { return conf; });
}

/// --gpu and --gpus are one letter apart, so each names the other if the value is of the other's kind.
Field gpu() {
  Field field = text(
      {"gpu", "NAME|FILE", "the GPU: a name that `plimsoll gpus` lists, or the path of a profile (default: H100-80GB)"},
      &Job::gpu);
  field.set = [set = field.set](Job& job, std::string_view value) {
    if (!value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos) {
      throw InvalidArgument("--gpu expects the name of a GPU, found " + in_quotes(value) +
                            ": for the number of GPUs give --gpus " + std::string(value));
    }
    set(job, value);
  };
  return field;
}

Field gpus() {
  Field field = count({"gpus", "N", "number of GPUs, with one rank each (default: 8)"}, &Job::gpus, 1, kMostGpus);
  field.set = [set = field.set](Job& job, std::string_view value) {
    const bool has_digit = value.find_first_of("0123456789") != std::string_view::npos;
    if (has_digit && ((value[0] >= 'A' && value[0] <= 'Z') || (value[0] >= 'a' && value[0] <= 'z'))) {
      throw InvalidArgument("--gpus expects a number of GPUs, found " + in_quotes(value) +
                            ": for the name of the GPU give --gpu " + std::string(value));
    }
    set(job, value);
  };
  return field;
}

std::vector<Field> all_fields() {
  return {
      gpu(),
      gpu_memory(),
      gpus(),
      count({"replicas", "R", "HSDP: the number of replicas; each is sharded over gpus / R GPUs (default: 1, no HSDP)"},
            &Job::replicas),
      count({"rank", "N", "the rank to plan (default: 0)"}, &Job::rank, 0),
      count({"batch", "N", "sequences of one GPU in one forward pass (default: 1)"}, &Job::batch),
      seq_len(),
      count({"steps", "N", "training steps to run; memory is stable after the first (default: 2)"}, &Job::steps),
      count({"grad-accum", "N", "forward and backward passes in one step (default: 1)"}, &Job::grad_accum),
      flag(
          {"accum-no-sync", "true|false", "reduce gradients only in the last backward pass of a step (default: false)"},
          &Job::accum_no_sync),
      dtype({"param-dtype", "bf16|fp16|fp32", "compute dtype (default: bf16)"}, &Job::param_dtype),
      dtype({"reduce-dtype", "bf16|fp16|fp32", "dtype of the gradient reduction (default: fp32)"}, &Job::reduce_dtype),
      dtype({"master-dtype", "bf16|fp16|fp32", "dtype of the sharded parameters and optimizer states (default: fp32)"},
            &Job::master_dtype),
      spelled({"reshard-after-forward", "auto|always|never|K",
               "free the gathered parameters after forward; auto: all but the root's; K: keep them sharded over "
               "K ranks (default: auto)"},
              &Job::reshard_after_forward, parse_reshard),
      flag({"keep-last-block", "true|false",
            "keep the last block gathered after forward, because backward needs it first (default: true)"},
           &Job::keep_last_block),
      spelled({"wrap", "blocks|blocks:K|root",
               "FSDP units: one per block, one per K blocks, or the whole model (default: blocks)"},
              &Job::wrap, parse_wrap),
      spelled({"checkpoint", "none|full|selective|every:K|RANGES",
               "activation checkpointing; every:K: every Kth block (selective:every:K too); ranges of blocks: "
               "full@0-15+selective@16-23 (default: none)"},
              &Job::checkpoint, parse_checkpoint),
      word({"optimizer", "adamw|adam|sgd", "the optimizer (default: adamw)"}, &Job::optimizer, 3,
           {"adamw", "adam", "sgd"}),
      word({"optimizer-impl", "foreach|fused|forloop", "torch's implementation (default: foreach)"},
           &Job::optimizer_impl, 3, {"foreach", "fused", "forloop", "for-loop"}, "foreach, fused or forloop"),
      word({"offload", "params|none",
            "params: keep sharded parameters, gradients and states on the CPU (default: none)"},
           &Job::offload, 2, {"none", "params"}),
      clip_grad_norm(),
      flag({"loss-fp32", "true|false", "cast the logits to fp32 for the loss (default: true)"}, &Job::loss_fp32),
      flag({"keep-logits", "true|false", "keep the logits until the next forward pass ends (default: false)"},
           &Job::keep_logits),
      word({"norm", "composite|fused", "compute norms in several operations or in one (default: composite)"},
           &Job::norm, 2, {"composite", "fused"}),
      alloc_conf(),
  };
}

std::string with_dashes(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

/// A value of the wrong type, for a message.
std::string described(const Value& value) {
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
  throw InvalidArgument("a job has no field " + in_quotes(name) + ": " +
                        (meant.empty() ? "its fields are " + listed(names, " and ") : meant));
}

void set_value(Job& job, const Field& field, const Value& value) {
  const std::string what = "'" + field.key() + "'";
  const auto refuse = [&](const std::string& expected) {
    throw InvalidArgument(what + " must be " + expected + ", found " + described(value));
  };
  if (std::holds_alternative<std::nullptr_t>(value)) {
    if (!field.optional) refuse(field.form);
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
    case Kind::kWord:  // Or a number: the ranks of --reshard-after-forward.
      if (!whole && !word) refuse("a text in quotes (" + field.form + ")");
      break;
  }
  field.set(job, flag ? (*flag ? "true" : "false") : whole ? std::to_string(*whole) : real ? text_of(*real) : *word);
}

}  // namespace plimsoll::job
