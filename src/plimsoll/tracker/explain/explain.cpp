#include "plimsoll/tracker/explain/explain.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ostream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/categories.h"
#include "plimsoll/base/text.h"
#include "plimsoll/report/text/sections.h"

namespace plimsoll::inline tracker {

namespace {

using fsdp::Stage;
namespace categories = ledger::categories;
namespace phases = ledger::phases;

const std::string kOptimizerTemporaries = "temporaries of the optimizer's step";

/// By stage, for the first line of the text.
constexpr std::array<std::string_view, fsdp::kStages> kPlaces = {"pre-forward",   "forward",       "post-forward",
                                                                 "post-forward",  "pre-backward",  "backward",
                                                                 "post-backward", "post-backward", "unshard"};

struct Reasons {
  const ledger::Ledger& ledger;
  const ledger::Peak& peak;
  const Stages& stages;
  const FSDPMembers& members;
  const TrackedLedger& tracked;
  const OwnerNames& names;

  struct Reason {
    std::string why;
    std::string owner;
  };

  Reason of(const ledger::Allocation& allocation) const {
    const auto category = ledger.name(allocation.category);
    const auto standing = stages[allocation.owner];
    const std::string owner(ledger.name(allocation.owner));
    if (category == category::kUnshardedParam.name) return {unsharded(standing), owner};
    if (category == category::kAllGather.name) return {gathered(allocation.owner, standing), owner};
    if (category == category::kReduceScatter.name) return {reduced(standing), owner};
    if (category == category::kUnshardedGrad.name) return {whole_gradients(standing), owner};
    if (allocation.category == categories::kActivation) return {activations(), fsdp_module_of(owner)};
    if (allocation.category == categories::kTemp) return temporaries(allocation, owner);
    if (allocation.category == categories::kBuffer) return {"buffers of modules", fsdp_module_of(owner)};
    if (members.empty() && allocation.category == categories::kParameter) return {"parameters", owner};
    if (members.empty() && allocation.category == categories::kGradient) return {"gradients of parameters", owner};
    const auto* const known = find_category(category);
    return {known == nullptr ? "named by the user" : std::string(known->why), owner};
  }

  bool in(ledger::PhaseId phase) const { return peak.phase == phase; }

  std::string running() const { return stages.running ? names(std::string(ledger.name(*stages.running))) : ""; }

  static std::string unsharded(const std::optional<Standing>& standing) {
    if (!standing || standing->stage == Stage::kUnshardByHand) return "unsharded by hand";
    if (standing->recomputed) return "whole because its forward is run again";
    if (standing->stage == Stage::kAfterPostForward) return "not resharded after forward";
    if (standing->stage == Stage::kAfterPostBackward) return "not resharded after backward";
    return is_forward(standing->stage) ? "whole because its forward runs" : "whole because its backward runs";
  }

  std::string gathered(ledger::OwnerId owner, const std::optional<Standing>& standing) const {
    if (standing) {
      if (standing->stage == Stage::kUnshardByHand) return "gathered by hand";
      if (standing->recomputed) return "gathered to run its forward again";
      if (standing->stage == Stage::kBeforePreForward) return "gathered for its forward";
      if (is_backward(standing->stage) && is_running(standing->stage)) return "gathered for its backward";
      // In forward a buffer stays until the next module has copied out of its own buffer.
      if (is_forward(standing->stage) && !in(phases::kBackward) && stages.in_latest_forward.contains(owner)) {
        return "gathered for its forward, kept until the next copy-out";
      }
    }
    const auto by = running();
    return by.empty() ? "gathered in advance" : "prefetched while " + by + " runs";
  }

  static std::string reduced(const std::optional<Standing>& standing) {
    return standing && standing->stage == Stage::kBeforePostBackward ? "gradients that are copied in and reduced"
                                                                     : "a reduce-scatter in flight";
  }

  static std::string whole_gradients(const std::optional<Standing>& standing) {
    if (!standing || !is_running(standing->stage)) return "not reduced";
    if (standing->stage == Stage::kBeforePostBackward) return "being reduced";
    return "whole until the backward of its module is over";
  }

  std::string activations() const {
    if (in(phases::kForward)) return "saved for backward, or in use";
    return in(phases::kBackward) ? "saved for backward, recomputed, or held by outputs" : "held by outputs";
  }

  Reason temporaries(const ledger::Allocation& allocation, const std::string& owner) const {
    // The last allocation may have got its category after the peak.
    const auto since = tracked.named_since(allocation.id);
    const auto became = since ? ledger.name(since->category) : std::string_view();
    if (became == category::kUnshardedGrad.name || became == category::kAccumulatedGrad.name) {
      return {"gradients of whole parameters, as they are computed", std::string(ledger.name(since->owner))};
    }
    if (find_category(became) == find_category(category::kOptState.name)) {
      return {"state of the optimizer, as it is made", std::string(ledger.name(since->owner))};
    }
    if (in(phases::kOptimizer)) return {kOptimizerTemporaries, owner};
    return {"gradients of activations, and temporaries", fsdp_module_of(owner)};
  }

  /// The module's own or nearest outer FSDP module.
  std::string fsdp_module_of(const std::string& path) const {
    const std::pair<std::string, ledger::OwnerId>* nearest = nullptr;
    for (const auto& member : members) {
      const bool within =
          path.starts_with(member.first) && (path.size() == member.first.size() || path[member.first.size()] == '.');
      if (within && (nearest == nullptr || nearest->first.size() < member.first.size())) nearest = &member;
    }
    return nearest == nullptr ? path : std::string(ledger.name(nearest->second));
  }
};

}  // namespace

Explanation explain(const ledger::Ledger& ledger, const ledger::Peak& peak, const Stages& stages,
                    const FSDPMembers& members, const TrackedLedger& tracked, const OwnerNames& names) {
  Explanation explanation{.device = std::string(ledger.name(peak.device)),
                          .total = static_cast<std::int64_t>(peak.balance.total()),
                          .reserved = static_cast<std::int64_t>(peak.reserved),
                          .step = peak.step,
                          .phase = std::string(ledger.name(peak.phase))};
  const bool in_pass = peak.phase == phases::kForward || peak.phase == phases::kBackward;
  if (in_pass && stages.running) {
    explanation.module = names(std::string(ledger.name(*stages.running)));
    explanation.stage = kPlaces[static_cast<std::size_t>(stages[*stages.running]->stage)];
  }

  struct Sum {
    Bytes bytes = 0;
    std::uint64_t allocations = 0;
    std::map<std::string, Bytes> owners;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;  // By category and why.
  std::size_t shards = 0;
  const Reasons reasons{ledger, peak, stages, members, tracked, names};
  for (const auto& allocation : ledger.contents(peak).allocations) {
    if (allocation.bytes == 0) continue;
    if (ledger.name(allocation.category) == category::kShardedParam.name) ++shards;
    auto [why, owner] = reasons.of(allocation);
    auto& sum = sums[{std::string(ledger.name(allocation.category)), std::move(why)}];
    sum.bytes += allocation.bytes;
    sum.allocations += 1;
    sum.owners[owner.empty() ? std::string(report::kNoModule) : std::move(owner)] += allocation.bytes;
  }
  for (auto& [key, sum] : sums) {
    auto& cause = explanation.causes.emplace_back(
        Cause{.bytes = sum.bytes, .category = key.first, .why = key.second, .allocations = sum.allocations});
    cause.one_per_shard = cause.why == kOptimizerTemporaries && sum.allocations == shards;
    cause.owners.assign(sum.owners.begin(), sum.owners.end());
    std::sort(cause.owners.begin(), cause.owners.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : natural_less(a.first, b.first);
    });
    for (auto& [name, bytes] : cause.owners) name = names(name);
  }
  std::ranges::stable_sort(explanation.causes, std::greater(), &Cause::bytes);
  return explanation;
}

std::string to_text(const Explanation& explanation) {
  const auto amount = [](std::int64_t bytes) { return format_bytes(static_cast<Bytes>(bytes)); };
  std::string text = amount(explanation.total) + " on " + explanation.device;
  if (explanation.step != ledger::kNoStep) text += ", in step " + std::to_string(explanation.step);
  if (!explanation.module.empty()) {
    text += ", " + explanation.stage + " of " + explanation.module;
  } else {
    text += ", phase " + explanation.phase;
  }
  if (explanation.reserved != 0) text += " (reserved then: " + amount(explanation.reserved) + ")";
  text += "\n";
  for (const auto& cause : explanation.causes) text += "  " + report::sentence(cause) + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) { return out << to_text(explanation); }

}  // namespace plimsoll::inline tracker
