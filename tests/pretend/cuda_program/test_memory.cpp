// Host memory that the driver knows, pointer attributes, copies and fills.

#include <cstring>

#include "pretend/cuda_program/program.h"

namespace test_memory {

using namespace program;

namespace {

cudaMemoryType type_of(const void* pointer) {
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
  return attributes.type;
}

template <typename T>
T driver_says(CUpointer_attribute attribute, const void* pointer) {
  T value{};
  CHECK(cuPointerGetAttribute(&value, attribute, reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS);
  return value;
}

}  // namespace

TEST_CASE("managed memory is host memory, counts as managed, and takes nothing from the card") {
  const auto host = control::host();
  const auto card = control::memory(0).used;
  void* managed = nullptr;
  REQUIRE(cudaMallocManaged(&managed, 3_MiB, cudaMemAttachGlobal) == cudaSuccess);
  std::memset(managed, 7, 3_MiB);
  CHECK(control::host().managed == host.managed + 3_MiB);
  CHECK(control::host().pinned == host.pinned);
  CHECK(control::memory(0).used == card);
  CHECK(type_of(managed) == cudaMemoryTypeManaged);
  CHECK(driver_says<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) == 1);
  REQUIRE(cudaFree(managed) == cudaSuccess);
  CHECK(control::host().managed == host.managed);
}

TEST_CASE("managed memory accepts every preferred location; other memory accepts none") {
  void* managed = nullptr;
  void* device = nullptr;
  REQUIRE(cudaMallocManaged(&managed, 3_MiB, cudaMemAttachGlobal) == cudaSuccess);
  REQUIRE(cudaMalloc(&device, 1_MiB) == cudaSuccess);
#if PLIMSOLL_CUDA_MAJOR >= 13
  const cudaMemLocation place{cudaMemLocationTypeDevice, 0};
  const auto prefetch = [&](void* start) { return cudaMemPrefetchAsync(start, 1_MiB, place, 0, nullptr); };
#else
  const int place = 0;
  const auto prefetch = [&](void* start) { return cudaMemPrefetchAsync(start, 1_MiB, place, nullptr); };
#endif
  CHECK(prefetch(managed) == cudaSuccess);
  CHECK(fails_with(cudaErrorInvalidValue, prefetch(device)));
  CHECK(cudaMemAdvise(managed, 1_MiB, cudaMemAdviseSetReadMostly, place) == cudaSuccess);
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemAdvise(device, 1_MiB, cudaMemAdviseSetReadMostly, place)));
  CHECK(cudaFree(managed) == cudaSuccess);
  CHECK(cudaFree(device) == cudaSuccess);
}

TEST_CASE("unimplemented functions of CUDA's headers exist and fail") {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  CHECK(format.x == 32);
  CHECK(format.f == cudaChannelFormatKindFloat);
  CHECK(cudaMallocArray(&array, &format, 16, 16, 0) == cudaErrorNotSupported);
}

TEST_CASE("pinned memory is counted by the byte, keeps its flags, and is freed once") {
  const auto before = control::host().pinned;
  void* pinned = nullptr;
  REQUIRE(cudaHostAlloc(&pinned, 1000, cudaHostAllocPortable | cudaHostAllocMapped) == cudaSuccess);
  CHECK(control::host().pinned == before + 1000);
  CHECK(type_of(pinned) == cudaMemoryTypeHost);
  unsigned flags = 0;
  CHECK(cudaHostGetFlags(&flags, pinned) == cudaSuccess);
  CHECK(flags == (cudaHostAllocPortable | cudaHostAllocMapped));
  void* of_device = nullptr;
  CHECK(cudaHostGetDevicePointer(&of_device, pinned, 0) == cudaSuccess);
  CHECK(of_device == pinned);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(control::host().pinned == before);
  CHECK(fails_with(cudaErrorInvalidValue, cudaFreeHost(pinned)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaHostGetFlags(&flags, pinned)));
}

TEST_CASE("the program's memory is pinned while it is registered, and can be registered once") {
  const auto before = control::host().pinned;
  std::vector<char> own(4096);
  CHECK(type_of(own.data()) == cudaMemoryTypeUnregistered);
  REQUIRE(cudaHostRegister(own.data(), own.size(), cudaHostRegisterPortable) == cudaSuccess);
  CHECK(control::host().pinned == before + own.size());
  CHECK(type_of(own.data() + 100) == cudaMemoryTypeHost);
  CHECK(fails_with(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own.data(), 1, 0)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaFreeHost(own.data())));
  REQUIRE(cudaHostUnregister(own.data()) == cudaSuccess);
  CHECK(control::host().pinned == before);
  CHECK(fails_with(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own.data())));
  CHECK(fails_with(cudaErrorInvalidValue, cudaHostRegister(own.data(), 0, 0)));
}

TEST_CASE("driver and runtime agree on a pointer") {
  const OnDevice on(2);
  void* device = nullptr;
  void* pinned = nullptr;
  REQUIRE(cudaMalloc(&device, 1_MiB) == cudaSuccess);
  REQUIRE(cudaHostAlloc(&pinned, 64, 0) == cudaSuccess);
  for (void* pointer : {device, pinned}) {
    cudaPointerAttributes attributes{};
    REQUIRE(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
    CHECK(attributes.device == 2);
    CHECK(driver_says<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == attributes.device);
    CHECK(driver_says<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) ==
          (attributes.type == cudaMemoryTypeDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    CHECK(driver_says<void*>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer) == attributes.devicePointer);
    CHECK(driver_says<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) == 0);
  }
  CHECK(driver_says<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, pinned) == pinned);
  void* host = nullptr;
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, reinterpret_cast<CUdeviceptr>(device)) ==
        CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_BUFFER_ID, reinterpret_cast<CUdeviceptr>(device)) ==
        CUDA_ERROR_NOT_SUPPORTED);
  cudaFree(device);
  cudaFreeHost(pinned);
}

TEST_CASE("rows are copied between host buffers; a read-back writes zeros and leaves the gaps unchanged") {
  char source[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  char destination[2][3] = {{9, 9, 9}, {9, 9, 9}};
  const auto is = [&](const std::vector<char>& expected) {
    return std::memcmp(destination, expected.data(), sizeof destination) == 0;
  };
  REQUIRE(cudaMemcpy2D(destination, 3, source, 4, 2, 2, cudaMemcpyHostToHost) == cudaSuccess);
  CHECK(is({1, 2, 9, 5, 6, 9}));
  void* device = nullptr;
  std::size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&device, &pitch, 4, 2) == cudaSuccess);
  CHECK(pitch >= 4);
  const auto copies = events_during(Happening::kCopy, [&] {
    REQUIRE(cudaMemcpy2DAsync(device, pitch, source, 4, 4, 2, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
  });
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].event.bytes == 8);
  CHECK(copies[0].event.destination == device);
  REQUIRE(cudaMemcpy2D(destination, 3, device, pitch, 2, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(is({0, 0, 9, 0, 0, 9}));
  cudaFree(device);
}

TEST_CASE("a fill sets host memory, and is reported for device memory") {
  char host[2][4] = {};
  REQUIRE(cudaMemset(host, 1, sizeof host) == cudaSuccess);
  CHECK(host[1][3] == 1);
  REQUIRE(cudaMemset2DAsync(host, 4, 2, 3, 2, nullptr) == cudaSuccess);
  CHECK(std::memcmp(host, "\2\2\2\1\2\2\2\1", sizeof host) == 0);
  REQUIRE(cudaMemset2D(host, 4, 3, 1, 2) == cudaSuccess);
  CHECK(std::memcmp(host, "\3\2\2\1\3\2\2\1", sizeof host) == 0);
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 1_MiB) == cudaSuccess);
  const auto fills = events_during(Happening::kFill, [&] {
    CHECK(cudaMemset(device, 0, 100) == cudaSuccess);
    CHECK(cudaMemsetAsync(device, 0, 200, nullptr) == cudaSuccess);
    CHECK(cudaMemset2DAsync(device, 512, 0, 30, 10, nullptr) == cudaSuccess);
  });
  REQUIRE(fills.size() == 3);
  CHECK(fills[0].event.bytes == 100);
  CHECK(fills[1].event.bytes == 200);
  CHECK(fills[2].event.bytes == 300);
  for (const auto& fill : fills) CHECK(fill.event.destination == device);
  cudaFree(device);
}

TEST_CASE("calls for memory and events of another process are refused by name") {
  OwnEvent event;
  void* pointer = nullptr;
  cudaEvent_t opened = nullptr;
  cudaIpcMemHandle_t of_memory{};
  cudaIpcEventHandle_t of_event{};
  REQUIRE(cudaMalloc(&pointer, 1) == cudaSuccess);
  CHECK(fails_with(cudaErrorNotSupported, cudaIpcGetMemHandle(&of_memory, pointer)));
  CHECK(std::string(cudaGetErrorString(cudaErrorNotSupported)).find("cudaIpcGetMemHandle") != std::string::npos);
  CHECK(cudaFree(pointer) == cudaSuccess);
  CHECK(fails_with(cudaErrorNotSupported, cudaIpcOpenMemHandle(&pointer, of_memory, 0)));
  CHECK(fails_with(cudaErrorNotSupported, cudaIpcCloseMemHandle(pointer)));
  CHECK(fails_with(cudaErrorNotSupported, cudaIpcGetEventHandle(&of_event, event)));
  CHECK(fails_with(cudaErrorNotSupported, cudaIpcOpenEventHandle(&opened, of_event)));
  CUmemGenericAllocationHandle handle = 0;
  int descriptor = -1;
  const auto kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CHECK(cuMemExportToShareableHandle(&descriptor, handle, kind, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemImportFromShareableHandle(&handle, &descriptor, kind) == CUDA_ERROR_NOT_SUPPORTED);
  const char* text = nullptr;
  CHECK(cuGetErrorString(CUDA_ERROR_NOT_SUPPORTED, &text) == CUDA_SUCCESS);
  CHECK(std::string(text).find("cuMemImportFromShareableHandle") != std::string::npos);
  for (const char* name :
       {"cudaIpcGetMemHandle", "cudaIpcOpenMemHandle", "cudaIpcCloseMemHandle", "cudaIpcGetEventHandle",
        "cudaIpcOpenEventHandle", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"}) {
    CAPTURE(name);
    CHECK(failed_by_name(name));
  }
}

TEST_CASE("a copy to a device variable is reported with the address; a copy from it is a read-back") {
  static char variable = 0;
  __cudaRegisterVar(nullptr, &variable, nullptr, "variable", 0, 64, 1, 0);
  void* start = nullptr;
  REQUIRE(cudaGetSymbolAddress(&start, &variable) == cudaSuccess);
  int value = 42;
  const auto copies = events_during(Happening::kCopy, [&] {
    CHECK(cudaMemcpyToSymbol(&variable, &value, sizeof value, 8, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemcpyToSymbolAsync(&variable, &value, sizeof value, 60, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
  });
  REQUIRE(copies.size() == 2);
  CHECK(copies[0].event.source == &value);
  CHECK(copies[0].event.destination == static_cast<char*>(start) + 8);
  CHECK(copies[0].event.bytes == sizeof value);
  CHECK(copies[1].event.destination == static_cast<char*>(start) + 60);
  const auto read_backs = events_during(Happening::kReadBack, [&] {
    CHECK(cudaMemcpyFromSymbol(&value, &variable, sizeof value, 8, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(cudaMemcpyFromSymbolAsync(&value, &variable, 1, 0, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
  });
  REQUIRE(read_backs.size() == 2);
  CHECK(read_backs[0].event.source == static_cast<char*>(start) + 8);
  CHECK(value == 0);
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemcpyToSymbol(&variable, &value, sizeof value, 61, cudaMemcpyDefault)));
}

TEST_CASE("a captured fill of rows runs at the graph's launch") {
  OwnStream stream;
  char host[2][4] = {};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(cudaMemset2DAsync(host, 4, 2, 3, 2, stream) == cudaSuccess);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(host[0][0] == 0);
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(std::memcmp(host, "\2\2\2\0\2\2\2\0", sizeof host) == 0);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace test_memory
