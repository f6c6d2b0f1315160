#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// The kernels and device variables that the GPU code of the process registers. CUDA builds register tens of thousands
/// of kernels at load time, so add is cheap and the first lookup sorts. Thread-safe.
class Functions {
 public:
  /// `key` identifies the kernel in launches. `name` points into the binary's data and must stay valid.
  void add_kernel(const void* key, const char* name);
  /// "?" for an unknown key.
  const char* kernel_name(const void* key);

  /// Makes a key for a kernel of a module loaded at run time. Copies the name.
  const void* make_kernel(const std::string& name);

  /// Makes a key for a variable of a module loaded at run time: one key for each name.
  const void* name_key(const std::string& name);

  void add_variable(const void* key, Bytes bytes);
  /// The place of a variable in a device's area for variables, and its size. An unregistered variable gets 4 KiB.
  struct Place {
    Bytes offset;
    Bytes bytes;
  };
  Place variable(const void* key);

 private:
  struct Kernel {
    const void* key;
    const char* name;
  };

  std::mutex mutex_;
  std::vector<Kernel> kernels_;
  bool sorted_ = true;
  std::vector<std::string*> made_;
  std::unordered_map<std::string, char> names_;
  std::unordered_map<const void*, Place> variables_;
  Bytes next_offset_ = 0;
};

/// The functions of the process. Never destroyed.
Functions& functions();

}  // namespace plimsoll::pretend
