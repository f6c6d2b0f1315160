#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::architecture {

/// The presets' configs with bytes changed, added, taken away and repeated; the same for the same seed.
class FuzzedConfigs {
 public:
  explicit FuzzedConfigs(std::uint32_t seed) : random_(seed) {}

  std::string next() {
    std::string text(presets()[any(presets().size())].config);
    for (std::size_t changes = 1 + any(4); changes > 0 && !text.empty(); --changes) change(text);
    return text;
  }

 private:
  std::size_t any(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }

  void change(std::string& text) {
    constexpr std::string_view kBytes = "{}[]\",:0123456789.eE+-tfn\\u\x01\xc3\xa9 \n";
    const auto at = any(text.size());
    const char byte = kBytes[any(kBytes.size())];
    switch (any(4)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.erase(at, 1 + any(8));
        break;
      default:
        text.insert(at, text.substr(any(text.size()), any(16)));
    }
  }

  std::mt19937 random_;
};

}  // namespace plimsoll::architecture
