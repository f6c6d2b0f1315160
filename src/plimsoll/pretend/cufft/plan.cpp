#include "plimsoll/pretend/cufft/plan.h"

#include <algorithm>
#include <bit>

namespace plimsoll::pretend::cufft {
namespace {

bool is_smooth(std::int64_t n) {
  for (const std::int64_t prime : {2, 3, 5, 7}) {
    while (n > 1 && n % prime == 0) n /= prime;
  }
  return n == 1;
}

}  // namespace

Bytes work_bytes(const std::vector<std::int64_t>& lengths, std::int64_t batch, Bytes element) {
  Bytes numbers = static_cast<Bytes>(batch);
  for (const std::int64_t length : lengths) numbers *= static_cast<Bytes>(length);
  const Bytes data = numbers * element;
  if (lengths.size() == 1 && std::has_single_bit(static_cast<Bytes>(lengths[0]))) return 0;
  Bytes most = std::all_of(lengths.begin(), lengths.end(), is_smooth) ? data : 0;
  for (const std::int64_t length : lengths) {
    if (is_smooth(length)) continue;
    const Bytes padded = std::bit_ceil(2 * static_cast<Bytes>(length) - 1);
    most = std::max(most, 2 * (data / static_cast<Bytes>(length)) * padded);
  }
  return std::min(most, 8 * data);
}

PlanId Plans::create(int device) {
  std::lock_guard lock(mutex_);
  const PlanId id = next_++;
  plans_[id].device = device;
  return id;
}

std::optional<Plan> Plans::find(PlanId id) const {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(id);
  if (found == plans_.end()) return std::nullopt;
  return found->second;
}

std::optional<Plan> Plans::remove(PlanId id) {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(id);
  if (found == plans_.end()) return std::nullopt;
  const Plan plan = found->second;
  plans_.erase(found);
  return plan;
}

Plans& plans() {
  static auto* const instance = new Plans;
  return *instance;
}

}  // namespace plimsoll::pretend::cufft
