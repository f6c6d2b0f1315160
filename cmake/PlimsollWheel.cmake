# A wheel (scikit-build-core sets SKBUILD) is built for the torch of the interpreter that runs pip, not for the torch in
# .plimsoll/venv. The build fetches CUDA's headers. It does not import torch, whose CUDA build may lack NVIDIA's libraries.
#
# REQUIRES: PlimsollCompiler, which finds Python3_EXECUTABLE; is included before PlimsollPretend. Sets plimsoll_for_wheel,
# PLIMSOLL_TORCH_LIB and PLIMSOLL_PYTHON, but not in the cache: a build folder of ./plimsoll keeps its settings.

set(plimsoll_for_wheel OFF)
if(NOT SKBUILD)
  return()
endif()
set(plimsoll_for_wheel ON)

if(PLIMSOLL_PYTHON STREQUAL "auto")
  set(PLIMSOLL_PYTHON "${Python3_EXECUTABLE}")
endif()
if(PLIMSOLL_TORCH_LIB STREQUAL "auto")
  # This is the build folder of ./plimsoll, which serves only a wheel for the same interpreter. Its next configuration must be
  # ./plimsoll's again. Without SKBUILD in the cache, scikit-build-core does not clear the folder.
  set(own_python "${PROJECT_SOURCE_DIR}/.plimsoll/venv/bin/python")
  unset(SKBUILD CACHE)
  set(Python3_EXECUTABLE "${own_python}" CACHE PATH "" FORCE)
  file(REMOVE "${PROJECT_BINARY_DIR}/.skbuild-info.json")
  cmake_path(GET PLIMSOLL_PYTHON PARENT_PATH wheel_environment)
  cmake_path(GET own_python PARENT_PATH own_environment)
  file(REAL_PATH "${wheel_environment}" wheel_environment)
  file(REAL_PATH "${own_environment}" own_environment)
  if(NOT wheel_environment STREQUAL own_environment)
    message(FATAL_ERROR "${PROJECT_BINARY_DIR} is built for ${own_python}, but this wheel is for ${PLIMSOLL_PYTHON}: "
                        "leave out `-C build-dir=…`, or name another folder.")
  endif()
endif()

set(plimsoll_wheel_torch 2.13) # as in pyproject.toml and python/plimsoll/native.py

execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c
          "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin) if s else '')"
  WORKING_DIRECTORY /
  OUTPUT_VARIABLE wheel_torch OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed OR NOT wheel_torch)
  message(FATAL_ERROR "${Python3_EXECUTABLE} has no torch, and plimsoll is compiled against the torch that it is used with: "
                      "install torch==${plimsoll_wheel_torch}.* first, then build with "
                      "`pip install --no-build-isolation .`, which lets the build see it.")
endif()
file(STRINGS "${wheel_torch}/version.py" lines REGEX "^(__version__|cuda)[ :=]")
string(REGEX MATCH "__version__[^=]*= *'([^']+)'" matched "${lines}")
set(wheel_torch_version "${CMAKE_MATCH_1}")
string(REGEX MATCH "cuda[^=]*= *'([0-9]+)" matched "${lines}")
set(wheel_cuda_major "${CMAKE_MATCH_1}")
if(NOT wheel_torch_version MATCHES "^${plimsoll_wheel_torch}\\.")
  message(FATAL_ERROR "plimsoll ${PROJECT_VERSION} is for torch ${plimsoll_wheel_torch}; ${Python3_EXECUTABLE} has torch "
                      "${wheel_torch_version} in ${wheel_torch}. Install torch==${plimsoll_wheel_torch}.*; or use ./plimsoll "
                      "of the source tree, whose `run --python` takes older ones.")
endif()

if(NOT PLIMSOLL_TORCH_LIB)
  set(PLIMSOLL_TORCH_LIB "${wheel_torch}/lib")
endif()
message(STATUS "Wheel: for torch ${wheel_torch_version} in ${wheel_torch}")

set(headers_of_packages nlohmann-json3-dev nlohmann/json.hpp libfmt-dev fmt/format.h libtomlplusplus-dev
                        toml++/toml.h)
while(headers_of_packages)
  list(POP_FRONT headers_of_packages package header)
  find_path(PLIMSOLL_HAS_${package} ${header})
  mark_as_advanced(PLIMSOLL_HAS_${package})
  if(NOT PLIMSOLL_HAS_${package})
    list(APPEND missing_headers ${header})
    list(APPEND missing_packages ${package})
  endif()
endwhile()
if(missing_packages)
  list(JOIN missing_headers ", " missing_headers)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR "Headers are missing: ${missing_headers}. On Debian: `apt-get install ${missing_packages}`.")
endif()

if(wheel_cuda_major AND PLIMSOLL_CUDA_INCLUDE STREQUAL "auto")
  set(headers "${PROJECT_SOURCE_DIR}/.plimsoll/headers/cu${wheel_cuda_major}")
  if(NOT EXISTS "${headers}/complete")
    message(STATUS "Wheel: fetching CUDA ${wheel_cuda_major}'s headers")
    execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/cuda_headers.py" ${wheel_cuda_major}
                            "${headers}" RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "CUDA ${wheel_cuda_major}'s headers are needed, and pip could not download them (above). Let it "
                          "reach a package index; or, where a CUDA toolkit is installed, name the folder of its "
                          "cuda_runtime_api.h with `-C cmake.define.PLIMSOLL_CUDA_INCLUDE=/usr/local/cuda/include`.")
    endif()
  endif()
endif()
