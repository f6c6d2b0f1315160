#include "plimsoll/pretend/model/profile.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"

namespace plimsoll::pretend {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

enum class Zero { kAllowed, kRefused };

/// Reads the fields of one JSON object by name, records which were read, and names the field in every message. A field
/// is a plain value or {"value": …, "source": "…"}.
class Fields {
 public:
  Fields(const Json& object, std::string origin, std::string prefix)
      : object_(object), origin_(std::move(origin)), prefix_(std::move(prefix)) {
    if (!object_.is_object()) {
      const std::string what = prefix_.empty() ? "a profile" : "field '" + prefix_.substr(0, prefix_.size() - 1) + "'";
      throw FormatError(origin_ + ": " + what + " must be a JSON object, found " + object_.type_name());
    }
  }

  const Json& object(const std::string& name) { return member(name); }

  void read(const std::string& name, std::string& text) {
    const Json& value = plain(name);
    if (!value.is_string()) wrong_type(name, "a string", value);
    if (value.get_ref<const std::string&>().empty()) fail(name, "must not be empty");
    text = value.get<std::string>();
  }

  std::uint64_t whole(const std::string& name, Zero zero, std::uint64_t maximum) {
    const Json& value = plain(name);
    if (!value.is_number()) wrong_type(name, "a number", value);
    refuse_sign(name, value, zero);
    if (!value.is_number_integer()) wrong_type(name, "a whole number", value);
    const std::uint64_t number = value.get<std::uint64_t>();
    if (number > maximum) fail(name, "must be at most " + std::to_string(maximum) + ", found " + value.dump());
    return number;
  }

  void read(const std::string& name, Bytes& bytes, Zero zero = Zero::kRefused) {
    bytes = whole(name, zero, Bytes{1} << 48);
  }

  void read(const std::string& name, int& number, Zero zero = Zero::kRefused) {
    number = static_cast<int>(whole(name, zero, std::numeric_limits<int>::max()));
  }

  void read(const std::string& name, double& rate) {
    const Json& value = plain(name);
    if (!value.is_number()) wrong_type(name, "a number", value);
    refuse_sign(name, value, Zero::kRefused);
    rate = value.get<double>();
  }

  /// Does nothing if the field is missing.
  void read(const std::string& name, bool& truth) {
    if (!object_.contains(name)) return;
    const Json& value = plain(name);
    if (!value.is_boolean()) wrong_type(name, "true or false", value);
    truth = value.get<bool>();
  }

  /// Throws if the object has a field that was never read: a misspelt name must not pass silently.
  void refuse_others() const {
    for (const auto& [name, value] : object_.items()) {
      if (name != "comment" && !read_.contains(name)) fail(name, "is not a field of a profile");
    }
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw FormatError(origin_ + ": field '" + prefix_ + name + "' " + what);
  }

 private:
  const Json& member(const std::string& name) {
    read_.insert(name);
    const auto found = object_.find(name);
    if (found == object_.end()) fail(name, "is missing");
    return *found;
  }

  const Json& plain(const std::string& name) {
    const Json& value = member(name);
    if (!value.is_object()) return value;
    const auto inner = value.find("value");
    if (inner == value.end()) fail(name, "is an object without \"value\"");
    return *inner;
  }

  void refuse_sign(const std::string& name, const Json& value, Zero zero) const {
    const double number = value.get<double>();
    if (number < 0) fail(name, "must not be negative, found " + value.dump());
    if (number == 0 && zero == Zero::kRefused) fail(name, "must be above zero");
    if (!std::isfinite(number)) fail(name, "must be finite");
  }

  [[noreturn]] void wrong_type(const std::string& name, const std::string& expected, const Json& value) const {
    fail(name, "must be " + expected + ", found " + value.dump());
  }

  const Json& object_;
  std::string origin_;
  std::string prefix_;
  std::set<std::string> read_;
};

/// The fields of a profile in JSON, for reading and writing. Zero::kAllowed marks those that may be zero.
template <class AnyProfile, class Field>
  requires std::same_as<std::remove_const_t<AnyProfile>, Profile>
void each_field(AnyProfile& profile, Field field) {
  field("name", profile.name);
  field("device_name", profile.device_name);
  field("memory_bytes", profile.memory);
  field("compute_major", profile.compute_major);
  field("compute_minor", profile.compute_minor, Zero::kAllowed);
  field("multiprocessors", profile.multiprocessors);
  field("shared_per_block_bytes", profile.shared_per_block);
  field("shared_per_block_optin_bytes", profile.shared_per_block_optin);
  field("shared_per_multiprocessor_bytes", profile.shared_per_multiprocessor);
  field("registers_per_multiprocessor", profile.registers_per_multiprocessor);
  field("threads_per_multiprocessor", profile.threads_per_multiprocessor);
  field("blocks_per_multiprocessor", profile.blocks_per_multiprocessor);
  field("l2_cache_bytes", profile.l2_cache);
  field("clock_khz", profile.clock_khz);
  field("memory_clock_khz", profile.memory_clock_khz);
  field("memory_bus_bits", profile.memory_bus_bits);
  field("memory_bytes_per_second", profile.memory_bytes_per_second);
  field("link_bytes_per_second", profile.link_bytes_per_second);
  field("peer_access", profile.peer_access);
  field("context_bytes", profile.context, Zero::kAllowed);
  field("cublas_handle_bytes", profile.cublas_handle, Zero::kAllowed);
  field("cudnn_handle_bytes", profile.cudnn_handle, Zero::kAllowed);
}

template <class AnyNccl, class Field>
  requires std::same_as<std::remove_const_t<AnyNccl>, NcclBytes>
void each_field(AnyNccl& nccl, Field field) {
  field("base_bytes", nccl.base, Zero::kAllowed);
  field("per_rank_bytes", nccl.per_rank, Zero::kAllowed);
  field("max_ranks", nccl.max_ranks, Zero::kAllowed);
}

std::string join(const std::vector<std::string>& names, const std::string& separator) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : separator) + name;
  return text;
}

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".json"); }

}  // namespace

Bytes NcclBytes::of(int ranks) const {
  return base + per_rank * static_cast<Bytes>(std::max(0, std::min(ranks, max_ranks)));
}

Profile parse_profile(std::string_view json, const std::string& origin) {
  Json document;
  try {
    document = Json::parse(json);
  } catch (const Json::parse_error& error) {
    throw FormatError(origin + ": not valid JSON: " + line_and_column(json, error.byte));
  }
  Fields fields(document, origin, "");
  Profile profile;
  const auto read_from = [](Fields& source) {
    return [&source](const char* name, auto& member, auto... zero) { source.read(name, member, zero...); };
  };
  each_field(profile, read_from(fields));
  Fields nccl(fields.object("nccl"), origin, "nccl.");
  each_field(profile.nccl, read_from(nccl));
  nccl.refuse_others();
  fields.refuse_others();
  if (profile.shared_per_block > profile.shared_per_block_optin) {
    fields.fail("shared_per_block_optin_bytes", "must not be below 'shared_per_block_bytes'");
  }
  if (profile.shared_per_block_optin > profile.shared_per_multiprocessor) {
    fields.fail("shared_per_multiprocessor_bytes", "must not be below 'shared_per_block_optin_bytes'");
  }
  if (profile.context >= profile.memory) fields.fail("context_bytes", "must be below 'memory_bytes'");
  return profile;
}

Profile load_profile(const fs::path& file) {
  std::error_code ignored;
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file, ignored)) throw FormatError(file.string() + ": cannot read the profile");
  std::ostringstream text;
  text << stream.rdbuf();
  return parse_profile(text.str(), file.string());
}

std::string to_json(const Profile& profile) {
  Json json;
  const auto write_to = [](Json& target) {
    return [&target](const char* name, const auto& member, auto...) { target[name] = member; };
  };
  each_field(profile, write_to(json));
  each_field(profile.nccl, write_to(json["nccl"]));
  return json.dump(2) + "\n";
}

std::vector<std::string> profile_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Profile find_profile(const std::string& name, const fs::path& folder) {
  if (is_path(name)) {
    std::error_code ignored;
    if (!fs::exists(name, ignored)) throw InvalidArgument("no such GPU profile file: " + name);
    return load_profile(name);
  }
  const std::vector<std::string> known = profile_names(folder);
  for (const std::string& other : known) {
    if (lower(other) == lower(name)) return load_profile(folder / (other + ".json"));
  }
  if (known.empty()) throw InvalidArgument("no GPU profiles in " + folder.string());
  const std::string meant = did_you_mean(name, known, known.size());
  throw InvalidArgument("unknown GPU '" + name + "'; " + (meant.empty() ? "" : meant + " ") +
                        "known: " + join(known, ", ") + "; or give the path of your own profile (a .json file)");
}

}  // namespace plimsoll::pretend
