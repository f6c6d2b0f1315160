#pragma once

#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/report/report.h"

namespace plimsoll::job {

/// The GPU of a profile as reports show it.
inline report::Gpu gpu_of(const pretend::Profile& profile) {
  return {.name = profile.name,
          .device_name = profile.device_name,
          .memory = profile.memory,
          .compute_capability = std::to_string(profile.compute_major) + "." + std::to_string(profile.compute_minor),
          .multiprocessors = static_cast<std::uint64_t>(profile.multiprocessors)};
}

}  // namespace plimsoll::job
