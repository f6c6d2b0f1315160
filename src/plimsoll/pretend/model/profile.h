#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// Device memory that one NCCL communicator of `ranks` ranks takes: `base + per_rank × min(ranks, max_ranks)`.
struct NcclBytes {
  Bytes base = 0;
  Bytes per_rank = 0;
  int max_ranks = 0;

  Bytes of(int ranks) const;
};

/// What a GPU is, as far as memory and torch's decisions depend on it. Data: read from a JSON file, one a card
/// (`plimsoll/pretend/profiles`, or the user's own), in which every number has its source beside it.
struct Profile {
  std::string name;         ///< as the user types it: "H100-80GB"
  std::string device_name;  ///< as the driver reports it: "NVIDIA H100 80GB HBM3"
  Bytes memory = 0;         ///< what cudaMemGetInfo calls total
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
  double memory_bytes_per_second = 0;  ///< peak bandwidth of the data sheet
  double link_bytes_per_second = 0;    ///< NVLink (or PCIe) per GPU, both directions, of the data sheet
  bool peer_access = true;             ///< cards of one machine can reach each other's memory; may be left out
  Bytes context = 0;                   ///< what a process's context takes before its first allocation
  Bytes cublas_handle = 0;             ///< device memory of one cuBLAS handle, without torch's workspaces
  Bytes cudnn_handle = 0;
  NcclBytes nccl;
};

/// Reads a profile from JSON text. `origin` names the text in messages.
/// Throws FormatError that names the field when one is missing, of the wrong type, negative, or zero where it may not.
Profile parse_profile(std::string_view json, const std::string& origin);

/// Reads a profile from a file. Throws FormatError as parse_profile does, and where the file cannot be read.
Profile load_profile(const std::filesystem::path& file);

/// The profile as the JSON text that parse_profile reads (without the sources).
std::string to_json(const Profile& profile);

/// The names of the profiles in `folder`, sorted.
std::vector<std::string> profile_names(const std::filesystem::path& folder);

/// The profile called `name` (case does not matter) in `folder`, or the one in the file `name` when that is a path.
/// Throws InvalidArgument that suggests the nearest names when there is none.
Profile find_profile(const std::string& name, const std::filesystem::path& folder);

}  // namespace plimsoll::pretend
