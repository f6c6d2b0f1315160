#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "ledger/random_events.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/ledger/ledger.h"
#include "plimsoll/ledger/log.h"
#include "plimsoll/ledger/log_file.h"

namespace test_log_file {

using namespace plimsoll;
using namespace plimsoll::ledger;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kHeader = 28;

Log random_log(std::uint64_t seed, int events) {
  RandomEvents random(seed);
  Log log;
  Ledger ledger;
  ledger.record_to(&log);
  for (int i = 0; i < events; ++i) apply(random.next(), ledger);
  return log;
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint64_t number, int width) {
  for (int i = 0; i < width; ++i)
    bytes[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(number >> (8 * i));
}

/// Makes the checksum valid again after a deliberate change.
void seal(std::vector<std::uint8_t>& bytes) {
  put(bytes, bytes.size() - 8, checksum(std::span(bytes).first(bytes.size() - 8)), 8);
}

/// A file with these events, valid or not.
std::vector<std::uint8_t> file_of(std::vector<std::uint8_t> events, std::uint64_t count) {
  std::vector<std::uint8_t> bytes = encode_log(Log());
  put(bytes, 12, count, 8);
  put(bytes, 20, events.size(), 8);
  bytes.insert(bytes.begin() + kHeader, events.begin(), events.end());
  seal(bytes);
  return bytes;
}

void check_refused(const std::vector<std::uint8_t>& bytes, const char* why) {
  CHECK_THROWS_WITH_AS(decode_log(bytes), why, FormatError);
}

/// Returns false for a FormatError. An accepted log must replay. Any other result fails the test.
bool accepts(std::span<const std::uint8_t> bytes) {
  try {
    const Log log = decode_log(bytes);
    CHECK(value(replay(log).now()) == log.events());
    return true;
  } catch (const FormatError&) {
    return false;
  }
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("plimsoll-ledger-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE_FIXTURE(Folder, "a written log is read back unchanged, and the folder has no other file") {
  const Log log = random_log(5, 20'000);
  const fs::path file = path / "run.plimlog";
  std::ofstream(file) << "older";
  write_log(log, file);
  const Log read = read_log(file);
  CHECK(read.events() == log.events());
  CHECK(std::equal(read.data().begin(), read.data().end(), log.data().begin(), log.data().end()));
  CHECK(std::distance(fs::directory_iterator(path), {}) == 1);
  CHECK(fs::file_size(file) == log.data().size() + 36);
}

TEST_CASE("a log without events is valid") {
  const Log log = decode_log(encode_log(Log()));
  CHECK(log.events() == 0);
  CHECK(value(replay(log).now()) == 0);
}

TEST_CASE("a log that was read can be continued") {
  RandomEvents random(6);
  Log whole;
  Ledger ledger;
  ledger.record_to(&whole);
  for (int i = 0; i < 500; ++i) apply(random.next(), ledger);
  Log continued = decode_log(encode_log(whole));
  const Event event{.kind = Event::Kind::kFreed, .id = AllocationId{77}};
  whole.append(event);
  continued.append(event);
  CHECK(encode_log(whole) == encode_log(continued));
}

TEST_CASE("a log that is cut off at any byte is refused") {
  const std::vector<std::uint8_t> bytes = encode_log(random_log(7, 400));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    // A copy, so that the address sanitizer sees a read past the end.
    const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_FALSE(accepts(part));
  }
  CHECK(accepts(bytes));
}

TEST_CASE("a log with any one bit flipped is refused") {
  std::vector<std::uint8_t> bytes = encode_log(random_log(7, 200));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= static_cast<std::uint8_t>(1 << (i % 8));
    CAPTURE(i);
    CHECK_FALSE(accepts(bytes));
    bytes[i / 8] ^= static_cast<std::uint8_t>(1 << (i % 8));
  }
}

TEST_CASE("a log with deliberate changes and a valid checksum is refused or replays") {
  const std::vector<std::uint8_t> bytes = encode_log(random_log(8, 300));
  int accepted = 0;
  int refused = 0;
  std::mt19937_64 random(1);
  for (std::size_t i = 8; i < bytes.size() - 8; ++i) {
    for (int kind = 0; kind < 6; ++kind) {
      std::vector<std::uint8_t> changed = bytes;
      changed[i] = kind == 0 ? 0 : kind == 1 ? 0xFF : static_cast<std::uint8_t>(random());
      seal(changed);
      (accepts(changed) ? accepted : refused)++;
    }
  }
  CHECK(accepted > 100);
  CHECK(refused > 100);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::uint8_t> events(random() % 60);
    for (std::uint8_t& byte : events) byte = static_cast<std::uint8_t>(random());
    accepts(file_of(events, random() % 20));
  }
}

TEST_CASE("the message names the defect of a file") {
  std::vector<std::uint8_t> bytes = encode_log(random_log(7, 100));
  SUBCASE("another kind of file") {
    bytes[3] = '?';
    check_refused(bytes, "this is not a log of Plimsoll's ledger: it does not begin with PLIMLOG");
  }
  SUBCASE("only the beginning") {
    bytes.resize(5);
    check_refused(bytes, "the log is cut off: 5 bytes of at least 36; the file was not written completely");
    bytes = encode_log(Log());
    bytes.resize(20);
    check_refused(bytes, "the log is cut off: 20 bytes of at least 36; the file was not written completely");
  }
  SUBCASE("a newer version, with any content") {
    put(bytes, 8, 2, 4);
    bytes.resize(14);
    check_refused(bytes, "the log has version 2 of the format, but this program reads up to 1; use a newer program");
  }
  SUBCASE("version 0") {
    put(bytes, 8, 0, 4);
    check_refused(bytes, "the log has version 0 of the format, which does not exist");
  }
  SUBCASE("cut off") {
    bytes = encode_log(Log());
    put(bytes, 20, ~std::uint64_t{0}, 8);
    check_refused(bytes,
                  "the log is cut off: 0 bytes of 18446744073709551615 of events; the file was not written completely");
  }
  SUBCASE("bytes past the end") {
    bytes.push_back(0);
    check_refused(bytes, "the log is followed by 1 bytes that are not part of it");
  }
  SUBCASE("damage") {
    bytes[kHeader + 10] ^= 1;
    check_refused(bytes, "the log is damaged: the checksum does not match");
  }
  SUBCASE("wrong number of events") {
    put(bytes, 12, 3, 8);
    seal(bytes);
    CHECK_THROWS_WITH_AS(decode_log(bytes), doctest::Contains("the header says that the log has 3 events, but it has "),
                         FormatError);
  }
}

TEST_CASE("a log that a ledger cannot write is refused with the place") {
  const std::string at = "the event at byte 0 of the log ";
  const auto check = [&](std::vector<std::uint8_t> events, const std::string& why) {
    check_refused(file_of(std::move(events), 1), (at + why).c_str());
  };
  check({0x0F}, "is of the unknown kind 15");
  check({0x12, 0}, "has flags that its kind does not have");
  check({0x02}, "is cut off");
  check({0x02, 0x80}, "is cut off");
  check({0x02, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02}, "has a number of more than 64 bits");
  check({0x83, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}, "has a number of more than 64 bits");
  check({0x01, 0, 0, 0, 0, 0, 0}, "uses number 0 of the devices, but the log has 0 so far");
  check({0x71, 0, 0}, "refers to the device of the previous event, but it is the first");
  check({0x04, 0, 8, 0}, "uses number 8 of the categories, but the log has 8 so far");
  check({0x08, 1}, "uses number 1 of the owners, but the log has 1 so far");
  check({0x0A, 4}, "uses number 4 of the phases, but the log has 4 so far");
  check({0x07, 0, 8}, "has the unknown module state 8");
  check({0x00, 4, 1, 'x'}, "gives a name of the unknown kind 4");
  check({0x00, 0, 2, 'x'}, "is cut off");
  check({0x00, 3, 5, 'o', 't', 'h', 'e', 'r'}, "gives the name 'other' a second time");
  std::vector<std::uint8_t> devices;
  for (std::uint8_t i = 0; i <= kMaxDevices; ++i) devices.insert(devices.end(), {0x00, 0, 1, i});
  check_refused(file_of(devices, 0), "the event at byte 256 of the log adds a name to a full table of devices");
}

TEST_CASE_FIXTURE(Folder, "a file that cannot be read or written is reported with its name and the reason") {
  const fs::path missing = path / "missing" / "run.plimlog";
  CHECK_THROWS_WITH_AS(write_log(Log(), missing),
                       ("cannot write the log " + missing.string() + ": No such file or directory").c_str(),
                       SystemError);
  CHECK_THROWS_WITH_AS(read_log(missing),
                       ("cannot read the log " + missing.string() + ": No such file or directory").c_str(),
                       SystemError);
  fs::create_directories(path / "folder" / "inner");
  CHECK_THROWS_WITH_AS(write_log(Log(), path / "folder"), doctest::Contains("/folder: Is a directory"), SystemError);
  CHECK_THROWS_WITH_AS(read_log(path / "folder"), doctest::Contains("/folder: Is a directory"), SystemError);
  CHECK(std::distance(fs::directory_iterator(path), {}) == 1);
  const fs::path empty = path / "empty";
  std::ofstream(empty).flush();
  CHECK_THROWS_WITH_AS(
      read_log(empty),
      (empty.string() + ": the log is cut off: 0 bytes of at least 36; the file was not written completely").c_str(),
      FormatError);
}

TEST_CASE("only a ledger without events can be recorded, and only to an empty log") {
  Log log;
  Ledger ledger;
  ledger.step_begun();
  CHECK_THROWS_WITH_AS(
      ledger.record_to(&log),
      "a log must begin with the first event, but this ledger already has 1 events; record a new ledger to an "
      "empty log",
      InvalidArgument);
  ledger.record_to(nullptr);
  Log used = random_log(1, 10);
  Ledger fresh;
  CHECK_THROWS_WITH_AS(fresh.record_to(&used),
                       doctest::Contains("a log must begin with the first event, but this log already has"),
                       InvalidArgument);
}

TEST_CASE("the log includes the names from before the recording") {
  Log log;
  Ledger ledger;
  const DeviceId device = ledger.device("cuda:0");
  const CategoryId cache = ledger.category("KV cache");
  const OwnerId owner = ledger.owner("layers.0");
  ledger.record_to(&log);
  ledger.allocated(AllocationId{1}, 7, device, StreamId{0}, cache, owner);
  const Ledger replayed = replay(log);
  CHECK(replayed.name(device) == "cuda:0");
  CHECK(replayed.name(cache) == "KV cache");
  CHECK(replayed.name(owner) == "layers.0");
  CHECK(replayed.balance(device) == ledger.balance(device));
}

}  // namespace test_log_file
