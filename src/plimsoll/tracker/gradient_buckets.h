#pragma once

namespace plimsoll {

/// While it lives, what this thread allocates are buckets in which gradients are reduced (DistributedDataParallel's), and counts
/// as gradients from its first instant: nobody outside of torch can name them later. Scopes nest.
class GradientBuckets {
 public:
  GradientBuckets();
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  static bool under_way() noexcept;
};

}  // namespace plimsoll
