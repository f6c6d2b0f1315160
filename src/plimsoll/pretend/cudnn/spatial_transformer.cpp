#include "plimsoll/pretend/cudnn/handle.h"
#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

namespace plimsoll::pretend::cudnn {

/// cudnnSpatialTransformerDescriptor_t: torch's affine_grid and grid_sample.
struct SpatialTransformerDescriptor : Object<0x43444e53> {
  int sampler = 0;
  int data_type = kFloat;
  int rank = 0;
  Dimensions dimensions{};
};

}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend::cudnn;

PLIMSOLL_API int cudnnCreateSpatialTransformerDescriptor(SpatialTransformerDescriptor** out) { return create(out); }
PLIMSOLL_API int cudnnDestroySpatialTransformerDescriptor(SpatialTransformerDescriptor* transformer) {
  return destroy(transformer);
}

PLIMSOLL_API int cudnnSetSpatialTransformerNdDescriptor(SpatialTransformerDescriptor* transformer, int sampler,
                                                        int data_type, int rank, const int* dimensions) {
  if (live(transformer) == nullptr) return kBadParam;
  if (rank > 4) return kNotSupported;
  if (bytes_of(data_type) == 0 || !copy_dimensions(transformer->dimensions, rank, dimensions)) return kBadParam;
  transformer->sampler = sampler;
  transformer->data_type = data_type;
  transformer->rank = rank;
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnSpatialTfGridGeneratorForward)
PLIMSOLL_CUDNN_WORK(cudnnSpatialTfGridGeneratorBackward)
PLIMSOLL_CUDNN_WORK(cudnnSpatialTfSamplerForward)
PLIMSOLL_CUDNN_WORK(cudnnSpatialTfSamplerBackward)
