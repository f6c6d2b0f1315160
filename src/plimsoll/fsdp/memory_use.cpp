#include "plimsoll/fsdp/memory_use.h"

#include <utility>

namespace plimsoll::fsdp {
namespace {

thread_local const FSDPParamGroup* current_group = nullptr;
thread_local const MemoryUse* current_use = nullptr;

}  // namespace

GroupScope::GroupScope(const FSDPParamGroup& group) : outer_(std::exchange(current_group, &group)) {}
GroupScope::~GroupScope() { current_group = outer_; }
const FSDPParamGroup* GroupScope::current() { return current_group; }

MemoryScope::MemoryScope(MemoryUse use) : use_(use), outer_(std::exchange(current_use, &use_)) {}
MemoryScope::~MemoryScope() { current_use = outer_; }
const MemoryUse* MemoryScope::current() { return current_use; }

}  // namespace plimsoll::fsdp
