#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// The form of state files: their names (Hugging Face's, and names by rank), and the notes on shards in their metadata.
namespace plimsoll::fsdp {

std::string whole_file_name(const std::string& stem);                   ///< "model.safetensors"
std::string index_file_name(const std::string& stem);                   ///< "model.safetensors.index.json"
std::string part_file_name(const std::string& stem, int part, int of);  ///< "model-00001-of-00003.safetensors", from 1
std::string rank_file_name(const std::string& stem, int rank, int of);  ///< "model-rank-00000-of-00008.safetensors"

/// The files of one stem in a folder.
struct CheckpointFiles {
  std::optional<std::filesystem::path> index;
  std::optional<std::filesystem::path> whole;
  std::vector<std::filesystem::path> parts;
  std::vector<std::filesystem::path> of_ranks;  ///< By rank.
  std::set<std::string> worlds;                 ///< The world sizes in their names: "00008".
};
CheckpointFiles find_checkpoint_files(const std::filesystem::path& folder, const std::string& stem);

/// The files that an index names, each once. Throws FormatError if it is not an index, InvalidArgument if it cannot be
/// read.
std::set<std::string> files_of_index(const std::filesystem::path& index);

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
