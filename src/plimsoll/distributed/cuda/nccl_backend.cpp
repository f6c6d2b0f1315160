#include <ATen/Context.h>

#include <new>

#include "plimsoll/distributed/backend.h"

// [Note: ProcessGroupNCCL without nccl.h]
// torch's ProcessGroupNCCL.hpp includes <nccl.h>, which torch's wheels do not contain, and the size of the class
// depends on its version (ncclConfig_t grows). We need two constructors that libtorch_cuda exports, and c10d::Backend's
// virtual functions. So this file declares the class with those alone:
//
//  - If another torch has a different constructor, the linker reports a missing symbol.
//  - The constructors write more bytes than these declarations have, so objects get more memory (kRoom).
//  - The destructor would free with the size of the real class. Allocators that rely on the size (tcmalloc, jemalloc)
//    must not see that. So objects made here are shut down but never freed: a few kilobytes per group.
namespace c10d {

class ProcessGroupNCCL : public Backend {
 public:
  struct Options : Backend::Options {
    explicit Options(bool is_high_priority_stream);
    ~Options() override;
  };
  ProcessGroupNCCL(c10::intrusive_ptr<Store> store, int rank, int size, c10::intrusive_ptr<Options> options);
  ~ProcessGroupNCCL() override;
};

}  // namespace c10d

namespace plimsoll::distributed {
namespace {

constexpr std::size_t kRoom = 32 * 1024;  // Torch 2.13 needs less than 4 KB.

template <class T, class... Arguments>
c10::intrusive_ptr<T> make_never_freed(Arguments&&... arguments) {
  void* room = ::operator new(kRoom);
  auto object = c10::intrusive_ptr<T>::unsafe_steal_from_new(new (room) T(std::forward<Arguments>(arguments)...));
  auto another = object;
  another.release();  // Keeps one reference, so that no other owner destroys the object.
  return object;
}

}  // namespace

Backend make_nccl(const BackendRequest& request) {
  TORCH_CHECK_VALUE(at::globalContext().hasCUDA(),
                    "init_process_group: the \"nccl\" backend needs a GPU, but no GPU is visible. Check the driver and "
                    "CUDA_VISIBLE_DEVICES, or use \"gloo\".");
  auto options = make_never_freed<c10d::ProcessGroupNCCL::Options>(false);
  options->timeout = request.timeout;
  options->global_ranks_in_group = request.global_ranks;
  options->group_name = request.group_name;
  auto backend =
      make_never_freed<c10d::ProcessGroupNCCL>(request.store, request.rank, request.size, std::move(options));
  backend->setSequenceNumberForGroup();
  return backend;
}

}  // namespace plimsoll::distributed
