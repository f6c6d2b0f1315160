#include "plimsoll/cli/card.h"

#include <algorithm>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/values.h"

namespace plimsoll::cli {

namespace fs = std::filesystem;

pretend::Profile profile_for(const std::string& gpu, std::optional<Bytes> memory, const Installation& installation) {
  pretend::Profile profile = pretend::find_profile(gpu, installation.profiles());
  if (!memory) return profile;
  if (*memory <= profile.context) {
    throw InvalidArgument("--gpu-memory " + format_bytes(*memory) +
                          " is too small: the CUDA context of a process takes " + format_bytes(profile.context));
  }
  profile.memory = *memory;
  return profile;
}

fs::path profile_file(const std::string& gpu, const Installation& installation) {
  const std::vector<std::string> names = pretend::profile_names(installation.profiles());
  const auto known = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return job::lower(name) == job::lower(gpu); });
  return fs::absolute(known == names.end() ? fs::path(gpu) : installation.profiles() / (*known + ".json"));
}

}  // namespace plimsoll::cli
