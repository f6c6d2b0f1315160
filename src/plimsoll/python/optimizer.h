#pragma once

#include <torch/csrc/utils/pybind.h>

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/nn/optim/step_observable.h"

namespace plimsoll::python {

/// A Python torch.optim.Optimizer, for the time of one look. Needs the interpreter's lock.
class PyOptimizer final : public nn::StepObservable {
 public:
  explicit PyOptimizer(py::object optimizer) : optimizer_(std::move(optimizer)) {}

  std::string optimizer_name() const override;
  std::vector<at::Tensor> parameters() const override;
  void for_each_state(const nn::StateVisitor& visit) const override;

 private:
  py::object optimizer_;
};

}  // namespace plimsoll::python
