// cuDNN's face: the weights and the sizes of recurrent networks, dropout.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "pretend/cudnn_handles.h"

extern "C" {
int cudnnCreateDropoutDescriptor(void**);
int cudnnDestroyDropoutDescriptor(void*);
int cudnnDropoutGetStatesSize(void*, std::size_t*);
int cudnnSetDropoutDescriptor(void*, void*, float, void*, std::size_t, unsigned long long);
int cudnnCreateRNNDescriptor(void**);
int cudnnDestroyRNNDescriptor(void*);
int cudnnSetRNNDescriptor_v8(void*, int, int, int, int, int, int, int, int, int, int, int, int, void*, unsigned);
int cudnnGetRNNWeightSpaceSize(void*, void*, std::size_t*);
int cudnnGetRNNWeightParams(void*, void*, int, std::size_t, const void*, int, void*, void**, void*, void**);
int cudnnCreateRNNDataDescriptor(void**);
int cudnnDestroyRNNDataDescriptor(void*);
int cudnnSetRNNDataDescriptor(void*, int, int, int, int, int, const int*, void*);
int cudnnGetRNNTempSpaceSizes(void*, void*, int, void*, std::size_t*, std::size_t*);
}

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn_test;

namespace {

struct Rnn : Descriptor {
  Rnn(int mode, int bias, bool bidirectional, int input, int hidden, int projection, int layers)
      : Descriptor(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor) {
    REQUIRE(cudnnSetRNNDescriptor_v8(get, 0, mode, bias, bidirectional ? 1 : 0, 0, kFloat, kFloat, 0, input, hidden,
                                     projection, layers, nullptr, 0) == 0);
  }
};

}  // namespace

TEST_CASE("the weight space of a recurrent network holds its weights and nothing else") {
  Handle handle;
  struct Case {
    int mode, bias, input, hidden, projection, layers;
    bool bidirectional;
    std::size_t weights;
  };
  const Case cases[] = {
      // gates x hidden x (input + hidden) and two biases, for each layer and direction.
      {1, 2, 12, 20, 20, 1, false, 20 * (12 + 20) + 2 * 20},
      {2, 2, 12, 20, 20, 2, false, 4 * 20 * (12 + 20 + 2) + 4 * 20 * (20 + 20 + 2)},
      {2, 0, 12, 20, 20, 1, true, 2 * 4 * 20 * (12 + 20)},
      {3, 2, 12, 20, 20, 2, true, 2 * 3 * 20 * (12 + 20 + 2) + 2 * 3 * 20 * (40 + 20 + 2)},
      {3, 1, 12, 20, 20, 1, false, 3 * 20 * (12 + 20 + 1)},
      // With a projection, the hidden state has the width of the projection.
      {2, 2, 12, 20, 6, 1, false, 4 * 20 * (12 + 6 + 2) + 6 * 20},
  };
  for (const Case& c : cases) {
    CAPTURE(c.mode);
    CAPTURE(c.weights);
    Rnn rnn(c.mode, c.bias, c.bidirectional, c.input, c.hidden, c.projection, c.layers);
    std::size_t bytes = 0;
    REQUIRE(cudnnGetRNNWeightSpaceSize(handle.get, rnn.get, &bytes) == 0);
    CHECK(bytes == c.weights * sizeof(float));

    // Every weight belongs to exactly one matrix or bias.
    std::vector<char> space(bytes), covered(bytes / sizeof(float));
    const int linear_layers = 2 * (c.mode == 2 ? 4 : c.mode == 3 ? 3 : 1) + (c.projection != c.hidden ? 1 : 0);
    Tensor matrix, bias;
    for (int layer = 0; layer < c.layers * (c.bidirectional ? 2 : 1); ++layer) {
      for (int linear = 0; linear < linear_layers; ++linear) {
        void *matrix_at = nullptr, *bias_at = nullptr;
        REQUIRE(cudnnGetRNNWeightParams(handle.get, rnn.get, layer, bytes, space.data(), linear, matrix.get, &matrix_at,
                                        bias.get, &bias_at) == 0);
        const auto cover = [&](void* descriptor, void* address) {
          if (address == nullptr) return;
          int rank = 0, sizes[3] = {};
          REQUIRE(cudnnGetTensorNdDescriptor(descriptor, 3, nullptr, &rank, sizes, nullptr) == 0);
          REQUIRE(rank == 3);
          const auto first = static_cast<std::size_t>(static_cast<char*>(address) - space.data()) / sizeof(float);
          const auto count = static_cast<std::size_t>(sizes[0]) * sizes[1] * sizes[2];
          REQUIRE(first + count <= covered.size());
          for (std::size_t i = first; i < first + count; ++i) ++covered[i];
        };
        cover(matrix.get, matrix_at);
        cover(bias.get, bias_at);
      }
    }
    CHECK(std::count(covered.begin(), covered.end(), 1) == static_cast<std::ptrdiff_t>(covered.size()));
  }
}

TEST_CASE("the gates of one layer are contiguous") {
  Handle handle;
  Rnn rnn(2, 2, false, 12, 20, 20, 2);
  std::size_t bytes = 0;
  REQUIRE(cudnnGetRNNWeightSpaceSize(handle.get, rnn.get, &bytes) == 0);
  std::vector<char> space(bytes);
  void* address = nullptr;
  for (int gate = 0; gate < 4; ++gate) {
    // Null means that the caller does not need the value.
    REQUIRE(cudnnGetRNNWeightParams(handle.get, rnn.get, 0, bytes, space.data(), gate, nullptr, &address, nullptr,
                                    nullptr) == 0);
    CHECK(static_cast<char*>(address) - space.data() == gate * 20 * 12 * 4);
  }
  CHECK(cudnnGetRNNWeightParams(handle.get, rnn.get, 2, bytes, space.data(), 0, nullptr, &address, nullptr, nullptr) ==
        kBadParam);
  CHECK(cudnnGetRNNWeightParams(handle.get, rnn.get, 0, bytes, space.data(), 8, nullptr, &address, nullptr, nullptr) ==
        kBadParam);
  CHECK(cudnnGetRNNWeightParams(handle.get, rnn.get, 0, bytes - 1, space.data(), 0, nullptr, &address, nullptr,
                                nullptr) == kBadParam);
}

TEST_CASE("only training needs reserve space, and packed sequences need less") {
  Handle handle;
  Rnn rnn(2, 2, false, 12, 20, 20, 1);
  Descriptor x(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor);
  const int lengths[] = {7, 5, 2};
  std::size_t workspace = 0, reserve = 1, packed = 0, padded = 0;
  REQUIRE(cudnnSetRNNDataDescriptor(x.get, kFloat, 0, 7, 3, 12, lengths, nullptr) == 0);
  REQUIRE(cudnnGetRNNTempSpaceSizes(handle.get, rnn.get, 0, x.get, &workspace, &reserve) == 0);
  CHECK(reserve == 0);
  CHECK(workspace > 0);
  REQUIRE(cudnnGetRNNTempSpaceSizes(handle.get, rnn.get, 1, x.get, &workspace, &padded) == 0);
  REQUIRE(cudnnSetRNNDataDescriptor(x.get, kFloat, 1, 7, 3, 12, lengths, nullptr) == 0);
  REQUIRE(cudnnGetRNNTempSpaceSizes(handle.get, rnn.get, 1, x.get, &workspace, &packed) == 0);
  CHECK(padded == 7 * 3 * 20 * 6 * sizeof(float));  // Four gates, the cell state and the output.
  CHECK(packed == (7 + 5 + 2) * 20 * 6 * sizeof(float));
}

TEST_CASE("dropout needs states for all threads of the device") {
  Handle handle;
  Descriptor dropout(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor);
  std::size_t bytes = 0;
  REQUIRE(cudnnDropoutGetStatesSize(handle.get, &bytes) == 0);
  const Profile& profile = control::profile();
  CHECK(bytes == static_cast<std::size_t>(profile.multiprocessors) * profile.threads_per_multiprocessor * 48);
  char states = 0;
  CHECK(cudnnSetDropoutDescriptor(dropout.get, handle.get, 0.5F, &states, bytes, 1) == 0);
  CHECK(cudnnSetDropoutDescriptor(dropout.get, handle.get, 0.5F, &states, bytes - 1, 1) == kBadParam);
  CHECK(cudnnSetDropoutDescriptor(dropout.get, handle.get, 1.5F, &states, bytes, 1) == kBadParam);
  CHECK(cudnnSetDropoutDescriptor(dropout.get, handle.get, 0.0F, nullptr, 0, 0) == 0);
}
