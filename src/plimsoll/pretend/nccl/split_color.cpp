#include <bit>

#include "plimsoll/pretend/nccl/communicator.h"

namespace plimsoll::pretend::nccl {
namespace {

/// Python's hash of a tuple of small non-negative integers (3.8 and later), one element at a time.
class PythonTuple {
 public:
  void add(std::uint64_t rank) {
    state_ += rank * 14029467366897019727U;
    state_ = std::rotl(state_, 31) * 11400714785074694791U;
    ++length_;
  }
  /// torch.distributed: the absolute value, modulo 2^31.
  int color() const {
    std::uint64_t hash = state_ + (length_ ^ (kStart ^ 3527539U));
    if (hash == ~std::uint64_t{0}) hash = 1546275796;
    const auto value = static_cast<std::int64_t>(hash);
    const std::uint64_t magnitude = value < 0 ? 0 - hash : hash;
    return static_cast<int>(magnitude & 0x7fffffffU);
  }

 private:
  static constexpr std::uint64_t kStart = 2870177450012600261U;
  std::uint64_t state_ = kStart;
  std::uint64_t length_ = 0;
};

/// The sequences start, start + stride, … in which `rank` has index `key`.
template <class Hash>
int size_of(int color, int key, int rank, int ranks) {
  for (int stride = 1; stride <= ranks; ++stride) {
    const std::int64_t start = rank - std::int64_t{key} * stride;
    if (start < 0) break;
    Hash hash;
    int size = 0;
    for (std::int64_t member = start; member < ranks; member += stride) {
      hash.add(static_cast<std::uint64_t>(member));
      ++size;
      if (size > key && hash.color() == color) return size;
    }
  }
  return 0;
}

}  // namespace

int ranks_of_color(int color, int key, int parent_rank, int parent_ranks) {
  if (const int size = size_of<PythonTuple>(color, key, parent_rank, parent_ranks)) return size;
  if (color < 0 || color > parent_rank) return parent_ranks;
  const int distance = parent_rank - color;
  if (key == 0) return distance == 0 ? parent_ranks - color : parent_ranks;
  if (distance == 0 || distance % key != 0) return parent_ranks;
  return (parent_ranks - 1 - color) / (distance / key) + 1;
}

}  // namespace plimsoll::pretend::nccl
