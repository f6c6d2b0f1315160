#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::architecture {

/// A larger file is no config.
inline constexpr std::size_t kMostConfigBytes = std::size_t{4} << 20;

/// Reads a Hugging Face config.json. Fields that do not change a model's shape are passed over; those that would change
/// it in a way that is not known here (another activation, scaled or partial heads, …) are refused.
///
/// Throws FormatError for a text that is no JSON object of a known form; the message begins with `origin`, and names
/// the field, what was expected and what was found. An unknown `model_type` is told with those that are known.
Architecture read_config(std::string_view text, const std::string& origin);

/// Throws InvalidArgument for a file that cannot be read or is larger than kMostConfigBytes, FormatError as
/// read_config.
Architecture read_config_file(const std::filesystem::path& path);

}  // namespace plimsoll::architecture
