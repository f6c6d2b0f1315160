#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::scenarios {

inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

/// One training: a line of `key=value` words. tests/python/support/fsdp_cases.py has the lines.
class Case {
 public:
  explicit Case(std::string line) : line_(std::move(line)) {
    for (const std::string& word : split(line_, ' ')) {
      const auto equals = word.find('=');
      TORCH_CHECK(equals != std::string::npos, "expected key=value, found '", word, "'");
      words_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }

  const std::string& line() const { return line_; }
  bool has(const std::string& key) const { return words_.contains(key); }
  std::string text(const std::string& key, const std::string& otherwise = {}) const {
    const auto found = words_.find(key);
    return found == words_.end() ? otherwise : found->second;
  }
  int number(const std::string& key, int otherwise = 0) const {
    return has(key) ? std::stoi(words_.at(key)) : otherwise;
  }
  std::optional<at::ScalarType> dtype(const std::string& key) const {
    if (!has(key)) return std::nullopt;
    const std::map<std::string, at::ScalarType> names = {
        {"f32", at::kFloat}, {"bf16", at::kBFloat16}, {"f16", at::kHalf}, {"f64", at::kDouble}};
    return names.at(words_.at(key));
  }
  /// Whether `part` is one of the parts of a word like no_sync+last.
  bool among(const std::string& key, const std::string& part) const {
    for (const std::string& found : split(text(key), '+')) {
      if (found == part) return true;
    }
    return false;
  }

 private:
  std::string line_;
  std::map<std::string, std::string> words_;
};

}  // namespace plimsoll::scenarios
