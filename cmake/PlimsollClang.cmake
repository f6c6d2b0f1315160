# Clang compiles all of this in half of GCC's time, torch's headers above all: it makes their templates once, with the precompiled
# header, and GCC anew for each file. So it is taken where it is installed and nobody names a compiler (CC, CXX,
# CMAKE_C_COMPILER, CMAKE_CXX_COMPILER, a toolchain file); a build folder keeps the one that it was made with. With GCC 12 everything
# is the same.
#
# REQUIRES: comes before project().

if(DEFINED CMAKE_CXX_COMPILER OR DEFINED CMAKE_C_COMPILER OR DEFINED ENV{CXX} OR DEFINED ENV{CC} OR DEFINED CMAKE_TOOLCHAIN_FILE)
  return()
endif()
find_program(PLIMSOLL_CLANG clang-19)
find_program(PLIMSOLL_CLANGXX clang++-19)
mark_as_advanced(PLIMSOLL_CLANG PLIMSOLL_CLANGXX)
if(NOT PLIMSOLL_CLANG OR NOT PLIMSOLL_CLANGXX)
  return()
endif()
if(PLIMSOLL_SANITIZE) # Their runtimes are a package of their own.
  execute_process(COMMAND "${PLIMSOLL_CLANGXX}" -print-resource-dir OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(GLOB runtimes "${resources}/lib/*/libclang_rt.tsan*")
  if(NOT runtimes)
    message(STATUS "Clang is here without the sanitizers' runtimes (libclang-rt-19-dev): the default compiler is taken")
    return()
  endif()
endif()
set(CMAKE_C_COMPILER "${PLIMSOLL_CLANG}")
set(CMAKE_CXX_COMPILER "${PLIMSOLL_CLANGXX}")
