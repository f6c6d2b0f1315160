#include "plimsoll/cli/process/environment.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plimsoll/base/errors.h"

namespace plimsoll::cli {

std::string settings_for_python(const RunOptions& options, const std::filesystem::path& records,
                                const std::filesystem::path& snapshot, bool progress) {
  using Json = nlohmann::ordered_json;
  return Json{{"record_dir", records.string()},
              {"steps", options.steps ? Json(*options.steps) : nullptr},
              {"top", options.top},
              {"snapshot", options.snapshot ? Json(snapshot.string()) : nullptr},
              {"progress", progress},
              {"categories", options.categories},
              {"depth", options.depth},
              {"main_pid", nullptr}}
      .dump();
}

Placement placement(const RunOptions& options) {
  const std::int64_t per_node = cards_per_node(options);
  Placement place;
  place.node = options.rank / per_node;
  place.nodes = (options.world_size + per_node - 1) / per_node;
  place.local_rank = options.rank % per_node;
  place.local_world_size = std::min(per_node, options.world_size - place.node * per_node);
  return place;
}

std::int64_t cards_per_node(const RunOptions& options) { return options.gpus_per_node.value_or(8); }

std::int64_t card_count(const RunOptions& options) {
  return options.gpus_per_node ? *options.gpus_per_node : std::min(cards_per_node(options), options.world_size);
}

namespace {

/// A run on a real GPU must not find the caches of a pretend one: their kernels have no code, and autotuning measured
/// nothing.
void separate_caches(Environment& environment) {
  environment["USE_PYTORCH_KERNEL_CACHE"] = "0";
  const auto of = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  const std::string cache = !of("XDG_CACHE_HOME").empty() ? of("XDG_CACHE_HOME")
                            : !of("HOME").empty()         ? of("HOME") + "/.cache"
                                                          : std::string();
  if (cache.empty()) return;
  environment.try_emplace("TORCHINDUCTOR_CACHE_DIR", cache + "/plimsoll/inductor");
  environment.try_emplace("TRITON_CACHE_DIR", cache + "/plimsoll/triton");
}

}  // namespace

Environment child_environment(const RunOptions& options, const ChildFiles& files, Environment parent) {
  Environment environment = std::move(parent);
  const Placement place = placement(options);
  environment["RANK"] = std::to_string(options.rank);
  environment["WORLD_SIZE"] = std::to_string(options.world_size);
  environment["LOCAL_RANK"] = std::to_string(place.local_rank);
  environment["LOCAL_WORLD_SIZE"] = std::to_string(place.local_world_size);
  environment["GROUP_RANK"] = std::to_string(place.node);
  environment["GROUP_WORLD_SIZE"] = std::to_string(place.nodes);
  environment["ROLE_RANK"] = std::to_string(options.rank);
  environment["ROLE_WORLD_SIZE"] = std::to_string(options.world_size);
  environment["ROLE_NAME"] = "default";
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = "29500";
  environment["TORCHELASTIC_RESTART_COUNT"] = "0";
  environment["TORCHELASTIC_MAX_RESTARTS"] = "0";
  environment["TORCHELASTIC_RUN_ID"] = "plimsoll";
  // With True every rank would connect to the store of torchrun's agent, which does not exist here.
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  environment.try_emplace("OMP_NUM_THREADS", "1");

  if (options.alloc_conf) {
    // torch 2.9 renamed the variable.
    environment["PYTORCH_CUDA_ALLOC_CONF"] = *options.alloc_conf;
    environment["PYTORCH_ALLOC_CONF"] = *options.alloc_conf;
  }

  std::string preload;
  for (const auto& library : files.libraries) {
    const std::string path = library.string();
    if (path.find_first_of(" :") != std::string::npos) {
      throw InvalidArgument("the dynamic loader cannot preload " + path +
                            ": the path has a space or a colon; move Plimsoll to another folder");
    }
    preload += (preload.empty() ? "" : ":") + path;
  }
  const std::string own = environment["LD_PRELOAD"];
  environment["LD_PRELOAD"] = own.empty() ? preload : preload.empty() ? own : preload + ":" + own;
  environment["PLIMSOLL_PRETEND_DIR"] = files.library_folder.string();
  environment["TRITON_LIBCUDA_PATH"] = files.library_folder.string();
  environment["PLIMSOLL_GPU_PROFILE"] = files.profile.string();
  environment["PLIMSOLL_GPUS"] = std::to_string(card_count(options));
  environment["PLIMSOLL_EVENT_LAG"] = std::to_string(options.event_lag);
  environment["PLIMSOLL_RUN"] = files.settings;
  environment.erase("PLIMSOLL_GPU_MEMORY");  // The report has the profile's memory.
  separate_caches(environment);
  // It names real GPUs, of which there may be fewer than pretend ones. The script may set it itself.
  environment.erase("CUDA_VISIBLE_DEVICES");
  return environment;
}

}  // namespace plimsoll::cli
