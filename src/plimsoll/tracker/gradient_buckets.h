#pragma once

#include "plimsoll/base/thread_scope.h"

namespace plimsoll {

/// While it lives, what this thread allocates are buckets in which gradients are reduced (DistributedDataParallel's),
/// and counts as gradients from its first instant: nobody outside of torch can name them later.
class GradientBuckets : public ThreadScope<GradientBuckets> {};

}  // namespace plimsoll
