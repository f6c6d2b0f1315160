#include "plimsoll/pretend/model/streams/feed.h"

#include <algorithm>
#include <utility>

namespace plimsoll::pretend {

const char* to_string(Reason reason) {
  static constexpr const char* kNames[kReasonCount] = {"segments", "context", "nccl", "handles"};
  return kNames[static_cast<std::size_t>(reason)];
}

void Feed::replace(std::shared_ptr<const Entries> entries) {
  Happenings kinds = 0;
  for (const Entry& entry : *entries) kinds |= entry.kinds;
  entries_ = std::move(entries);
  kinds_.store(kinds, std::memory_order_relaxed);
}

Feed::Token Feed::subscribe(Listener listener, Happenings kinds) {
  std::lock_guard lock(mutex_);
  auto entries = std::make_shared<Entries>(*entries_);
  const Token token = next_token_++;
  entries->push_back({token, kinds, std::move(listener)});
  replace(std::move(entries));
  return token;
}

void Feed::unsubscribe(Token token) {
  std::lock_guard lock(mutex_);
  auto entries = std::make_shared<Entries>(*entries_);
  std::erase_if(*entries, [token](const Entry& entry) { return entry.token == token; });
  replace(std::move(entries));
}

void Feed::publish(const Event& event) noexcept {
  if (!listened(event.kind)) return;
  std::shared_ptr<const Entries> entries;
  {
    std::lock_guard lock(mutex_);
    entries = entries_;
  }
  for (const Entry& entry : *entries) {
    if ((entry.kinds & bit(event.kind)) != 0) entry.listener(event);
  }
}

}  // namespace plimsoll::pretend
