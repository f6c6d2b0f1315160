#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// A field's name and its value as text, as on the command line.
struct Setting {
  std::string name;
  std::string text;
};

/// Facts about a job file for the user.
struct JobFile {
  bool torchtitan = false;                    ///< The file has torchtitan's form, not ours.
  std::vector<std::string> passed_over = {};  ///< Fields without effect on memory: "training.steps".
  std::vector<std::string> assumed = {};      ///< torchtitan's defaults for missing fields: "training.seq_len = 2048".
};

/// Reads a TOML file into `job`, and then sets `flags`, which win over the file.
///
/// The keys of our form are `model` and the names of fields, with dashes or underscores. Paths are relative to the
/// file's folder. torchtitan/torchtitan.h reads a file that has torchtitan's tables.
///
/// Throws InvalidArgument for a file that cannot be read and for wrong flags, FormatError with the line for wrong
/// contents. `job` may then have some of the values.
JobFile read_job_file(const std::filesystem::path& path, Job& job, std::span<const Setting> flags = {});

/// A job as a JSON object: `model`, then all fields by their names with underscores, typed. An absent value is null.
/// Throws InvalidArgument for a text that is not UTF-8.
std::string to_json(const Job& job);

/// The inverse. A missing field has its default; `model` is required.
/// Throws FormatError that begins with `origin` for other text, with the nearest name for an unknown field.
Job job_from_json(std::string_view text, const std::string& origin);

}  // namespace plimsoll::job
