#include "plimsoll/ledger/log_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include "plimsoll/base/errors.h"

namespace plimsoll::ledger {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "PLIMLOG\n";
constexpr std::size_t kHeader = kMagic.size() + 4 + 8 + 8;
constexpr std::size_t kChecksum = 8;

void put(std::vector<std::uint8_t>& bytes, std::uint64_t number, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

std::uint64_t number_at(std::span<const std::uint8_t> bytes, std::size_t offset, int width) {
  std::uint64_t number = 0;
  for (int i = 0; i < width; ++i) number |= static_cast<std::uint64_t>(bytes[offset + i]) << (8 * i);
  return number;
}

[[noreturn]] void cut_off(std::size_t found, const std::string& expected) {
  throw FormatError("the log is cut off: " + std::to_string(found) + " bytes of " + expected +
                    "; the file was not written completely");
}

}  // namespace

std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

std::vector<std::uint8_t> encode_log(const Log& log) {
  std::vector<std::uint8_t> bytes(kMagic.begin(), kMagic.end());
  bytes.reserve(kHeader + log.data().size() + kChecksum);
  put(bytes, kLogFileVersion, 4);
  put(bytes, log.events(), 8);
  put(bytes, log.data().size(), 8);
  bytes.insert(bytes.end(), log.data().begin(), log.data().end());
  put(bytes, checksum(bytes), 8);
  return bytes;
}

Log decode_log(std::span<const std::uint8_t> bytes) {
  const std::size_t magic = std::min(bytes.size(), kMagic.size());
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(magic), kMagic.begin())) {
    throw FormatError("this is not a log of Plimsoll's ledger: it does not begin with PLIMLOG");
  }
  if (bytes.size() < kMagic.size() + 4) cut_off(bytes.size(), "at least " + std::to_string(kHeader + kChecksum));
  // Check the version first: a newer version may have another format from here on.
  const std::uint64_t version = number_at(bytes, kMagic.size(), 4);
  if (version > kLogFileVersion) {
    throw FormatError("the log has version " + std::to_string(version) +
                      " of the format, but this program reads up to " + std::to_string(kLogFileVersion) +
                      "; use a newer program");
  }
  if (version == 0) throw FormatError("the log has version 0 of the format, which does not exist");
  if (bytes.size() < kHeader + kChecksum) cut_off(bytes.size(), "at least " + std::to_string(kHeader + kChecksum));
  const std::uint64_t events = number_at(bytes, kMagic.size() + 4, 8);
  const std::uint64_t length = number_at(bytes, kMagic.size() + 12, 8);
  const std::uint64_t present = bytes.size() - kHeader - kChecksum;
  if (present < length) cut_off(present, std::to_string(length) + " of events");
  if (present > length) {
    throw FormatError("the log is followed by " + std::to_string(present - length) + " bytes that are not part of it");
  }
  const std::span<const std::uint8_t> checked = bytes.first(bytes.size() - kChecksum);
  if (checksum(checked) != number_at(bytes, checked.size(), 8)) {
    throw FormatError("the log is damaged: the checksum does not match");
  }
  const std::span<const std::uint8_t> data = checked.subspan(kHeader);
  Log log(std::vector<std::uint8_t>(data.begin(), data.end()));
  if (log.events() != events) {
    throw FormatError("the header says that the log has " + std::to_string(events) + " events, but it has " +
                      std::to_string(log.events()));
  }
  return log;
}

void write_log(const Log& log, const fs::path& file) {
  const std::vector<std::uint8_t> bytes = encode_log(log);
  const fs::path part =
      file.parent_path() / ("." + file.filename().string() + "." + std::to_string(getpid()) + ".part");
  const auto fail = [&](int error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw SystemError("cannot write the log " + file.string(), error);
  };
  errno = 0;
  std::ofstream stream(part, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) fail(errno);
  std::error_code error;
  fs::rename(part, file, error);
  if (error) fail(error.value());
}

Log read_log(const fs::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::vector<std::uint8_t> bytes;
  char chunk[1 << 16];
  while (stream.read(chunk, sizeof(chunk)) || stream.gcount() > 0) {
    bytes.insert(bytes.end(), chunk, chunk + stream.gcount());
  }
  if (!stream.is_open() || stream.bad()) throw SystemError("cannot read the log " + file.string());
  try {
    return decode_log(bytes);
  } catch (const FormatError& error) {
    throw FormatError(file.string() + ": " + error.what());
  }
}

}  // namespace plimsoll::ledger
