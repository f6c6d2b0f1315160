#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "plimsoll/pretend/cudnn/handle.h"

/// cuDNN's graph interface: everything is a descriptor with numbered attributes. The caller sets attributes, finalizes,
/// and then reads attributes, some of which the library derives. A pretend descriptor keeps the attributes and derives
/// only what leads a caller to an execution plan:
///
///     tensors -> operations -> operation graph -> heuristics -> ONE engine configuration -> plan -> execute
///
/// [Note: workspace of plans] A plan's workspace is 0 bytes. The real size depends on kernels that the library chooses
/// internally, and is not documented. The buffers of attention's backward pass are complete: the caller
/// (cudnn_frontend) allocates them.
namespace plimsoll::pretend::cudnn {

enum DescriptorType : int {
  kEngine = 2,
  kEngineConfiguration = 3,
  kEngineHeuristics = 4,
  kExecutionPlan = 5,
  kOperationGraph = 15,
  kVariantPack = 16,
  kKernelCache = 34,
  kDeviceProperties = 38,
  kDescriptorTypes = 64,  ///< Above those of every cuDNN 9.
};

enum AttributeType : int {
  kTypeHandle = 0,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypeDouble = 5,
  kTypeVoidPointer = 6,
  kTypeNumericalNote = 11,
  kTypeLayoutType = 12,
  kTypeDescriptor = 15,
  kTypeBehaviorNote = 19,
  kTypeInt32 = 23,
  kTypeChar = 24,
  kTypeFraction = 26,
  kAttributeTypes = 64,
};

enum AttributeName : int {
  kHeuristicsOperationGraph = 201,
  kHeuristicsResults = 202,
  kConfigurationEngine = 300,
  kConfigurationIntermediateInfo = 301,
  kConfigurationKnobChoices = 302,
  kConfigurationWorkspaceSize = 303,
  kConfigurationSharedMemoryUsed = 304,
  kPlanEngineConfiguration = 401,
  kPlanWorkspaceSize = 402,
  kPlanComputedIntermediates = 403,
  kPlanRunOnlyIntermediates = 404,
  kPlanJson = 405,
  kGraphOperations = 801,
  kGraphEngineCount = 802,
  kGraphDynamicShape = 803,
  kGraphSameTopology = 804,
  kEngineOperationGraph = 1300,
  kEngineGlobalIndex = 1301,
  kEngineKnobInfo = 1302,
  kEngineNumericalNote = 1303,
  kEngineLayoutInfo = 1304,
  kEngineBehaviorNote = 1305,
  kEngineSmCountTarget = 1306,
  kKernelCacheIsCached = 2401,
  kKernelCacheJson = 2402,
  kDevicePropertiesJson = 2702,
};

struct Content;

/// The elements of one attribute: plain bytes or other descriptors.
struct Attribute {
  int type = 0;
  std::int64_t count = 0;
  std::vector<char> bytes;
  std::vector<std::shared_ptr<Content>> descriptors;
};

/// The content of a descriptor. It is shared: an operation keeps its tensors' contents after the caller destroys the
/// tensors' descriptors, and a query for a descriptor makes the caller's descriptor share ours.
struct Content {
  explicit Content(int type) : type(type) {}

  const int type;
  bool finalized = false;
  std::map<int, Attribute> attributes;

  const Attribute* find(int name) const;
  void set(int name, int type, std::int64_t count, const void* elements, Bytes element_bytes);
  void set_int64(int name, std::int64_t value);
  void set_int32(int name, std::int32_t value);
  void set_text(int name, std::string_view text);
  void set_descriptor(int name, std::shared_ptr<Content> descriptor);
  /// Sets an attribute without elements.
  void set_none(int name, int type);

  /// Checks the required attributes, and derives the attributes that callers read.
  int finalize();
};

/// cudnnBackendDescriptor_t. Only one thread at a time uses a descriptor, as cuDNN requires.
struct BackendDescriptor : Object<0x43444e42> {
  std::shared_ptr<Content> content;
};

/// Bytes of one element of an attribute of `type` (CUDNN_TYPE_BACKEND_DESCRIPTOR: of the caller's handle).
Bytes element_bytes_of(int type);

/// A plan's name in the feed: the most important operation in its graph.
const char* name_of(const Content& plan);

}  // namespace plimsoll::pretend::cudnn
