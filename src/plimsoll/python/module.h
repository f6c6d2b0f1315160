#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>

#include "plimsoll/nn/module_contents.h"

namespace plimsoll::python {

/// The stand-in of a Python torch.nn.Module: one for each module that was seen, until Python drops the module.
///
/// It holds no Python object, because a thread without the interpreter's lock may be the last to drop it. All other
/// uses need the lock.
class PyModule final : public nn::ForeignModule {
 public:
  static std::shared_ptr<PyModule> of(py::handle module);

  /// The Python module; None if `of` is not a stand-in, or if the module is gone.
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
