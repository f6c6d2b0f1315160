#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// How files of state are called: as Hugging Face's tools call them, and by rank.
namespace plimsoll::fsdp {

std::string whole_file_name(const std::string& stem);                   ///< "model.safetensors"
std::string index_file_name(const std::string& stem);                   ///< "model.safetensors.index.json"
std::string part_file_name(const std::string& stem, int part, int of);  ///< "model-00001-of-00003.safetensors", from 1
std::string rank_file_name(const std::string& stem, int rank, int of);  ///< "model-rank-00000-of-00008.safetensors"

/// Those of a stem that are in a folder.
struct StateFiles {
  std::optional<std::filesystem::path> index;
  std::optional<std::filesystem::path> whole;
  std::vector<std::filesystem::path> parts;
  std::vector<std::filesystem::path> of_ranks;  ///< By rank.
  std::set<std::string> worlds;                 ///< The numbers of ranks that they name: "00008".
};
StateFiles find_state_files(const std::filesystem::path& folder, const std::string& stem);

/// The files that an index names, each once. Throws FormatError where it is none, InvalidArgument where it cannot be
/// read.
std::set<std::string> files_of_index(const std::filesystem::path& index);

}  // namespace plimsoll::fsdp
