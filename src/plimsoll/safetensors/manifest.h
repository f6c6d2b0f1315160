#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/safetensors/header.h"

/// The description of a checkpoint, in its file `manifest.json`:
///
///     {"format_version": 1, "step": 120, "files": {"model.safetensors": 4096, "rank-1/optimizer.safetensors": 512},
///      "metadata": {"key": "text"}}

namespace plimsoll::safetensors {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::uint64_t kManifestVersion = 1;

struct Manifest {
  std::uint64_t step = 0;
  std::map<std::string, Bytes> files;  ///< Path within the checkpoint, with slashes, and length; without the manifest.
  Metadata metadata;

  bool operator==(const Manifest&) const = default;
};

/// Throws InvalidArgument if a name or a text is not UTF-8.
std::string encode_manifest(const Manifest& manifest);
/// Throws FormatError with the reason.
Manifest decode_manifest(std::string_view text);

/// The manifest of a complete checkpoint in `folder`: each file exists and has its length.
/// Throws FormatError that begins with `folder` and names the file that is missing, too short or too long.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace plimsoll::safetensors
