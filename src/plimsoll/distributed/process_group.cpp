#include "plimsoll/distributed/process_group.h"

#include <ATen/Context.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "plimsoll/distributed/backend.h"
#include "plimsoll/distributed/rendezvous.h"

// Mirrors init_process_group, new_group(use_local_synchronization=True) and destroy_process_group of
// torch/distributed/distributed_c10d.py (torch 2.13), with the same prefixes in the store: a rank in C++ and one in
// Python can be in one default group.

namespace plimsoll::distributed {
namespace {

struct Member {
  ProcessGroup group;
  std::vector<int> ranks;
};

struct World {
  ProcessGroup default_group;
  std::string backend;
  c10::intrusive_ptr<c10d::Store> store;  ///< The store of which each group gets a part.
  std::chrono::milliseconds timeout{};
  std::optional<c10::Device> device = {};                ///< The device whose communicators are made at once.
  std::vector<Member> groups = {};                       ///< In order of creation; the first is the default one.
  std::map<std::vector<int>, int> groups_of_ranks = {};  ///< The number of groups made with these ranks.
};

// Never destroyed: threads of open groups may run after statics are destroyed.
World& world() {
  static World& world = *new World;
  return world;
}

void require_no_default_group(const char* caller) {
  TORCH_CHECK(!is_initialized(), caller, ": there is already a default group of ", get_world_size(),
              " ranks. Call destroy_process_group first.");
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

struct GroupRequest {
  std::string name;
  std::string description;
  std::vector<std::uint64_t> global_ranks;
  int rank;
  int size;
  std::chrono::milliseconds timeout;
};

/// Which backend serves which device types.
struct Service {
  const BackendKind* kind;
  std::vector<c10::DeviceType> devices;
};

c10::DeviceType parse_device_type(const std::string& name) {
  if (name == "cpu") return c10::DeviceType::CPU;
  if (name == "cuda") return c10::DeviceType::CUDA;
  TORCH_CHECK_VALUE(false, "Unknown device type '", name, "' of a backend: expected \"cpu\" or \"cuda\".");
}

/// "nccl", or one for each device type: "cpu:gloo,cuda:nccl".
std::vector<Service> services_of(const std::string& backend) {
  if (backend.find(':') == std::string::npos) {
    const BackendKind& kind = backend_kind(backend);
    return {{&kind, kind.devices}};
  }
  std::vector<Service> services;
  std::istringstream parts(backend);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto colon = part.find(':');
    TORCH_CHECK_VALUE(colon != std::string::npos, "The backend '", backend, "' has no device type before '", part,
                      "': expected a form as \"cpu:gloo,cuda:nccl\".");
    const auto device = parse_device_type(part.substr(0, colon));
    const BackendKind& kind = backend_kind(part.substr(colon + 1));
    TORCH_CHECK_VALUE(std::ranges::find(kind.devices, device) != kind.devices.end(), "The backend \"", kind.name,
                      "\" does not take tensors of ", part.substr(0, colon), '.');
    services.push_back({&kind, {device}});
  }
  return services;
}

ProcessGroup make_group(const std::string& backend, const c10::intrusive_ptr<c10d::Store>& store,
                        GroupRequest request) {
  using c10d::PrefixStore;
  auto group_store = c10::make_intrusive<PrefixStore>(request.name + "/", store);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(group_store, request.rank, request.size);
  const auto services = services_of(backend);
  const auto type_of = [](const Service& service) {
    return c10d::ProcessGroup::strToBackendType(std::string(service.kind->name));
  };
  group->setDefaultBackend(type_of(services.back()));
  for (const Service& service : services) {
    const auto device = c10::DeviceTypeName(service.devices.front(), /*lower_case=*/true);
    const Backend made = service.kind->make({
        .store = c10::make_intrusive<PrefixStore>(device + "/", group_store),
        .rank = request.rank,
        .size = request.size,
        .timeout = request.timeout,
        .group_name = request.name,
        .global_ranks = request.global_ranks,
    });
    for (const auto device_type : service.devices) group->setBackend(device_type, type_of(service), made);
  }
  group->setGroupName(request.name);
  group->setGroupDesc(request.description);
  return group;
}

void connect(const ProcessGroup& group, const std::optional<c10::Device>& device) {
  if (device) group->getBackend(device->type())->eagerConnectSingleDevice(*device);
}

void make_default(ProcessGroup group, std::string backend, c10::intrusive_ptr<c10d::Store> store,
                  std::chrono::milliseconds timeout) {
  auto ranks = all_ranks(group->getSize());
  world() = {.default_group = group, .backend = std::move(backend), .store = std::move(store), .timeout = timeout};
  world().groups.push_back({std::move(group), std::move(ranks)});
}

}  // namespace

std::string describe_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 16;
  if (ranks.empty()) return "no ranks";
  if (ranks.size() == 1) return "rank " + std::to_string(ranks[0]);
  bool in_a_row = ranks.size() > 2;
  for (std::size_t i = 1; i < ranks.size(); ++i) in_a_row = in_a_row && ranks[i] == ranks[i - 1] + 1;
  if (in_a_row) return "ranks " + std::to_string(ranks.front()) + " to " + std::to_string(ranks.back());
  std::string text = "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? text + ", … (" + std::to_string(ranks.size()) + " in all)" : text;
}

const BackendKind& backend_kind(std::string_view name) {
  static const BackendKind kKinds[] = {
      {"gloo", {c10::DeviceType::CPU, c10::DeviceType::CUDA}, make_gloo},
      {"nccl", {c10::DeviceType::CUDA}, make_nccl},
      {"fake", {c10::DeviceType::CPU, c10::DeviceType::CUDA}, make_fake},
  };
  const auto* found = std::ranges::find(kKinds, name, &BackendKind::name);
  TORCH_CHECK_VALUE(
      found != std::end(kKinds), "Unknown backend '", name,
      "': expected \"gloo\", \"nccl\" or \"fake\". A c10d::ProcessGroup with another backend, made by the "
      "caller, can be passed to set_default_group.");
  return *found;
}

ProcessGroup init_process_group(InitOptions options) {
  require_no_default_group("init_process_group");
  if (options.backend.empty()) options.backend = at::globalContext().hasCUDA() ? "nccl" : "gloo";
  const auto services = services_of(options.backend);
  const bool meets_nobody =
      std::ranges::all_of(services, [](const auto& service) { return service.kind->name == "fake"; });
  const int size = given_or_environment(options.world_size, "world_size", "WORLD_SIZE");
  TORCH_CHECK_VALUE(size > 0, "init_process_group: the world size must be positive, but is ", size, ".");
  const int rank = given_or_environment(options.rank, "rank", "RANK");
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "init_process_group: the rank must be from 0 to ", size - 1,
                    " in a world of ", size, ", but is ", rank, ".");
  TORCH_CHECK_VALUE(options.timeout.count() > 0, "init_process_group: the timeout must be positive, but is ",
                    options.timeout.count(), " ms.");
  auto store = options.store;
  if (!store) {
    if (meets_nobody) {
      store = c10::make_intrusive<c10d::HashStore>();
    } else {
      store = environment_store(rank, size, options.timeout);
    }
    store = c10::make_intrusive<c10d::PrefixStore>("default_pg", store);
  }
  auto group = make_group(options.backend, store,
                          {.name = "0",
                           .description = "default_pg",
                           .global_ranks = {},
                           .rank = rank,
                           .size = size,
                           .timeout = options.timeout});
  make_default(group, options.backend, store, options.timeout);
  world().device = options.device;
  connect(group, options.device);
  return group;
}

void set_default_group(ProcessGroup group) {
  require_no_default_group("set_default_group");
  TORCH_CHECK_VALUE(group, "set_default_group: the group is null.");
  std::string backend;
  std::chrono::milliseconds timeout = InitOptions{}.timeout;
  if (group->hasBackends()) {
    const auto default_backend = group->getDefaultBackend();
    backend = default_backend->getBackendName();
    if (backend == "gloo" || backend == "nccl") timeout = default_backend->getBackendOptions()->timeout;
  }
  auto store = group->getStore();
  make_default(std::move(group), std::move(backend), std::move(store), timeout);
}

bool is_initialized() { return world().default_group.defined(); }

ProcessGroup default_group() {
  TORCH_CHECK(is_initialized(),
              "There is no default process group. Call init_process_group first, or set_default_group "
              "with a group of your own.");
  return world().default_group;
}

void destroy_process_group() {
  World ended = std::exchange(world(), World{});
  for (auto member = ended.groups.rbegin(); member != ended.groups.rend(); ++member) member->group->shutdown();
}

int get_rank() { return default_group()->getRank(); }

std::string get_backend() {
  default_group();  // Throws if there is no default group.
  return world().backend;
}

int get_world_size() { return default_group()->getSize(); }

ProcessGroup new_group(const std::vector<int>& ranks, const NewGroupOptions& options) {
  const int size = get_world_size();
  auto sorted = ranks;
  std::ranges::sort(sorted);
  TORCH_CHECK_VALUE(!sorted.empty() && std::ranges::adjacent_find(sorted) == sorted.end(),
                    "new_group: expected one or more distinct ranks, found [", c10::Join(", ", ranks), "].");
  TORCH_CHECK_VALUE(sorted.front() >= 0 && sorted.back() < size, "new_group: the ranks must be from 0 to ", size - 1,
                    " in a world of ", size, ", but are ", describe_ranks(sorted), ".");
  const auto here = std::ranges::lower_bound(sorted, get_rank());
  TORCH_CHECK_VALUE(here != sorted.end() && *here == get_rank(), "new_group: this is rank ", get_rank(),
                    ", which is not among ", describe_ranks(sorted), ". Only members call new_group.");
  World& all = world();
  TORCH_CHECK(all.store || all.backend == "fake",
              "new_group: the default group is the caller's own and has no store for ",
              "its members. Make the subgroup too, and pass it to DeviceMesh::from_group.");
  // torch uses a count of all groups of the process here, which differs between members if groups overlap.
  const auto name = c10::str(c10::Join("_", sorted), "_", all.groups_of_ranks[sorted]++);
  auto group = make_group(all.backend, all.store,
                          {.name = c10::sha1(name).str(),
                           .description = options.description.empty() ? "undefined" : options.description,
                           .global_ranks = {sorted.begin(), sorted.end()},
                           .rank = static_cast<int>(here - sorted.begin()),
                           .size = static_cast<int>(sorted.size()),
                           .timeout = options.timeout.value_or(all.timeout)});
  connect(group, all.device);
  all.groups.push_back({group, std::move(sorted)});
  return group;
}

std::vector<int> group_ranks(const ProcessGroup& group) {
  TORCH_CHECK_VALUE(group, "group_ranks: the group is null.");
  auto ranks = known_ranks(group);
  TORCH_CHECK_VALUE(ranks.has_value(), "group_ranks: the ranks of this group of ", group->getSize(),
                    " in the default group of ", get_world_size(),
                    " are unknown. Make the group with init_process_group or new_group.");
  return *std::move(ranks);
}

std::optional<std::vector<int>> known_ranks(const ProcessGroup& group) {
  for (const Member& member : world().groups) {
    if (member.group == group) return member.ranks;
  }
  if (!is_initialized() || group->getSize() == get_world_size()) return all_ranks(group->getSize());
  return std::nullopt;
}

}  // namespace plimsoll::distributed
