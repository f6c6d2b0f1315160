#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/documents.h"

namespace test_output_file {

using namespace plimsoll::cli;
using plimsoll::InvalidArgument;
using plimsoll::SystemError;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

int entries(const fs::path& folder) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.exists() ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a file that cannot be written is refused early, and the trial leaves no file") {
  const TemporaryFolder folder;
  CHECK_NOTHROW(check_writable(folder.path() / "report.json", "--json"));
  CHECK(entries(folder.path()) == 0);
  CHECK_THROWS_WITH_AS(
      check_writable("/nowhere/at/all.json", "--json"),
      "--json: cannot write /nowhere/at/all.json: the folder /nowhere/at does not exist: make it first",
      InvalidArgument);
  CHECK_THROWS_WITH_AS(check_writable("/", "--snapshot"),
                       "--snapshot: cannot write /: it is a folder: name a file in it", InvalidArgument);
  CHECK_THROWS_WITH_AS(check_writable("/proc/plimsoll.json", "--json"),
                       doctest::Contains("--json: cannot write /proc/plimsoll.json: "), InvalidArgument);
  CHECK_NOTHROW(check_writable("/dev/null", "--json"));
}

TEST_CASE("a file is replaced as a whole") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "report.json";
  write_file(file, "first");
  write_file(file, "second");
  CHECK(contents(file) == "second");
  CHECK(entries(folder.path()) == 1);
  CHECK_NOTHROW(write_file("/dev/null", "x"));
  CHECK_THROWS_WITH_AS(write_file("/nowhere/x.json", "x"), doctest::Contains("cannot write /nowhere/x.json"),
                       SystemError);
  CHECK_THROWS_WITH_AS(write_file("/dev/full", "x"), "cannot write /dev/full: No space left on device", SystemError);
}

TEST_CASE("a link stays a link, and a file keeps its permissions") {
  const TemporaryFolder folder;
  write_file(folder.path() / "real", "old");
  fs::permissions(folder.path() / "real", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", folder.path() / "link");
  write_file(folder.path() / "link", "new");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(contents(folder.path() / "real") == "new");
  CHECK(fs::status(folder.path() / "real").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a finished file is moved into place") {
  const TemporaryFolder folder;
  write_file(folder.path() / "source", "data");
  move_into_place(folder.path() / "source", folder.path() / "target");
  CHECK(contents(folder.path() / "target") == "data");
  CHECK(entries(folder.path()) == 1);
  CHECK_THROWS_WITH_AS(move_into_place(folder.path() / "none", folder.path() / "target"),
                       doctest::Contains("target: No such file or directory"), SystemError);
  CHECK_THROWS_WITH_AS(move_into_place(folder.path() / "target", "/dev/full"),
                       "cannot write /dev/full: No space left on device", SystemError);
  CHECK(contents(folder.path() / "target") == "data");
}

TEST_CASE("a temporary folder is removed with its contents") {
  fs::path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    write_file(path / "x", "y");
  }
  CHECK_FALSE(fs::exists(path));
}

}  // namespace test_output_file
