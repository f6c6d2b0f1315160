#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// Names of state files: Hugging Face's names, and names by rank.
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

}  // namespace plimsoll::fsdp
