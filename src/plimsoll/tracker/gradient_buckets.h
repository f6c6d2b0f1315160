#pragma once

#include "plimsoll/base/thread_scope.h"

namespace plimsoll::inline tracker {

/// While it lives, memory that this thread allocates is a bucket in which DistributedDataParallel reduces gradients. It
/// is Gradient from its first instant: code outside of torch cannot name it later.
class GradientBuckets : public ThreadScope<GradientBuckets> {};

}  // namespace plimsoll::inline tracker
