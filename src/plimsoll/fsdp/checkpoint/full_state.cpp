#include "plimsoll/fsdp/checkpoint/full_state.h"

#include <ATen/Functions.h>

#include <functional>
#include <optional>
#include <unordered_set>

#include "plimsoll/fsdp/checkpoint/exchange.h"
#include "plimsoll/fsdp/checkpoint/source.h"
#include "plimsoll/fsdp/checkpoint/stored_tensor.h"

namespace plimsoll::fsdp {
namespace {

/// The name in the source for each tensor of a state, and the mismatches.
struct Match {
  std::vector<std::optional<std::string>> names;  // One for each tensor of the state.
  LoadResult rest;
  std::string defects;
};

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i) text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

using SizesOf = std::function<std::optional<at::IntArrayRef>(const std::string& name)>;

Match match(const StoredTensors& state, const std::vector<std::string>& source_names, const SizesOf& sizes_of,
            LoadOptions options) {
  Match match;
  std::unordered_set<std::string> known;
  std::vector<std::string> misshapen;
  for (const StoredTensor& entry : state) {
    std::vector<std::string> candidates = {entry.name};
    candidates.insert(candidates.end(), entry.other_names.begin(), entry.other_names.end());
    std::optional<std::string> found;
    for (const std::string& name : candidates) {
      known.insert(name);
      if (!found && sizes_of(name)) found = name;
    }
    if (!found) {
      match.rest.missing.push_back(entry.name);
    } else if (*sizes_of(*found) != entry.sizes) {
      misshapen.push_back(
          c10::str("'", *found, "' has ", *sizes_of(*found), ", expected ", at::IntArrayRef(entry.sizes)));
    }
    match.names.push_back(found);
  }
  for (const std::string& name : source_names) {
    if (!known.contains(name)) match.rest.unexpected.push_back(name);
  }
  const auto add = [&](const std::string& defect) { match.defects += (match.defects.empty() ? "" : "; ") + defect; };
  if (options.strict && !match.rest.missing.empty()) add("missing: " + listed(match.rest.missing));
  if (options.strict && !match.rest.unexpected.empty()) add("unexpected: " + listed(match.rest.unexpected));
  if (!match.defects.empty()) match.defects += " (load with {.strict = false} to leave them out)";
  for (const std::string& defect : misshapen) add("wrong shape: " + defect);
  return match;
}

TensorMap gather_all(const StoredTensors& state, std::string_view doing) {
  require_same_names(doing, state);
  TensorMap found;
  for (const StoredTensor& entry : state) {
    at::Tensor whole = gather(entry);
    if (whole.defined()) found.emplace(entry.name, std::move(whole));
  }
  return found;
}

LoadResult read_all(const StoredTensors& state, const CheckpointSource& source, LoadOptions options) {
  std::vector<std::string> names;
  for (const WholeTensor& tensor : source.tensors()) names.push_back(tensor.name);
  const auto sizes_of = [&](const std::string& name) -> std::optional<at::IntArrayRef> {
    const auto* const sizes = source.sizes(name);
    return sizes ? std::optional<at::IntArrayRef>(*sizes) : std::nullopt;
  };
  Match fit = match(state, names, sizes_of, options);
  TORCH_CHECK_VALUE(fit.defects.empty(), source.path().string(), " does not fit: ", fit.defects);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (fit.names[i]) source.read(*fit.names[i], state[i].dim, state[i].start, state[i].local);
  }
  return std::move(fit.rest);
}

// Encodes rank 0's match as text for the other ranks: one character per tensor, then the names.
std::string encode(const Match& match) {
  std::string text;
  for (const auto& name : match.names) text += name ? '1' : '0';
  for (const auto* names : {&match.rest.missing, &match.rest.unexpected}) {
    text += '\n';
    for (const std::string& name : *names) text += name + '\0';
  }
  return text;
}

std::vector<std::string> names_of(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t end; (end = text.find('\0')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    names.emplace_back(text.substr(0, end));
  }
  return names;
}

}  // namespace

TensorMap full_state(ModuleRef module) { return gather_all(model_state(module), "full_state"); }

TensorMap full_optimizer_state(ModuleRef module, const nn::Optimizer& optimizer) {
  return gather_all(optimizer_state(module, optimizer), "full_optimizer_state");
}

LoadResult load_full_state(ModuleRef module, const TensorMap& source, LoadOptions options) {
  constexpr std::string_view kDoing = "load_full_state";
  const StoredTensors state = model_state(module);
  require_same_names(kDoing, state);
  Match fit;
  fit.names.resize(state.size());
  std::optional<std::string> defect;
  if (is_main_rank()) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : source) names.push_back(name);
    const auto sizes_of = [&](const std::string& name) -> std::optional<at::IntArrayRef> {
      const auto found = source.find(name);
      return found == source.end() ? std::nullopt : std::optional<at::IntArrayRef>(found->second.sizes());
    };
    fit = match(state, names, sizes_of, options);
    if (!fit.defects.empty()) defect = "the state does not fit the module: " + fit.defects;
  }
  fail_together(kDoing, defect);
  const std::string match_text = from_main_rank(encode(fit), kDoing);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (match_text.at(i) == '1') distribute(state[i], is_main_rank() ? source.at(*fit.names[i]) : at::Tensor());
  }
  const auto missing = state.size() + 1, unexpected = match_text.find('\n', missing) + 1;
  return {names_of(std::string_view(match_text).substr(missing, unexpected - 1 - missing)),
          names_of(std::string_view(match_text).substr(unexpected))};
}

LoadResult load_state(ModuleRef module, const std::filesystem::path& path, LoadOptions options) {
  return read_all(model_state(module), CheckpointSource(path, "model"), options);
}

void load_optimizer_state(ModuleRef module, nn::Optimizer& optimizer, const std::filesystem::path& path,
                          LoadOptions options) {
  const CheckpointSource source(path, "optimizer");
  std::vector<OptimizerSlot> slots;
  const StoredTensors state = empty_optimizer_state(module, optimizer, source.tensors(), slots);
  read_all(state, source, options);
  nn::OptimizerState found{.parameter_count = optimizer.parameters().size(), .entries = {}};
  for (std::size_t i = 0; i < state.size(); ++i) {
    found.entries.push_back({slots[i].parameter, slots[i].name, state[i].local});
  }
  optimizer.import_state(found);
}

}  // namespace plimsoll::fsdp
