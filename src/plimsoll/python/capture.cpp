#include "plimsoll/capture/capture.h"

#include <torch/csrc/DynamicTypes.h>

#include <cstdint>

#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/capture/noted_storages.h"
#include "plimsoll/python/bind.h"

namespace plimsoll::python {

using namespace py::literals;

namespace {

c10::Storage storage_of(py::handle storage) {
  TORCH_CHECK_TYPE(torch::isStorage(storage.ptr()), "expected an UntypedStorage");
  return torch::createStorage(storage.ptr());
}

}  // namespace

void bind_capture(py::module_& module) {
  module.def("wait_for_cuda", &capture::wait_for_cuda);
  module.def("start_late_sources", &capture::start_late_sources);
  module.def(
      "note_storage",
      [](py::handle storage, const at::Device& device, std::uint64_t bytes) {
        return capture::note_storage(storage_of(storage), device, bytes);
      },
      "storage"_a, "device"_a, "bytes"_a);
  module.def(
      "noted_storage_resized",
      [](py::handle storage, std::uint64_t bytes) { capture::noted_storage_resized(storage_of(storage), bytes); },
      "storage"_a, "bytes"_a);
}

}  // namespace plimsoll::python
