#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>

#include "plimsoll/nn/module_contents.h"

namespace plimsoll::python {

/// Stands for a torch.nn.Module of Python's. There is one for each that was met, until Python lets go of the module.
///
/// It holds nothing of Python's: a thread without the interpreter's lock may be the last to drop it. Everything but
/// that needs the lock.
class PyModule final : public nn::ForeignModule {
 public:
  static std::shared_ptr<PyModule> of(py::handle module);

  /// The module; None where `of` is none of Python's, or gone.
  static py::object object_of(const torch::nn::Module* module);

  std::string type_name() const override;
  nn::NamedModules own_children() const override;
  std::vector<at::Tensor> own_parameters() const override;
  std::vector<at::Tensor> own_buffers() const override;

  PyObject* address() const { return address_; }

  /// Use `of`.
  explicit PyModule(PyObject* address) : address_(address) {}

 private:
  PyObject* const address_;  ///< Not owned. It lives while this is in the table of `of`.
};

}  // namespace plimsoll::python
