#include <algorithm>
#include <numeric>

#include "plimsoll/pretend/cudnn/dropout.h"
#include "plimsoll/pretend/cudnn/rnn_descriptor.h"
#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

namespace plimsoll::pretend::cudnn {
namespace {

/// Fills the caller's descriptor and address for one part; a missing part has no dimensions and no address. The
/// caller's pointers may be null.
void describe(const RnnDescriptor& rnn, const std::optional<RnnDescriptor::Part>& part, const void* weights,
              TensorDescriptor* descriptor, void** address) {
  if (!part.has_value()) {
    if (descriptor != nullptr) descriptor->rank = 0;
    if (address != nullptr) *address = nullptr;
    return;
  }
  const int sizes[] = {1, part->rows, part->columns};
  if (descriptor != nullptr) descriptor->set_packed(rnn.data_type, sizes);
  if (address == nullptr) return;
  const Bytes offset = static_cast<Bytes>(part->offset) * bytes_of(rnn.data_type);
  *address = weights == nullptr ? nullptr : static_cast<char*>(const_cast<void*>(weights)) + offset;
}

Bytes weight_bytes(const RnnDescriptor& rnn) {
  return static_cast<Bytes>(rnn.matrix_elements() + rnn.bias_elements()) * bytes_of(rnn.data_type);
}

}  // namespace
}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_CUDNN_DESCRIPTOR(RNN, RnnDescriptor)

PLIMSOLL_API int cudnnSetRNNDescriptor_v8(RnnDescriptor* rnn, int algorithm, int mode, int bias, int direction,
                                          int input_mode, int data_type, int math_precision, int math_type,
                                          std::int32_t input_size, std::int32_t hidden_size,
                                          std::int32_t projection_size, std::int32_t layers,
                                          const DropoutDescriptor* dropout, std::uint32_t flags) {
  if (!alive(rnn) || (dropout != nullptr && !alive(dropout))) return kBadParam;
  if (mode < kRnnRelu || mode > kGru || bias < kNoBias || bias > kRecurrentBias) return kBadParam;
  if (input_size <= 0 || hidden_size <= 0 || layers <= 0 || bytes_of(data_type) == 0) return kBadParam;
  if (projection_size <= 0 || projection_size > hidden_size) return kBadParam;
  if (projection_size != hidden_size && mode != kLstm) return kNotSupported;
  if (input_mode != 0 && input_size != hidden_size) return kBadParam;
  rnn->algorithm = algorithm;
  rnn->mode = mode;
  rnn->bias = bias;
  rnn->bidirectional = direction != 0;
  rnn->skip_input = input_mode != 0;
  rnn->data_type = data_type;
  rnn->math_precision = math_precision;
  rnn->math_type = math_type;
  rnn->input_size = input_size;
  rnn->hidden_size = hidden_size;
  rnn->projection_size = projection_size;
  rnn->layers = layers;
  rnn->dropout = dropout == nullptr ? 0.0F : dropout->probability;
  rnn->flags = flags;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetRNNWeightSpaceSize(const Handle* handle, const RnnDescriptor* rnn, std::size_t* bytes) {
  return alive(handle) && alive(rnn) ? give(bytes, weight_bytes(*rnn), kBadParam) : kBadParam;
}

PLIMSOLL_API int cudnnGetRNNWeightParams(const Handle* handle, const RnnDescriptor* rnn, std::int32_t pseudo_layer,
                                         std::size_t weight_space_bytes, const void* weight_space,
                                         std::int32_t linear_layer, TensorDescriptor* matrix, void** matrix_address,
                                         TensorDescriptor* bias, void** bias_address) {
  if (!alive(handle) || !alive(rnn)) return kBadParam;
  if ((matrix != nullptr && !alive(matrix)) || (bias != nullptr && !alive(bias))) return kBadParam;
  if (pseudo_layer < 0 || pseudo_layer >= rnn->pseudo_layers()) return kBadParam;
  if (linear_layer < 0 || linear_layer >= rnn->linear_layers()) return kBadParam;
  if (weight_space_bytes < weight_bytes(*rnn)) return kBadParam;
  describe(*rnn, rnn->matrix(pseudo_layer, linear_layer), weight_space, matrix, matrix_address);
  describe(*rnn, rnn->bias_of(pseudo_layer, linear_layer), weight_space, bias, bias_address);
  return kSuccess;
}

PLIMSOLL_API int cudnnGetRNNTempSpaceSizes(const Handle* handle, const RnnDescriptor* rnn, int forward_mode,
                                           const RnnDataDescriptor* x, std::size_t* workspace, std::size_t* reserve) {
  constexpr int kTraining = 1;
  constexpr int kPacked = 1;
  if (!alive(handle) || !alive(rnn) || !alive(x)) return kBadParam;
  // Packed sequences have one cell for each vector; the others are padded to the longest.
  const std::int64_t cells =
      x->layout == kPacked ? std::accumulate(x->sequence_lengths.begin(), x->sequence_lengths.end(), std::int64_t{0})
                           : std::int64_t{x->max_sequence_length} * x->batch;
  put(workspace, rnn->workspace_bytes(cells));
  put(reserve, forward_mode == kTraining ? rnn->reserve_bytes(cells) : 0);
  return kSuccess;
}

PLIMSOLL_CUDNN_DESCRIPTOR(RNNData, RnnDataDescriptor)

PLIMSOLL_API int cudnnSetRNNDataDescriptor(RnnDataDescriptor* data, int data_type, int layout, int max_sequence_length,
                                           int batch, int vector_size, const int* sequence_lengths,
                                           void* /*padding_fill*/) {
  if (!alive(data) || sequence_lengths == nullptr || bytes_of(data_type) == 0) return kBadParam;
  if (max_sequence_length <= 0 || batch <= 0 || vector_size <= 0) return kBadParam;
  return guarded([&] {
    data->sequence_lengths.assign(sequence_lengths, sequence_lengths + batch);
    data->data_type = data_type;
    data->layout = layout;
    data->max_sequence_length = max_sequence_length;
    data->batch = batch;
    data->vector_size = vector_size;
    return static_cast<int>(kSuccess);
  });
}

PLIMSOLL_API int cudnnGetRNNDataDescriptor(const RnnDataDescriptor* data, int* data_type, int* layout,
                                           int* max_sequence_length, int* batch, int* vector_size, int requested,
                                           int* sequence_lengths, void* /*padding_fill*/) {
  if (!alive(data) || requested < 0) return kBadParam;
  put(data_type, data->data_type);
  put(layout, data->layout);
  put(max_sequence_length, data->max_sequence_length);
  put(batch, data->batch);
  put(vector_size, data->vector_size);
  const auto n = std::min(static_cast<std::size_t>(requested), data->sequence_lengths.size());
  if (sequence_lengths != nullptr) std::copy_n(data->sequence_lengths.begin(), n, sequence_lengths);
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnRNNForward)
PLIMSOLL_CUDNN_WORK(cudnnRNNBackwardData_v8)
PLIMSOLL_CUDNN_WORK(cudnnRNNBackwardWeights_v8)
