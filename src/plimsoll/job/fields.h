#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// A value with its type, as JSON and TOML have it; nullptr: absent.
using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;

/// A field of a Job in text form. The flags of the command line, the keys of job files and documents, the axes of
/// sweeps and the keywords of Python's `plan` all come from this table: to add a flag of a job, add one row.
struct Field {
  enum class Kind : std::uint8_t {
    kFlag,     ///< True or false; a flag without a value is true.
    kInteger,  ///< A whole number.
    kReal,     ///< A number, or "none".
    kBytes,    ///< An amount of memory: "80GiB", or a number of bytes.
    kWord,     ///< Text.
  };

  std::string name;  ///< The flag without the leading dashes: "grad-accum".
  std::string form;  ///< Of a value: "N", "NAME|FILE", "bf16|fp16|fp32".
  std::string help;  ///< One line, with the default.
  Kind kind = Kind::kWord;
  bool optional = false;  ///< The field may be absent.

  /// Throws InvalidArgument with the flag, the text, the allowed values and the nearest one; the job is then unchanged.
  std::function<void(Job&, std::string_view text)> set;
  /// The text from which `set` makes the same value; nullopt if the field is absent.
  std::function<std::optional<std::string>(const Job&)> get;
  std::function<Value(const Job&)> value;
  /// Makes the field absent. REQUIRES: optional.
  std::function<void(Job&)> clear;

  std::string flag() const { return "--" + name; }
  std::string key() const;  ///< In documents: "grad_accum".
};

/// All fields except the model, in the order of the help.
std::span<const Field> fields();
/// "model", which has no flag.
const Field& model_field();

/// The field of this name, with dashes or underscores; the model too. Throws InvalidArgument with the nearest names.
const Field& find_field(std::string_view name);

/// Sets a field from a typed value: a whole number for a count, true or false for a flag, and so on.
/// Throws InvalidArgument as Field::set does, and for a value of another type.
void set_value(Job& job, const Field& field, const Value& value);

}  // namespace plimsoll::job
