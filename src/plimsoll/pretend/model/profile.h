#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// Device memory of one NCCL communicator of `ranks` ranks: `base + per_rank × min(ranks, max_ranks)`.
struct NcclBytes {
  Bytes base = 0;
  Bytes per_rank = 0;
  int max_ranks = 0;

  Bytes of(int ranks) const;
};

/// A GPU, as far as memory and torch's decisions depend on it. Profiles are JSON files, one for each card
/// (`plimsoll/pretend/profiles`, or the user's own), with a source for every number.
struct Profile {
  std::string name;         ///< The name that users type: "H100-80GB".
  std::string device_name;  ///< The driver's name: "NVIDIA H100 80GB HBM3".
  Bytes memory = 0;         ///< The total of cudaMemGetInfo.
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  Bytes shared_per_block = 0;
  Bytes shared_per_block_optin = 0;
  Bytes shared_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  Bytes l2_cache = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  double memory_bytes_per_second = 0;  ///< Peak bandwidth of the data sheet.
  double link_bytes_per_second = 0;    ///< NVLink (or PCIe) per GPU, both directions, of the data sheet.
  bool peer_access = true;             ///< Whether the cards of a machine can access each other's memory. Optional.
  Bytes context = 0;                   ///< Bytes of a process's context before its first allocation.
  Bytes cublas_handle = 0;             ///< Device memory of one cuBLAS handle, without torch's workspaces.
  Bytes cudnn_handle = 0;
  NcclBytes nccl;
};

/// Reads a profile from JSON text. `origin` names the text in messages. Throws FormatError with the field's name if a
/// field is missing, has the wrong type, is negative, or is zero but must not be.
Profile parse_profile(std::string_view json, const std::string& origin);

/// Reads a profile from a file. Throws FormatError as parse_profile, or if the file cannot be read.
Profile load_profile(const std::filesystem::path& file);

/// The profile as the JSON text that parse_profile reads (without the sources).
std::string to_json(const Profile& profile);

/// The names of the profiles in `folder`, sorted.
std::vector<std::string> profile_names(const std::filesystem::path& folder);

/// The profile `name` (in any case) in `folder`; or the profile in the file `name`, if that is a path. Throws
/// InvalidArgument with the nearest names if it does not exist.
Profile find_profile(const std::string& name, const std::filesystem::path& folder);

}  // namespace plimsoll::pretend
