#pragma once

#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/report/run_report.h"

namespace plimsoll::job {

/// The GPU of a profile as reports show it.
inline report::Gpu gpu_of(const pretend::Profile& profile) {
  return {.name = profile.name,
          .device_name = profile.device_name,
          .memory = profile.memory,
          .compute_major = profile.compute_major,
          .compute_minor = profile.compute_minor,
          .multiprocessors = profile.multiprocessors};
}

}  // namespace plimsoll::job
