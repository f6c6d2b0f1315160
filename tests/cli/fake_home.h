#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/installation.h"

/// A plimsoll without torch: its Python is a shell script, its pretend library is the C library.
class FakeHome {
 public:
  /// `program` is the shell script in place of Python; its arguments are `runner script args…`. $record is the folder
  /// of records.
  explicit FakeHome(const std::string& program) {
    namespace fs = std::filesystem;
    const fs::path home = folder_.path();
    fs::create_directories(home / "src/plimsoll/pretend");
    fs::create_directory_symlink(fs::path(PLIMSOLL_SOURCE_DIR) / "src/plimsoll/pretend/profiles",
                                 home / "src/plimsoll/pretend/profiles");
    fs::create_directories(home / "python/plimsoll/run");
    std::ofstream(home / "python/plimsoll/run/__main__.py");
    fs::create_directories(home / "scripts");
    fs::create_directories(home / "build/pretend");
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&getpid), &info);
    fs::create_symlink(fs::canonical(info.dli_fname), home / "build/pretend/libcuda.so.1");
    fs::create_directories(home / ".plimsoll/venv/bin");
    write_program(
        python(),
        "record=$(printf '%s' \"$PLIMSOLL_RUN\" | sed 's/.*\"record_dir\":\"\\([^\"]*\\)\".*/\\1/')\n" + program);
    std::ofstream(script()) << "print('hello')\n";
  }

  static void write_program(const std::filesystem::path& file, const std::string& body) {
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  std::filesystem::path path() const { return folder_.path(); }
  std::filesystem::path python() const { return path() / ".plimsoll/venv/bin/python"; }
  std::filesystem::path script() const { return path() / "train.py"; }
  plimsoll::cli::Installation installation() const { return {path(), path() / "build/bin"}; }

 private:
  plimsoll::cli::TemporaryFolder folder_;
};
