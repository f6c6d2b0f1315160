#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/object.h"

/// NVRTC: a program "compiles" to a short text with its name and the requested names. The driver's face loads any image
/// and has a function for any name, so an expression is its own lowered name.
namespace plimsoll::pretend::nvrtc {
namespace {

enum Result : int {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kCompilation = 6,
  kNoNamesAfterCompilation = 8,
  kNoLoweredNamesBeforeCompilation = 9,
  kNameNotValid = 10,
};

struct Program : Object<0x4e565254U> {
  std::string name;
  std::map<std::string, std::string> lowered;
  bool compiled = false;
  std::string ptx;
  std::string cubin;  ///< Empty if the options name only a virtual architecture.
};

using Programs = Objects<kInvalidProgram, kInvalidInput, kOutOfMemory>;

/// "-arch=compute_90" and its long forms name a virtual architecture: the result is PTX without machine code.
bool is_virtual(int count, const char* const* options) {
  bool result = true;
  for (int i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    if (option.find("compute_") != std::string_view::npos) result = true;
    if (option.find("sm_") != std::string_view::npos) result = false;
  }
  return result;
}

void compile(Program& program, int count, const char* const* options) {
  program.ptx =
      "// " + program.name + ": for the pretend GPU, not compiled\n.version 8.0\n.target sm_80\n.address_size 64\n";
  for (const auto& [expression, lowered] : program.lowered) program.ptx += "// entry " + lowered + "\n";
  program.cubin = is_virtual(count, options) ? "" : program.ptx;
  program.compiled = true;
}

/// The size of `text` with `ending` bytes of zeros after it.
int size_of(Program* program, const std::string Program::* text, std::size_t ending, std::size_t* bytes) {
  if (!alive(program)) return kInvalidProgram;
  if (bytes == nullptr) return kInvalidInput;
  if (!program->compiled) return kInvalidProgram;
  *bytes = (program->*text).size() + ending;
  return kSuccess;
}

int copy_of(Program* program, const std::string Program::* text, std::size_t ending, char* out) {
  if (!alive(program) || !program->compiled) return kInvalidProgram;
  if (out == nullptr) return kInvalidInput;
  std::memcpy(out, (program->*text).c_str(), (program->*text).size() + ending);
  return kSuccess;
}

}  // namespace
}  // namespace plimsoll::pretend::nvrtc

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nvrtc;

PLIMSOLL_API int nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return kInvalidInput;
  *major = kCudaMajor;
  *minor = kCudaMinor;
  return kSuccess;
}

PLIMSOLL_API const char* nvrtcGetErrorString(int result) {
  static constexpr StatusName kNames[] = {
      {kSuccess, "NVRTC_SUCCESS"},
      {kOutOfMemory, "NVRTC_ERROR_OUT_OF_MEMORY"},
      {kInvalidInput, "NVRTC_ERROR_INVALID_INPUT"},
      {kInvalidProgram, "NVRTC_ERROR_INVALID_PROGRAM"},
      {kCompilation, "NVRTC_ERROR_COMPILATION"},
      {kNoNamesAfterCompilation, "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"},
      {kNoLoweredNamesBeforeCompilation, "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"},
      {kNameNotValid, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID"},
  };
  return name_of(kNames, result, "NVRTC_ERROR unknown");
}

namespace {
#if PLIMSOLL_CUDA_MAJOR >= 13
constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
#else
constexpr int kArchitectures[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};
#endif
}  // namespace

PLIMSOLL_API int nvrtcGetNumSupportedArchs(int* count) { return give(count, std::size(kArchitectures), kInvalidInput); }

PLIMSOLL_API int nvrtcGetSupportedArchs(int* architectures) {
  if (architectures == nullptr) return kInvalidInput;
  std::ranges::copy(kArchitectures, architectures);
  return kSuccess;
}

PLIMSOLL_API int nvrtcCreateProgram(Program** out, const char* source, const char* name, int headers,
                                    const char* const* /*header_texts*/, const char* const* /*include_names*/) {
  if (out == nullptr || source == nullptr || headers < 0) return kInvalidInput;
  *out = nullptr;
  return guarded(kOutOfMemory, [&] {
    auto program = std::make_unique<Program>();
    program->name = name == nullptr ? "default_program" : name;
    *out = program.release();
    return kSuccess;
  });
}

PLIMSOLL_API int nvrtcDestroyProgram(Program** program) {
  if (program == nullptr || !alive(*program)) return kInvalidProgram;
  return Programs::destroy(std::exchange(*program, nullptr));
}

PLIMSOLL_API int nvrtcAddNameExpression(Program* program, const char* expression) {
  if (!alive(program)) return kInvalidProgram;
  if (expression == nullptr) return kInvalidInput;
  if (program->compiled) return kNoNamesAfterCompilation;
  return guarded(kOutOfMemory, [&] {
    // An expression may take the address of the name.
    program->lowered[expression] = expression + (*expression == '&' ? 1 : 0);
    return kSuccess;
  });
}

PLIMSOLL_API int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  if (!alive(program)) return kInvalidProgram;
  if (count < 0 || (count > 0 && options == nullptr)) return kInvalidInput;
  return guarded(kOutOfMemory, [&] {
    compile(*program, count, options);
    return kSuccess;
  });
}

PLIMSOLL_API int nvrtcGetLoweredName(Program* program, const char* expression, const char** lowered) {
  if (!alive(program)) return kInvalidProgram;
  if (expression == nullptr || lowered == nullptr) return kInvalidInput;
  if (!program->compiled) return kNoLoweredNamesBeforeCompilation;
  return guarded(kOutOfMemory, [&] {
    const auto found = program->lowered.find(expression);
    if (found == program->lowered.end()) return kNameNotValid;
    *lowered = found->second.c_str();
    return kSuccess;
  });
}

// PTX is text with a terminator that counts; machine code has no terminator.
PLIMSOLL_API int nvrtcGetPTXSize(Program* program, std::size_t* bytes) {
  return size_of(program, &Program::ptx, 1, bytes);
}
PLIMSOLL_API int nvrtcGetPTX(Program* program, char* out) { return copy_of(program, &Program::ptx, 1, out); }
PLIMSOLL_API int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
  return size_of(program, &Program::cubin, 0, bytes);
}
PLIMSOLL_API int nvrtcGetCUBIN(Program* program, char* out) { return copy_of(program, &Program::cubin, 0, out); }

// The log is always empty: nothing is compiled.
PLIMSOLL_API int nvrtcGetProgramLogSize(Program* program, std::size_t* bytes) {
  if (!alive(program)) return kInvalidProgram;
  return give(bytes, 1, kInvalidInput);
}
PLIMSOLL_API int nvrtcGetProgramLog(Program* program, char* log) {
  if (!alive(program)) return kInvalidProgram;
  return give(log, '\0', kInvalidInput);
}
