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

/// A field's value where types are kept, as in JSON and TOML; nullptr: absent.
using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;

/// A field of a Job as people write it. The command line, job files, documents and sweeps all go through these.
struct Field {
  enum class Kind : std::uint8_t {
    kFlag,     ///< true or false; as a flag without a value: true
    kInteger,  ///< a whole number
    kReal,     ///< a number, or "none"
    kBytes,    ///< an amount of memory: "80GiB", or a number of bytes
    kWord,     ///< text
  };

  std::string name;  ///< Its flag without the dashes in front: "grad-accum".
  std::string form;  ///< What a value looks like: "N", "NAME|FILE", "bf16|fp16|fp32".
  std::string help;  ///< One line, with the default.
  Kind kind = Kind::kWord;
  bool optional = false;  ///< Whether it may be absent.

  /// Throws InvalidArgument that names the flag, the text, what is allowed and what was probably meant; the job is then
  /// as it was.
  std::function<void(Job&, std::string_view text)> set;
  /// Text that `set` reads back as the same value; empty where it is absent.
  std::function<std::optional<std::string>(const Job&)> get;
  std::function<Value(const Job&)> value;
  /// Makes it absent. REQUIRES: optional.
  std::function<void(Job&)> clear;

  std::string flag() const { return "--" + name; }
  std::string key() const;  ///< In documents: "grad_accum".
};

/// All but the model, in the order of the help.
std::span<const Field> fields();
/// "model", which is no flag.
const Field& model_field();

/// By name, with dashes or underscores; the model too. Throws InvalidArgument that suggests the nearest names.
const Field& find_field(std::string_view name);

/// Sets a field from a typed value: a whole number for a count, true or false for a flag, and so on.
/// Throws InvalidArgument as Field::set does, and where the value is of another type.
void set_value(Job& job, const Field& field, const Value& value);

}  // namespace plimsoll::job
