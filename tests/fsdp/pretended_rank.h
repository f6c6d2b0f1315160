#pragma once

#include <exception>
#include <iostream>
#include <string>

#include "fsdp/case.h"
#include "fsdp/settle.h"
#include "plimsoll/distributed/process_group.h"

/// Programs that train as one rank of a pretended world. For each case on standard input they print one line of JSON.
namespace plimsoll::scenarios {

inline void start_world(const Case& c) {
  const int world = c.number("world"), rank = c.number("rank");
  if (distributed::is_initialized()) {
    if (distributed::get_world_size() == world && distributed::get_rank() == rank) return;
    distributed::destroy_process_group();
  }
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = rank, .world_size = world});
}

/// The body of a main(): prints the result of `run(case)`. Returns the exit code.
template <class Run>
int answer_cases(const char* program, const Run& run) {
  std::string line;
  try {
    while (std::getline(std::cin, line)) std::cout << run(Case(line)).dump() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << program << ": " << line << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace plimsoll::scenarios
