#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

namespace plimsoll::distributed {

/// A store for one process that is one rank of any world, for backends that need no other ranks, such as nccl on the
/// pretend GPU. Missing values are zeros (for example unique ids from other ranks), and waits return at once.
class LoneStore final : public c10d::HashStore {
 public:
  std::vector<std::uint8_t> get(const std::string& key) override {
    return check({key}) ? HashStore::get(key) : std::vector<std::uint8_t>(kUniqueIdBytes);
  }
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    std::vector<std::vector<std::uint8_t>> values;
    for (const auto& key : keys) values.push_back(get(key));
    return values;
  }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  static constexpr std::size_t kUniqueIdBytes = 128;
};

}  // namespace plimsoll::distributed
