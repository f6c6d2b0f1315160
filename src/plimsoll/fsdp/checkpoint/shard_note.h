#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::fsdp {

/// What a rank's file says of a tensor that it holds only a part of, in the file's metadata under "shard.NAME":
///
///     {"shape": [64, 128], "dim": 0, "start": 32}
///
/// The part's own length is its length in the file.
struct ShardNote {
  std::vector<std::int64_t> sizes;  ///< Of the whole.
  std::int64_t dim = 0;
  std::int64_t start = 0;

  bool operator==(const ShardNote&) const = default;
};

std::string shard_note_key(const std::string& tensor);
std::string encode_shard_note(const ShardNote& note);
/// Throws FormatError, beginning with `origin`, unless a part of sizes `part` can lie there.
ShardNote decode_shard_note(const std::string& text, const std::vector<std::int64_t>& part, const std::string& origin);

}  // namespace plimsoll::fsdp
