// cuFile's face: sizes are exact, contents of device memory are zeros.

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/machine.h"

extern "C" {
struct CufileError {
  int operation, cuda;
};
struct CufileDescription {
  int type;
  union {
    int descriptor;
    void* handle;
  };
  const void* file_system;
};
CufileError cuFileDriverOpen();
CufileError cuFileDriverClose();
CufileError cuFileHandleRegister(void**, CufileDescription*);
void cuFileHandleDeregister(void*);
CufileError cuFileBufRegister(const void*, std::size_t, int);
CufileError cuFileBufDeregister(const void*);
ssize_t cuFileRead(void*, void*, std::size_t, off_t, off_t);
ssize_t cuFileWrite(void*, const void*, std::size_t, off_t, off_t);
}

using namespace plimsoll::pretend;

namespace {

struct File {
  explicit File(const std::string& text) : stream(std::tmpfile()) {
    REQUIRE(stream != nullptr);
    REQUIRE(std::fwrite(text.data(), 1, text.size(), stream) == text.size());
    REQUIRE(std::fflush(stream) == 0);
    CufileDescription description{1, {fileno(stream)}, nullptr};
    REQUIRE(cuFileHandleRegister(&get, &description).operation == 0);
  }
  ~File() {
    cuFileHandleDeregister(get);
    std::fclose(stream);
  }
  std::string text() const {
    std::string text(64, '?');
    const ssize_t n = pread(fileno(stream), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(n));
    return text;
  }
  std::FILE* stream;
  void* get = nullptr;
};

struct DeviceBuffer {
  DeviceBuffer() : address(*machine().device(0).memory.allocate(1 << 20)) {}
  ~DeviceBuffer() { machine().device(0).memory.free(address); }
  void* get() const { return reinterpret_cast<void*>(address); }
  Address address;
};

}  // namespace

TEST_CASE("a read into device memory returns the number of bytes in the file") {
  File file("abcdef");
  DeviceBuffer buffer;
  CHECK(cuFileRead(file.get, buffer.get(), 4, 0, 0) == 4);
  CHECK(cuFileRead(file.get, buffer.get(), 100, 2, 8) == 4);
  CHECK(cuFileRead(file.get, buffer.get(), 100, 50, 0) == 0);
}

TEST_CASE("a write from device memory writes zeros and counts as a read-back") {
  File file("abcdef");
  DeviceBuffer buffer;
  const std::uint64_t before = control::work().read_backs;
  CHECK(cuFileWrite(file.get, buffer.get(), 3, 2, 0) == 3);
  CHECK(file.text() == std::string("ab\0\0\0f", 6));
  CHECK(control::work().read_backs == before + 1);
}

TEST_CASE("host memory is read and written with its contents") {
  File file("abcdef");
  char text[] = "XYZ";
  CHECK(cuFileWrite(file.get, text, 2, 1, 1) == 2);
  CHECK(file.text() == "aYZdef");
  CHECK(cuFileRead(file.get, text, 3, 0, 0) == 3);
  CHECK(std::string(text) == "aYZ");
}

TEST_CASE("an unregistered file is an error") {
  std::uint64_t foreign[4] = {};
  char byte = 0;
  CHECK(cuFileRead(foreign, &byte, 1, 0, 0) == -5027);
  CHECK(cuFileBufDeregister(&byte).operation == 5024);
  CHECK(cuFileBufRegister(&byte, 1, 0).operation == 0);
  CHECK(cuFileBufRegister(&byte, 1, 0).operation == 5023);
  CHECK(cuFileBufDeregister(&byte).operation == 0);
  CufileDescription description{1, {-1}, nullptr};
  void* file = nullptr;
  CHECK(cuFileHandleRegister(&file, &description).operation == 5018);
  CHECK(cuFileDriverClose().operation == 5001);
  CHECK(cuFileDriverOpen().operation == 0);
  CHECK(cuFileDriverClose().operation == 0);
}
