#include "plimsoll/plan/paths.h"

#include <algorithm>
#include <regex>

namespace plimsoll::plan {
namespace {

constexpr std::string_view kRoot = "LanguageModel";
constexpr std::string_view kWrapper = "block";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// "layers.8, layers.9, layers.10" is "layers.8-10".
std::string with_ranges(const std::string& text) {
  static const std::regex list(R"(([A-Za-z_][A-Za-z_.]*\.)([0-9]+)((?:, ?\1[0-9]+)+))");
  static const std::regex number(R"(([0-9]+)(?=,|$))");
  std::string result;
  auto rest = text.cbegin();
  for (std::sregex_iterator found(text.begin(), text.end(), list), end; found != end; ++found) {
    const std::string others = (*found)[3];
    const long first = std::stol((*found)[2]);
    long last = first;
    bool consecutive = true;
    for (std::sregex_iterator one(others.begin(), others.end(), number); one != end; ++one) {
      consecutive = consecutive && std::stol((*one)[1]) == ++last;
    }
    result.append(rest, (*found)[0].first);
    result += consecutive ? (*found)[1].str() + std::to_string(first) + "-" + std::to_string(last) : (*found)[0].str();
    rest = (*found)[0].second;
  }
  return result.append(rest, text.cend());
}

}  // namespace

bool is_in_model(std::string_view fqn) {
  return fqn.starts_with(kRoot) && (fqn.size() == kRoot.size() || fqn[kRoot.size()] == '.');
}

std::string path_of(std::string_view fqn) {
  if (fqn.starts_with(kRoot)) fqn.remove_prefix(kRoot.size());
  if (fqn.starts_with('.')) fqn.remove_prefix(1);
  std::string path;
  for (std::size_t begin = 0; begin < fqn.size();) {
    const auto dot = std::min(fqn.find('.', begin), fqn.size());
    const auto part = fqn.substr(begin, dot - begin);
    if (part != kWrapper) path += (path.empty() ? "" : ".") + std::string(part);
    begin = dot + 1;
  }
  return path;
}

std::string with_readable_paths(std::string text) {
  replace_all(text, std::string(kRoot) + ".", "");
  replace_all(text, "." + std::string(kWrapper) + ".", ".");
  replace_all(text, kRoot, "the root");
  return with_ranges(text);
}

}  // namespace plimsoll::plan
