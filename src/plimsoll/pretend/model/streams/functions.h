#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// What the process's GPU code registers: kernels and device variables. CUDA builds register tens of thousands of
/// kernels when they are loaded, so adding is cheap and looking up pays for the order. Thread-safe.
class Functions {
 public:
  /// `key` is what launches name the kernel by; `name` must outlive the process's use of it (it is in a binary's data).
  void add_kernel(const void* key, const char* name);
  /// "?" for a key that was never added.
  const char* kernel_name(const void* key);

  /// A kernel of a module that was loaded at run time: makes a key for it. The name is copied.
  const void* make_kernel(const std::string& name);

  /// A key for a variable of a module that was loaded at run time: the same for the same name.
  const void* name_key(const std::string& name);

  void add_variable(const void* key, Bytes bytes);
  /// Where the variable lies in a device's area for variables, and its size. A variable that was never registered is
  /// given a place of 4 KiB.
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

/// The process's. Never destroyed.
Functions& functions();

}  // namespace plimsoll::pretend
