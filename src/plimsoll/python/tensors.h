#pragma once

#include <torch/csrc/utils/pybind.h>

#include <vector>

#include "plimsoll/nn/hooks/hooks.h"

namespace plimsoll::python {

/// The tensors in a value: in tuples, lists, dictionaries and dataclasses, at any depth. Needs the interpreter's lock.
class FoundTensors {
 public:
  void add(py::handle value);

  const std::vector<at::Tensor>& all() const { return tensors_; }
  /// REQUIRES: nothing is added after it.
  nn::Tensors& as_arguments();

 private:
  void add(py::handle value, int depth);
  void add_tensor(PyObject* object);

  std::vector<at::Tensor> tensors_;
  nn::Tensors arguments_;
};

/// Lets capture look into tensors that are implemented in Python: into wrappers by __tensor_flatten__; other tensors
/// stay as they are. Takes the interpreter's lock itself.
void install_unwrap();

/// Makes nn put hooks on leaves as Python does, beside those of the script (nn::set_leaf_hooks).
void install_leaf_hooks();

}  // namespace plimsoll::python
