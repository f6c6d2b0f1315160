#include "plimsoll/tracker/gradient_buckets.h"

namespace plimsoll {
namespace {

thread_local int bucket_scopes = 0;

}  // namespace

GradientBuckets::GradientBuckets() { ++bucket_scopes; }
GradientBuckets::~GradientBuckets() { --bucket_scopes; }
bool GradientBuckets::under_way() noexcept { return bucket_scopes != 0; }

}  // namespace plimsoll
