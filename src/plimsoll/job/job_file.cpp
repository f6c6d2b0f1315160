#include "plimsoll/job/job_file.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/toml.h"
#include "plimsoll/job/torchtitan/torchtitan.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

namespace fs = std::filesystem;

/// A path in the file is relative to the file's folder. Names of presets and profiles stay.
std::string beside(const fs::path& folder, const std::string& text) {
  if (text.empty() || fs::path(text).is_absolute()) return text;
  std::error_code error;
  const fs::path there = folder / text;
  return is_path(text) || (!is_model_name(text) && !folder.empty() && fs::exists(there, error)) ? there.string() : text;
}

void read_own_form(const toml::Value& root, const fs::path& path, Job& job) {
  for (const auto& [key, value] : root.table) {
    at_line(path.string(), *value, [&] {
      const Field& field = find_field(key);
      Value plain = plain_value(key, *value);
      auto* text = std::get_if<std::string>(&plain);
      if (text != nullptr && (field.name == "model" || field.name == "gpu")) *text = beside(path.parent_path(), *text);
      set_value(job, field, plain);
    });
  }
}

/// A field may appear with dashes and with underscores; one of the two values would be lost.
void refuse_both_spellings(const toml::Value& root, const fs::path& path) {
  for (const auto& [key, value] : root.table) {
    std::string other = key;
    for (char& c : other) c = c == '-' ? '_' : c;
    if (const auto* twin = root.find(other); twin != nullptr && other != key) {
      throw FormatError(fmt::format("{}:{}: '{}' appears twice: as '{}' in line {}", path.string(), value->line, key,
                                    other, twin->line));
    }
  }
}

using Json = nlohmann::ordered_json;

Json json_of(const Value& value) {
  return std::visit([](const auto& plain) { return Json(plain); }, value);
}

Value value_of(const std::string& key, const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return nullptr;
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw InvalidArgument("'" + key + "' is beyond 64 bits: " + json.dump());
      }
      return json.get<std::int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    default:
      return json.get<std::string>();
  }
}

/// Refuses nested values and repeated names during parsing.
class Shape {
 public:
  explicit Shape(const std::string& origin) : origin_(origin) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth > 0) throw FormatError(origin_ + ": the values of a job are plain, found an object or a list");
    if (event == Json::parse_event_t::key && !keys_.insert(parsed.get<std::string>()).second) {
      throw FormatError(origin_ + ": " + in_quotes(parsed.get<std::string>()) + " appears twice");
    }
    return true;
  }

 private:
  const std::string& origin_;
  std::set<std::string> keys_;
};

Json parse(std::string_view text, const std::string& origin) {
  try {
    return Json::parse(text, Shape(origin));
  } catch (const Json::parse_error& error) {
    throw FormatError(origin + ": not valid JSON: " + line_and_column(text, error.byte));
  } catch (const Json::out_of_range&) {
    throw FormatError(origin + ": not valid JSON: a number is out of range");
  }
}

}  // namespace

JobFile read_job_file(const fs::path& path, Job& job, std::span<const Setting> flags) {
  const toml::Value root = toml::parse_file(path);
  if (is_torchtitan(root)) return read_torchtitan(root, path.string(), job, flags);
  refuse_both_spellings(root, path);
  read_own_form(root, path, job);
  for (const Setting& flag : flags) find_field(flag.name).set(job, flag.text);
  return {};
}

std::string to_json(const Job& job) {
  Json json;
  json[model_field().key()] = json_of(model_field().value(job));
  for (const Field& field : fields()) json[field.key()] = json_of(field.value(job));
  try {
    return json.dump(2) + "\n";
  } catch (const Json::type_error&) {  // The planner would look for a file of another name.
    throw InvalidArgument("a setting of the job is not UTF-8: rename the file that it names. The model is " +
                          in_quotes(job.model));
  }
}

Job job_from_json(std::string_view text, const std::string& origin) {
  const Json json = parse(text, origin);
  if (!json.is_object())
    throw FormatError(origin + ": expected a JSON object with the fields of a job, found " + json.type_name());
  if (!json.contains("model"))
    throw FormatError(origin + ": 'model' is missing: expected a name or the path of a config.json");
  Job job;
  for (const auto& [key, value] : json.items()) {
    try {
      set_value(job, find_field(key), value_of(key, value));
    } catch (const InvalidArgument& error) {
      throw FormatError(origin + ": " + error.what());
    }
  }
  return job;
}

}  // namespace plimsoll::job
