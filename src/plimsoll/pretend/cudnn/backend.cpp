#include <algorithm>
#include <cstring>

#include "plimsoll/pretend/cudnn/backend_descriptor.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_API int cudnnBackendCreateDescriptor(int type, BackendDescriptor** out) {
  if (out == nullptr) return kNullPointer;
  *out = nullptr;
  if (type < 0 || type >= kDescriptorTypes) return kNotSupported;
  return guarded([&] {
    auto content = std::make_shared<Content>(type);
    if (const int status = Descriptors::make(out)) return status;
    (*out)->content = std::move(content);
    return static_cast<int>(kSuccess);
  });
}

PLIMSOLL_API int cudnnBackendDestroyDescriptor(BackendDescriptor* descriptor) {
  return Descriptors::destroy_any(descriptor);
}

/// Resets a descriptor to its initial state.
PLIMSOLL_API int cudnnBackendInitialize(BackendDescriptor* descriptor) {
  if (!alive(descriptor)) return kBadParam;
  return guarded([&] {
    descriptor->content = std::make_shared<Content>(descriptor->content->type);
    return static_cast<int>(kSuccess);
  });
}

PLIMSOLL_API int cudnnBackendFinalize(BackendDescriptor* descriptor) {
  if (!alive(descriptor)) return kBadParam;
  return guarded([&] { return descriptor->content->finalize(); });
}

PLIMSOLL_API int cudnnBackendSetAttribute(BackendDescriptor* descriptor, int name, int type, std::int64_t count,
                                          const void* elements) {
  if (!alive(descriptor)) return kBadParam;
  if (type < 0 || type >= kAttributeTypes) return kAttributeType;
  if (count < 0 || (elements == nullptr && count > 0)) return kBadParam;
  Content& content = *descriptor->content;
  if (content.finalized) return kNotInitialized;
  return guarded([&]() -> int {
    if (type != kTypeDescriptor) {
      content.set(name, type, count, elements, element_bytes_of(type));
      return kSuccess;
    }
    Attribute attribute;
    attribute.type = type;
    attribute.count = count;
    const auto* descriptors = static_cast<BackendDescriptor* const*>(elements);
    for (std::int64_t i = 0; i < count; ++i) {
      if (!alive(descriptors[i])) return kBadParam;
      attribute.descriptors.push_back(descriptors[i]->content);
    }
    content.attributes[name] = std::move(attribute);
    return kSuccess;
  });
}

/// An attribute that was never set has no elements; this is not an error. Descriptors are not created here: the caller
/// passes its own, of the right kind, to be filled.
PLIMSOLL_API int cudnnBackendGetAttribute(const BackendDescriptor* descriptor, int name, int type,
                                          std::int64_t requested, std::int64_t* count, void* elements) {
  if (!alive(descriptor) || requested < 0) return kBadParam;
  const Content& content = *descriptor->content;
  if (!content.finalized) return kNotFinalized;
  const Attribute* attribute = content.find(name);
  put(count, attribute == nullptr ? 0 : attribute->count);
  if (attribute == nullptr) return kSuccess;
  if (attribute->type != type) return kAttributeType;
  const std::int64_t wanted = elements == nullptr ? 0 : std::min(requested, attribute->count);
  if (type != kTypeDescriptor) {
    if (wanted > 0)
      std::memcpy(elements, attribute->bytes.data(), static_cast<std::size_t>(wanted) * element_bytes_of(type));
    return kSuccess;
  }
  auto* const* targets = static_cast<BackendDescriptor* const*>(elements);
  for (std::int64_t i = 0; i < wanted; ++i) {
    const auto& source = attribute->descriptors[static_cast<std::size_t>(i)];
    if (!alive(targets[i])) return kBadParam;
    if (targets[i]->content->type != source->type) return kDescriptorType;
    targets[i]->content = source;
  }
  return kSuccess;
}

PLIMSOLL_API int cudnnBackendExecute(const Handle* handle, const BackendDescriptor* plan,
                                     const BackendDescriptor* variant_pack) {
  if (!alive(handle) || !alive(plan) || !alive(variant_pack)) return kBadParam;
  if (plan->content->type != kExecutionPlan || variant_pack->content->type != kVariantPack) return kDescriptorType;
  if (!plan->content->finalized || !variant_pack->content->finalized) return kNotFinalized;
  return Handles::enqueue(name_of(*plan->content), handle);
}
