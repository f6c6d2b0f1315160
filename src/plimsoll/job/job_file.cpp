#include "plimsoll/job/job_file.h"

#include <fmt/format.h>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/toml.h"
#include "plimsoll/job/toml_value.h"
#include "plimsoll/job/torchtitan/torchtitan.h"

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

}  // namespace

JobFile read_job_file(const fs::path& path, Job& job, std::span<const Setting> flags) {
  const toml::Value root = toml::parse_file(path);
  if (is_torchtitan(root)) return read_torchtitan(root, path.string(), job, flags);
  refuse_both_spellings(root, path);
  read_own_form(root, path, job);
  for (const Setting& flag : flags) find_field(flag.name).set(job, flag.text);
  return {};
}

}  // namespace plimsoll::job
