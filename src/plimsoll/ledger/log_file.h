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
///     8         length of what follows, without the checksum
///     …         the events, and the names among them: Log::data()
///     8         checksum over all bytes before it

namespace plimsoll::ledger {

inline constexpr std::uint32_t kLogFileVersion = 1;

std::vector<std::uint8_t> encode_log(const Log& log);
/// Throws FormatError that says what is wrong: another kind of file, a newer version, cut off, damaged, more bytes than
/// there should be, events that no ledger can have written. Takes memory in proportion to `bytes`, whatever they say.
Log decode_log(std::span<const std::uint8_t> bytes);

/// Writes all of it, or leaves `file` as it was.
/// Throws InvalidArgument where that fails.
void write_log(const Log& log, const std::filesystem::path& file);
/// Throws as decode_log, with the file's name before it, and InvalidArgument where `file` cannot be read.
Log read_log(const std::filesystem::path& file);

/// FNV-1a, 64 bits: tells damage, not intent.
std::uint64_t checksum(std::span<const std::uint8_t> bytes);

}  // namespace plimsoll::ledger
