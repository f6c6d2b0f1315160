#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/pretend/model/profile.h"

using namespace plimsoll::pretend;
using plimsoll::FormatError;
using plimsoll::InvalidArgument;
namespace fs = std::filesystem;

namespace {

const fs::path kProfiles = fs::path(PLIMSOLL_SOURCE_DIR) / "src/plimsoll/pretend/profiles";

std::string h100() { return to_json(find_profile("H100-80GB", kProfiles)); }

/// The H100's profile with one part of its JSON replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = h100();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void check_refused(const std::string& json, const std::string& message) {
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(parse_profile(json, "my.json"), doctest::Contains(message.c_str()), FormatError);
}

}  // namespace

TEST_CASE("the H100's profile has the numbers that the golden runs were made with") {
  const Profile profile = find_profile("H100-80GB", kProfiles);
  CHECK(profile.device_name == "NVIDIA H100 80GB HBM3");
  CHECK(profile.memory == 84943110144);
  CHECK(profile.compute_major == 9);
  CHECK(profile.compute_minor == 0);
  CHECK(profile.multiprocessors == 132);
  CHECK(profile.shared_per_block == 49152);
  CHECK(profile.shared_per_block_optin == 232448);
  CHECK(profile.shared_per_multiprocessor == 233472);
  CHECK(profile.l2_cache == 52428800);
}

TEST_CASE("every shipped profile can be read, has the name of its file, and has a source for every number") {
  const std::vector<std::string> names = profile_names(kProfiles);
  CHECK(names.size() >= 8);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(find_profile(name, kProfiles).name == name);
    std::ifstream stream(kProfiles / (name + ".json"));
    std::string line;
    while (std::getline(stream, line)) {
      if (line.find("\"value\"") == std::string::npos) continue;
      CAPTURE(line);
      CHECK(line.find("\"source\": \"\"") == std::string::npos);
      CHECK(line.find("\"source\": \"") != std::string::npos);
    }
  }
}

TEST_CASE("the profile decides about peer access: all shipped cards have it, except the GeForce") {
  for (const std::string& name : profile_names(kProfiles)) {
    CAPTURE(name);
    const Profile profile = find_profile(name, kProfiles);
    CHECK(profile.peer_access == (profile.device_name.find("GeForce") == std::string::npos));
  }
}

TEST_CASE("a profile is unchanged after it is written and read") {
  CHECK(to_json(parse_profile(h100(), "again")) == h100());
}

TEST_CASE("NCCL's bytes grow with the ranks up to a limit") {
  const NcclBytes bytes{.base = 100, .per_rank = 10, .max_ranks = 3};
  CHECK(bytes.of(0) == 100);
  CHECK(bytes.of(2) == 120);
  CHECK(bytes.of(3) == 130);
  CHECK(bytes.of(16384) == 130);
}

TEST_CASE("a GPU's name is found in any case") { CHECK(find_profile("h100-80gb", kProfiles).name == "H100-80GB"); }

TEST_CASE("an unknown GPU is refused with the nearest names") {
  CHECK_THROWS_WITH_AS(
      find_profile("H10-80GB", kProfiles),
      doctest::Contains("unknown GPU 'H10-80GB'; did you mean H100-80GB? known: A100-40GB, A100-80GB, B200-180GB"),
      InvalidArgument);
  CHECK_THROWS_WITH_AS(find_profile("H100", kProfiles), doctest::Contains("did you mean H100-80GB or H100-96GB?"),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(find_profile("a100-80", kProfiles), doctest::Contains("did you mean A100-80GB?"),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(find_profile("toaster", kProfiles), doctest::Contains("unknown GPU 'toaster'; known: "),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(find_profile("H100-80GB", "/nowhere"), doctest::Contains("no GPU profiles in /nowhere"),
                       InvalidArgument);
}

TEST_CASE("a user's profile is read by its path") {
  const fs::path file = fs::temp_directory_path() / "plimsoll_test_profile.json";
  std::ofstream(file) << changed("\"H100-80GB\"", "\"mine\"");
  CHECK(find_profile(file.string(), kProfiles).name == "mine");
  fs::remove(file);
  CHECK_THROWS_WITH_AS(find_profile(file.string(), kProfiles), doctest::Contains("no such GPU profile file"),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(load_profile(kProfiles), doctest::Contains("cannot read the profile"), FormatError);
}

TEST_CASE("a broken profile is refused with the name of the field") {
  check_refused("{\n  \"name\" 1}", "my.json: not valid JSON: line 2, column 10");
  check_refused("{", "my.json: not valid JSON: line 1, column 2");
  check_refused("[]", "my.json: a profile must be a JSON object, found array");
  check_refused("{}", "my.json: field 'name' is missing");
  check_refused(changed("\"memory_bytes\": 84943110144", "\"memory\": 1"), "field 'memory_bytes' is missing");
  check_refused(changed("84943110144", "-1"), "field 'memory_bytes' must not be negative, found -1");
  check_refused(changed("84943110144", "0"), "field 'memory_bytes' must be above zero");
  check_refused(changed("84943110144", "\"much\""), "field 'memory_bytes' must be a number, found \"much\"");
  check_refused(changed("84943110144", "1.5"), "field 'memory_bytes' must be a whole number, found 1.5");
  check_refused(changed("84943110144", "{\"source\": \"?\"}"), "field 'memory_bytes' is an object without \"value\"");
  check_refused(changed("84943110144", "9999999999999999999"), "field 'memory_bytes' must be at most");
  check_refused(changed("\"H100-80GB\"", "7"), "field 'name' must be a string, found 7");
  check_refused(changed("\"H100-80GB\"", "\"\""), "field 'name' must not be empty");
  check_refused(changed("\"multiprocessors\": 132", "\"multiprocessors\": 99999999999"),
                "field 'multiprocessors' must be at most");
  check_refused(changed("\"peer_access\": true", "\"peer_access\": 1"),
                "field 'peer_access' must be true or false, found 1");
  check_refused(changed("\"max_ranks\": 2", "\"max_ranks\": -2"), "field 'nccl.max_ranks' must not be negative");
  check_refused(changed("\"max_ranks\"", "\"most\""), "field 'nccl.max_ranks' is missing");
  check_refused(changed("\"name\"", "\"colour\": 1, \"name\""), "field 'colour' is not a field of a profile");
  check_refused(changed("232448", "4096"), "field 'shared_per_block_optin_bytes' must not be below");
  check_refused(changed("233472", "65536"), "field 'shared_per_multiprocessor_bytes' must not be below");
  check_refused(changed("84943110144", "1024"), "field 'context_bytes' must be below 'memory_bytes'");
}

TEST_CASE("a field can have a source, and an unknown overhead can be zero") {
  const Profile profile =
      parse_profile(changed("84943110144", "{\"value\": 1073741824, \"source\": \"a guess\"}"), "x");
  CHECK(profile.memory == 1073741824);
  CHECK(parse_profile(changed("\"context_bytes\": 545259520", "\"context_bytes\": 0"), "x").context == 0);
}
