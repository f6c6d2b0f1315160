#pragma once

// The handle and descriptors for all tests of cuDNN's face, destroyed with their scope.

#include <doctest/doctest.h>

extern "C" {
int cudnnCreate(void**);
int cudnnDestroy(void*);
int cudnnCreateTensorDescriptor(void**);
int cudnnDestroyTensorDescriptor(void*);
int cudnnGetTensorNdDescriptor(void*, int, int*, int*, int*, int*);
}

namespace plimsoll::pretend::cudnn_test {

inline constexpr int kBadParam = 2000;
inline constexpr int kFloat = 0;

struct Handle {
  Handle() { REQUIRE(cudnnCreate(&get) == 0); }
  ~Handle() { CHECK(cudnnDestroy(get) == 0); }
  void* get = nullptr;
};

/// Any descriptor of the classic interface.
struct Descriptor {
  Descriptor(int (*create)(void**), int (*destroy)(void*)) : destroy(destroy) { REQUIRE(create(&get) == 0); }
  ~Descriptor() { CHECK(destroy(get) == 0); }
  int (*destroy)(void*);
  void* get = nullptr;
};

struct Tensor : Descriptor {
  Tensor() : Descriptor(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor) {}
};

}  // namespace plimsoll::pretend::cudnn_test
