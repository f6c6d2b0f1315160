# Options of the compiler and the linker for all targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Invariants stay on in release builds, so NDEBUG is never defined.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELEASE "-O2")
# Optimising takes longer than most tests run, above all with a sanitizer. tests/ optimises the long ones.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
if(PLIMSOLL_SANITIZE)
  # A sanitizer's report needs only lines; -g1 halves the compiler's output.
  set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
  set(CMAKE_C_FLAGS_DEBUG "-O0 -g1")
endif()

# Headers and their templates (torch's, JSON's, doctest's) take most of a file's time, so several files are compiled as one.
if(PLIMSOLL_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE ${PLIMSOLL_UNITY})
endif()

find_package(Threads REQUIRED)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

add_library(plimsoll_options INTERFACE)
target_compile_options(plimsoll_options INTERFACE -Wall -Wextra -Wpedantic $<$<BOOL:${PLIMSOLL_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A vendor's C functions may return a structure. libstdc++'s stable_sort calls functions that C++17 deprecates.
  target_compile_options(plimsoll_options INTERFACE -Wno-return-type-c-linkage -Wno-deprecated-declarations)
endif()
target_include_directories(plimsoll_options INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(plimsoll_options INTERFACE Threads::Threads)

if(PLIMSOLL_SANITIZE)
  # A program may ask for the name of an unknown error. The vendors' headers are C, where an enum may have any value.
  set(sanitize -fsanitize=${PLIMSOLL_SANITIZE} -fno-sanitize=enum -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # The tests' own code is not under test, and -fsanitize=undefined adds a third to its compile time.
  target_compile_options(plimsoll_options INTERFACE ${sanitize}
                                                    $<$<BOOL:$<TARGET_PROPERTY:PLIMSOLL_IS_TEST>>:-fno-sanitize=undefined>)
  target_link_options(plimsoll_options INTERFACE ${sanitize})
else()
  # An undefined symbol fails at link time, not when a program starts.
  add_link_options(LINKER:-z,defs)
endif()

find_program(PLIMSOLL_CCACHE ccache)
if(PLIMSOLL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${PLIMSOLL_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${PLIMSOLL_CCACHE}")
endif()
find_program(PLIMSOLL_MOLD mold)
if(PLIMSOLL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
mark_as_advanced(PLIMSOLL_CCACHE PLIMSOLL_MOLD)
