#include "plimsoll/pretend/cudnn/backend_descriptor.h"

#include <cstring>

namespace plimsoll::pretend::cudnn {

Bytes element_bytes_of(int type) {
  switch (type) {
    case kTypeBoolean:
    case kTypeChar:
      return 1;
    case kTypeHandle:
    case kTypeInt64:
    case kTypeDouble:
    case kTypeVoidPointer:
    case kTypeDescriptor:
      return 8;
    case kTypeFraction:
      return 16;
    default:
      return 4;  // Floats, 32-bit integers and all enumerations.
  }
}

const Attribute* Content::find(int name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

void Content::set(int name, int type, std::int64_t count, const void* elements, Bytes element_bytes) {
  Attribute attribute;
  attribute.type = type;
  attribute.count = count;
  const auto* first = static_cast<const char*>(elements);
  attribute.bytes.assign(first, first + static_cast<Bytes>(count) * element_bytes);
  attributes[name] = std::move(attribute);
}

void Content::set_int64(int name, std::int64_t value) { set(name, kTypeInt64, 1, &value, sizeof(value)); }

void Content::set_int32(int name, std::int32_t value) { set(name, kTypeInt32, 1, &value, sizeof(value)); }

void Content::set_text(int name, std::string_view text) {
  set(name, kTypeChar, static_cast<std::int64_t>(text.size()), text.data(), 1);
}

void Content::set_descriptor(int name, std::shared_ptr<Content> descriptor) {
  Attribute attribute;
  attribute.type = kTypeDescriptor;
  attribute.count = 1;
  attribute.descriptors.push_back(std::move(descriptor));
  attributes[name] = std::move(attribute);
}

void Content::set_none(int name, int type) {
  Attribute attribute;
  attribute.type = type;
  attributes[name] = std::move(attribute);
}

namespace {

std::shared_ptr<Content> sole_descriptor(const Content& content, int name) {
  const Attribute* attribute = content.find(name);
  return attribute == nullptr || attribute->descriptors.size() != 1 ? nullptr : attribute->descriptors.front();
}

/// The only engine for any graph, in its only configuration.
int derive_heuristics(Content& heuristics) {
  auto graph = sole_descriptor(heuristics, kHeuristicsOperationGraph);
  if (graph == nullptr) return kBadParam;
  auto engine = std::make_shared<Content>(kEngine);
  engine->set_descriptor(kEngineOperationGraph, std::move(graph));
  engine->set_int64(kEngineGlobalIndex, 0);
  if (const int status = engine->finalize()) return status;
  auto configuration = std::make_shared<Content>(kEngineConfiguration);
  configuration->set_descriptor(kConfigurationEngine, std::move(engine));
  if (const int status = configuration->finalize()) return status;
  heuristics.set_descriptor(kHeuristicsResults, std::move(configuration));
  return kSuccess;
}

int derive_engine(Content& engine) {
  if (sole_descriptor(engine, kEngineOperationGraph) == nullptr) return kBadParam;
  const Attribute* index = engine.find(kEngineGlobalIndex);
  if (index == nullptr) return kBadParam;
  std::int64_t value = 0;
  std::memcpy(&value, index->bytes.data(), sizeof(value));
  // Callers that enumerate the engines of a graph find one.
  if (value != 0) return kNotSupported;
  engine.set_none(kEngineKnobInfo, kTypeDescriptor);
  engine.set_none(kEngineNumericalNote, kTypeNumericalNote);
  engine.set_none(kEngineBehaviorNote, kTypeBehaviorNote);
  engine.set_none(kEngineLayoutInfo, kTypeDescriptor);
  if (engine.find(kEngineSmCountTarget) == nullptr) engine.set_int32(kEngineSmCountTarget, 0);
  return kSuccess;
}

int derive_configuration(Content& configuration) {
  if (sole_descriptor(configuration, kConfigurationEngine) == nullptr) return kBadParam;
  if (configuration.find(kConfigurationKnobChoices) == nullptr) {
    configuration.set_none(kConfigurationKnobChoices, kTypeDescriptor);
  }
  configuration.set_none(kConfigurationIntermediateInfo, kTypeDescriptor);
  configuration.set_int64(kConfigurationWorkspaceSize, 0);  // [Note: workspace of plans]
  configuration.set_int32(kConfigurationSharedMemoryUsed, 0);
  return kSuccess;
}

int derive_plan(Content& plan) {
  if (sole_descriptor(plan, kPlanEngineConfiguration) == nullptr) {
    // A plan from text would have no graph: the text holds nothing compiled.
    return plan.find(kPlanJson) != nullptr ? kNotSupported : kBadParam;
  }
  plan.set_int64(kPlanWorkspaceSize, 0);  // [Note: workspace of plans]
  plan.set_none(kPlanComputedIntermediates, kTypeInt64);
  plan.set_none(kPlanRunOnlyIntermediates, kTypeInt64);
  plan.set_text(kPlanJson, "{\"pretended\":true}");
  return kSuccess;
}

}  // namespace

int Content::finalize() {
  if (finalized) return kNotInitialized;
  int status = kSuccess;
  switch (type) {
    case kEngineHeuristics:
      status = derive_heuristics(*this);
      break;
    case kEngine:
      status = derive_engine(*this);
      break;
    case kEngineConfiguration:
      status = derive_configuration(*this);
      break;
    case kExecutionPlan:
      status = derive_plan(*this);
      break;
    case kOperationGraph:
      if (find(kGraphOperations) == nullptr) return kBadParam;
      set_int64(kGraphEngineCount, 1);
      break;
    case kKernelCache: {
      const bool cached = false;
      set(kKernelCacheIsCached, kTypeBoolean, 1, &cached, 1);
      set_text(kKernelCacheJson, "{}");
      break;
    }
    case kDeviceProperties:
      if (find(kDevicePropertiesJson) == nullptr) set_text(kDevicePropertiesJson, "{}");
      break;
    default:
      break;  // Tensors, operations, variant packs …: they keep their attributes.
  }
  finalized = status == kSuccess;
  return status;
}

const char* name_of(const Content& plan) {
  struct Known {
    int operation;
    const char* name;
  };
  // In order of importance: an attention graph contains matrix products, a fused convolution contains point-wise
  // operations.
  static constexpr Known kKnown[] = {
      {43, "cudnn attention backward"},
      {41, "cudnn attention forward"},
      {10, "cudnn convolution forward"},
      {11, "cudnn convolution backward filter"},
      {12, "cudnn convolution backward data"},
      {19, "cudnn matmul graph"},
      {30, "cudnn norm backward"},
      {29, "cudnn norm forward"},
  };
  const auto configuration = sole_descriptor(plan, kPlanEngineConfiguration);
  const auto engine = configuration == nullptr ? nullptr : sole_descriptor(*configuration, kConfigurationEngine);
  const auto graph = engine == nullptr ? nullptr : sole_descriptor(*engine, kEngineOperationGraph);
  const Attribute* operations = graph == nullptr ? nullptr : graph->find(kGraphOperations);
  if (operations != nullptr) {
    for (const Known& known : kKnown) {
      for (const auto& operation : operations->descriptors) {
        if (operation != nullptr && operation->type == known.operation) return known.name;
      }
    }
  }
  return "cudnn graph";
}

}  // namespace plimsoll::pretend::cudnn
