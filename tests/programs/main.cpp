#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "programs/programs.h"

namespace programs {

namespace {

std::map<std::string, Main>& all() {
  static std::map<std::string, Main> programs;
  return programs;
}

}  // namespace

Program::Program(const char* name, Main run) { all().emplace(name, run); }

}  // namespace programs

int main(int argc, char** argv) {
  const auto name = std::filesystem::path(argv[0]).filename().string();
  const auto program = programs::all().find(name);
  if (program == programs::all().end()) {
    std::fprintf(stderr, "this file does not have the program %s: start it through a link with a program's name\n",
                 name.c_str());
    return 2;
  }
  return program->second(argc, argv);
}
