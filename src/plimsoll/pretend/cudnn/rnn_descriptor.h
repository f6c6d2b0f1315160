#pragma once

#include <optional>
#include <vector>

#include "plimsoll/pretend/cudnn/handle.h"

namespace plimsoll::pretend::cudnn {

enum RnnMode : int { kRnnRelu = 0, kRnnTanh = 1, kLstm = 2, kGru = 3 };
enum RnnBias : int { kNoBias = 0, kInputBias = 1, kDoubleBias = 2, kRecurrentBias = 3 };

/// cudnnRNNDescriptor_t, and the layout of its weights.
///
/// For each pseudo-layer (layer × direction), the weight space holds the matrices of its input, one a gate, then those
/// of its hidden state, then the projection of an LSTM, if any. The biases follow all matrices, in the same order. The
/// ids of linear layers count the input's matrices from 0, then the hidden state's, then the projection (8 for an
/// LSTM).
///
///     | W0 i f c o | R0 i f c o | P0 | W1 … | R1 … | P1 | bW0 i f c o | bR0 i f c o | bW1 … |
struct RnnDescriptor : Object<0x43444e52> {
  int algorithm = 0;
  int mode = kRnnRelu;
  int bias = kDoubleBias;
  bool bidirectional = false;
  bool skip_input = false;  ///< The first layer adds its input directly, without matrices.
  int data_type = kFloat;
  int math_precision = kFloat;
  int math_type = 0;
  int input_size = 0;
  int hidden_size = 0;
  int projection_size = 0;  ///< Equals hidden_size without a projection.
  int layers = 0;
  float dropout = 0;
  unsigned flags = 0;

  /// One matrix or one bias. `offset` counts elements from the start of the weight space.
  struct Part {
    std::int64_t offset;
    int rows;
    int columns;
    std::int64_t elements() const { return std::int64_t{rows} * columns; }
  };

  int gates() const { return mode == kLstm ? 4 : mode == kGru ? 3 : 1; }
  int directions() const { return bidirectional ? 2 : 1; }
  int pseudo_layers() const { return layers * directions(); }
  bool projects() const { return projection_size != hidden_size; }
  int linear_layers() const { return 2 * gates() + (projects() ? 1 : 0); }

  /// Nothing if this linear layer has no matrix (or no bias). REQUIRES: 0 <= pseudo_layer < pseudo_layers(), 0 <=
  /// linear_layer < linear_layers().
  std::optional<Part> matrix(int pseudo_layer, int linear_layer) const;
  std::optional<Part> bias_of(int pseudo_layer, int linear_layer) const;

  std::int64_t matrix_elements() const;
  std::int64_t bias_elements() const;

  /// The memory of one run over `cells` (time steps × batch). The real sizes are not documented; these follow from the
  /// cell's equations. `workspace` has the gates of one layer and its states, `reserve` has the values of every layer
  /// that a backward pass needs, with the masks of dropout.
  Bytes workspace_bytes(std::int64_t cells) const;
  Bytes reserve_bytes(std::int64_t cells) const;

 private:
  int input_columns(int pseudo_layer) const;
  std::int64_t elements_of_layer(int pseudo_layer) const;
};

/// cudnnRNNDataDescriptor_t.
struct RnnDataDescriptor : Object<0x43444e51> {
  int data_type = kFloat;
  int layout = 0;
  int max_sequence_length = 0;
  int batch = 0;
  int vector_size = 0;
  std::vector<int> sequence_lengths;
};

}  // namespace plimsoll::pretend::cudnn
