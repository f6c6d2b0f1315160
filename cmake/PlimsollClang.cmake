# Clang takes half of GCC's time: it instantiates the templates of torch's headers once, with the precompiled header. GCC does so
# for each file. Clang is used if it is installed and no compiler is named (CC, CXX, CMAKE_C_COMPILER, CMAKE_CXX_COMPILER, a
# toolchain file). A build folder keeps its compiler. GCC 12 gives the same results.
#
# REQUIRES: is included before project().

if(DEFINED CMAKE_CXX_COMPILER OR DEFINED CMAKE_C_COMPILER OR DEFINED ENV{CXX} OR DEFINED ENV{CC} OR DEFINED CMAKE_TOOLCHAIN_FILE)
  return()
endif()
find_program(PLIMSOLL_CLANG clang-19)
find_program(PLIMSOLL_CLANGXX clang++-19)
mark_as_advanced(PLIMSOLL_CLANG PLIMSOLL_CLANGXX)
if(NOT PLIMSOLL_CLANG OR NOT PLIMSOLL_CLANGXX)
  return()
endif()
if(PLIMSOLL_SANITIZE) # The runtimes of sanitizers have their own package.
  execute_process(COMMAND "${PLIMSOLL_CLANGXX}" -print-resource-dir OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(GLOB runtimes "${resources}/lib/*/libclang_rt.tsan*")
  if(NOT runtimes)
    message(STATUS "Clang has no runtimes for sanitizers (libclang-rt-19-dev): using the default compiler")
    return()
  endif()
endif()
set(CMAKE_C_COMPILER "${PLIMSOLL_CLANG}")
set(CMAKE_CXX_COMPILER "${PLIMSOLL_CLANGXX}")
