#pragma once

/// The programs that Python tests compare with torch's are in one file, with a link for each: they share most of their
/// code, so they compile faster together.
namespace programs {

using Main = int (*)(int argc, char** argv);

/// One of the programs, with its main() function.
struct Program {
  Program(const char* name, Main run);
};

}  // namespace programs
