#include "plimsoll/pretend/cudnn/rnn_descriptor.h"

namespace plimsoll::pretend::cudnn {

int RnnDescriptor::input_columns(int pseudo_layer) const {
  const bool first = pseudo_layer < directions();
  if (first) return skip_input ? 0 : input_size;
  return projection_size * directions();
}

std::int64_t RnnDescriptor::elements_of_layer(int pseudo_layer) const {
  const std::int64_t gate_rows = std::int64_t{gates()} * hidden_size;
  std::int64_t elements = gate_rows * (input_columns(pseudo_layer) + projection_size);
  if (projects()) elements += std::int64_t{projection_size} * hidden_size;
  return elements;
}

std::optional<RnnDescriptor::Part> RnnDescriptor::matrix(int pseudo_layer, int linear_layer) const {
  std::int64_t offset = 0;
  for (int layer = 0; layer < pseudo_layer; ++layer) offset += elements_of_layer(layer);
  const int columns = input_columns(pseudo_layer);
  if (linear_layer < gates()) {
    if (columns == 0) return std::nullopt;
    return Part{offset + std::int64_t{linear_layer} * hidden_size * columns, hidden_size, columns};
  }
  offset += std::int64_t{gates()} * hidden_size * columns;
  if (linear_layer < 2 * gates()) {
    const std::int64_t gate = linear_layer - gates();
    return Part{offset + gate * hidden_size * projection_size, hidden_size, projection_size};
  }
  offset += std::int64_t{gates()} * hidden_size * projection_size;
  return Part{offset, projection_size, hidden_size};
}

std::optional<RnnDescriptor::Part> RnnDescriptor::bias_of(int pseudo_layer, int linear_layer) const {
  if (bias == kNoBias || linear_layer >= 2 * gates()) return std::nullopt;
  const bool of_input = linear_layer < gates();
  if ((bias == kInputBias && !of_input) || (bias == kRecurrentBias && of_input)) return std::nullopt;
  const std::int64_t sets = bias == kDoubleBias ? 2 : 1;
  const std::int64_t before =
      pseudo_layer * sets * gates() + (bias == kRecurrentBias ? linear_layer - gates() : linear_layer);
  return Part{matrix_elements() + before * hidden_size, hidden_size, 1};
}

std::int64_t RnnDescriptor::matrix_elements() const {
  std::int64_t elements = 0;
  for (int layer = 0; layer < pseudo_layers(); ++layer) elements += elements_of_layer(layer);
  return elements;
}

std::int64_t RnnDescriptor::bias_elements() const {
  const std::int64_t sets = bias == kNoBias ? 0 : bias == kDoubleBias ? 2 : 1;
  return sets * pseudo_layers() * gates() * hidden_size;
}

Bytes RnnDescriptor::workspace_bytes(std::int64_t cells) const {
  // The products of input and gates for every time step, and two states of the layer's width.
  const std::int64_t elements = cells * directions() * hidden_size * (gates() + 2);
  return static_cast<Bytes>(elements) * bytes_of(data_type);
}

Bytes RnnDescriptor::reserve_bytes(std::int64_t cells) const {
  // A backward pass needs each gate, the output, an LSTM's cell state, and the hidden part of a GRU's new gate.
  const int kept = gates() + 1 + (mode == kLstm || mode == kGru ? 1 : 0);
  const std::int64_t states = cells * pseudo_layers() * hidden_size * kept;
  const std::int64_t masks = dropout > 0 ? cells * (layers - 1) * directions() * projection_size : 0;
  return static_cast<Bytes>(states + masks) * bytes_of(data_type);
}

}  // namespace plimsoll::pretend::cudnn
