#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <utility>

#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/python/bind.h"
#include "plimsoll/python/errors.h"

namespace plimsoll::python {
namespace {

/// A hook in a tensor's Python table of hooks, which is its only owner.
class PyLeafHook final : public nn::HookOwner {
 public:
  explicit PyLeafHook(nn::TensorHook hook) : hook_(std::move(hook)) {}
  ~PyLeafHook() override {
    const py::gil_scoped_acquire lock;
    handle = {};
  }

  void remove_hook(std::uint64_t) noexcept override {
    const py::gil_scoped_acquire lock;
    discarding_errors("plimsoll: removing a hook of a tensor", [&] {
      if (handle) std::exchange(handle, {}).attr("remove")();
    });
  }

  at::Tensor operator()(const at::Tensor& gradient) const { return hook_(gradient); }

  py::object handle;

 private:
  nn::TensorHook hook_;
};

nn::HookHandle register_leaf_hook(const at::Tensor& leaf, nn::TensorHook hook) {
  const py::gil_scoped_acquire lock;
  const auto owned = std::make_shared<PyLeafHook>(std::move(hook));
  const py::object tensor = py::reinterpret_steal<py::object>(THPVariable_Wrap(leaf));
  const py::cpp_function call([owned](const at::Tensor& gradient) -> py::object {
    const auto alive = owned;
    const auto replaced = (*alive)(gradient);
    return replaced.defined() ? py::cast(replaced) : py::none();
  });
  owned->handle = tensor.attr("register_hook")(call);
  return nn::HookHandle(owned, 0);
}

}  // namespace

void install_leaf_hooks() { nn::set_leaf_hooks(&register_leaf_hook); }

}  // namespace plimsoll::python
