#pragma once

/// The programs that tests written in Python compare with torch's own stand in one file, under a link for each: most of
/// what a compiler does for them is the same, torch's modules and the models that they train.
namespace programs {

using Main = int (*)(int argc, char** argv);

/// A program among them, with what would be its main().
struct Program {
  Program(const char* name, Main run);
};

}  // namespace programs
