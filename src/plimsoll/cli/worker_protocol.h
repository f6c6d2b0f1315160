#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/cli/planning.h"

/// The lines that pass between us and the program that runs jobs; plan/worker.h describes them.
namespace plimsoll::cli {

/// A request as one line, with its end.
std::string request_line(std::int64_t id, const PlanRequest& request);

struct Answered {
  std::int64_t id = 0;
  PlanOutcome outcome;
};

/// Reads an answer. Throws PlanningFailed that names `program` and quotes the line where it is none.
Answered parse_answer(const std::string& line, const std::string& program);

}  // namespace plimsoll::cli
