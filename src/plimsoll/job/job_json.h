#pragma once

#include <string>
#include <string_view>

#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// A job as a JSON object: `model`, then all fields by name with underscores, typed; absent ones are null.
std::string to_json(const Job& job);

/// The inverse. Fields that are not there have their defaults; `model` must be.
/// Throws FormatError that begins with `origin` for what is no such object, with the nearest name for a field that is
/// not known.
Job job_from_json(std::string_view text, const std::string& origin);

}  // namespace plimsoll::job
