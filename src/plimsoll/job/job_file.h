#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// A field by name and its value as text, as on the command line.
struct Setting {
  std::string name;
  std::string text;
};

/// What a reader of a job file should be told.
struct JobFile {
  bool torchtitan = false;                    ///< It is one of torchtitan's, not of our own form.
  std::vector<std::string> passed_over = {};  ///< Fields that do not change memory here: "training.steps".
  std::vector<std::string> assumed = {};      ///< torchtitan's defaults of fields it lacks: "training.seq_len = 2048".
};

/// Reads a TOML file into `job`, and sets `flags` after it: they go over what the file says.
///
/// Our own form has the names of fields (and `model`) as its keys, with dashes or underscores. Paths in it are relative
/// to the file's folder. A file with torchtitan's tables is read as torchtitan would (torchtitan.h).
///
/// Throws InvalidArgument for a file that cannot be read and for wrong flags, FormatError with the line for what is in
/// it. `job` may then be changed in part.
JobFile read_job_file(const std::filesystem::path& path, Job& job, std::span<const Setting> flags = {});

}  // namespace plimsoll::job
