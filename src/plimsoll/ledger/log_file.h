#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "plimsoll/ledger/log.h"

/// The log as a file. Numbers are little-endian:
///
///     8 bytes   "PLIMLOG\n"
///     4         version of the format, 1
///     8         number of events
///     8         length of the events
///     …         the events, with the names: Log::data()
///     8         checksum over all bytes before it

namespace plimsoll::ledger {

inline constexpr std::uint32_t kLogFileVersion = 1;

std::vector<std::uint8_t> encode_log(const Log& log);
/// Throws FormatError with the reason: not a log, a newer version, cut off, damaged, too many bytes, events that a
/// ledger cannot write. Takes memory in proportion to the size of `bytes`, also for hostile data.
Log decode_log(std::span<const std::uint8_t> bytes);

/// Writes the whole file, or leaves `file` unchanged and throws SystemError.
void write_log(const Log& log, const std::filesystem::path& file);
/// Throws as decode_log, with the file's name in front, and SystemError if `file` cannot be read.
Log read_log(const std::filesystem::path& file);

/// FNV-1a, 64 bits: detects damage, not intent.
std::uint64_t checksum(std::span<const std::uint8_t> bytes);

}  // namespace plimsoll::ledger
