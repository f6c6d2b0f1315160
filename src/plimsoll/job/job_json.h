#pragma once

#include <string>
#include <string_view>

#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// A job as a JSON object: `model`, then all fields by their names with underscores, typed. An absent value is null.
std::string to_json(const Job& job);

/// The inverse. A missing field has its default; `model` is required.
/// Throws FormatError that begins with `origin` for other text, with the nearest name for an unknown field.
Job job_from_json(std::string_view text, const std::string& origin);

}  // namespace plimsoll::job
