#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::architecture {

/// The largest size of a config.
inline constexpr std::size_t kMostConfigBytes = std::size_t{4} << 20;

/// Reads a Hugging Face config.json. Fields that do not change a model's shape are ignored. Fields that change it in an
/// unsupported way (another activation, partial heads, …) are refused.
///
/// Throws FormatError for a text that is not a supported config. The message begins with `origin`, and names the field,
/// the expected and the found value.
Architecture read_config(std::string_view text, const std::string& origin);

/// Throws InvalidArgument for a file that cannot be read or is larger than kMostConfigBytes, FormatError as
/// read_config.
Architecture read_config_file(const std::filesystem::path& path);

}  // namespace plimsoll::architecture
