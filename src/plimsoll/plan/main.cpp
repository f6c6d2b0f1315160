// plimsoll-planner PARALLEL: runs jobs for the plimsoll command; see worker.h.
#include <c10/util/Logging.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "plimsoll/plan/worker.h"

int main(int count, char** values) {
  const int parallel = count == 2 ? std::atoi(values[1]) : 0;
  if (parallel < 1) {
    std::cerr
        << "plimsoll-planner is a part of the plimsoll command; it is started with the number of jobs to run at once\n";
    return 2;
  }
  FLAGS_caffe2_log_level = c10::GLOG_ERROR;  // That memory runs out is an answer here, and no warning.
  try {
    return plimsoll::plan::serve({.parallel = static_cast<std::size_t>(parallel)});
  } catch (const std::exception& error) {
    std::cerr << "plimsoll-planner: " << error.what() << "\n";
    return 1;
  }
}
