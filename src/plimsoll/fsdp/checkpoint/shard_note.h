#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::fsdp {

/// The position of a shard in its whole tensor, kept in the metadata of a rank's file under "shard.NAME":
///
///     {"shape": [64, 128], "dim": 0, "start": 32}
///
/// The shard's length is its length in the file.
struct ShardNote {
  std::vector<std::int64_t> sizes;  ///< Of the whole.
  std::int64_t dim = 0;
  std::int64_t start = 0;

  bool operator==(const ShardNote&) const = default;
};

std::string shard_note_key(const std::string& tensor);
std::string encode_shard_note(const ShardNote& note);
/// Throws FormatError, with `origin` in front, unless a part of shape `part` fits there.
ShardNote decode_shard_note(const std::string& text, const std::vector<std::int64_t>& part, const std::string& origin);

}  // namespace plimsoll::fsdp
