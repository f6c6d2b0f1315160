# Precompiled headers. ccache works with them only if it ignores their date; it always compares their contents.
#
# REQUIRES: PlimsollCompiler. Sets plimsoll_headers_launcher and plimsoll_headers_options, for targets that have or reuse precompiled
# headers, and plimsoll_precompile (whether torch-free layers have them).

if(PLIMSOLL_CCACHE)
  set(plimsoll_headers_launcher env CCACHE_SLOPPINESS=pch_defines,time_macros "${PLIMSOLL_CCACHE}")
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang") # Its file for torch has half a gigabyte: ccache gets a checksum.
    list(INSERT plimsoll_headers_launcher 1 CCACHE_PCH_EXTSUM=1)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(plimsoll_headers_options "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(plimsoll_headers_options -fpch-preprocess)
endif()

# The standard library's headers take half of a small file's time. GCC gains nothing. If each file is compiled alone, the build also
# shows that each file includes all that it needs.
set(plimsoll_precompile OFF)
if(PLIMSOLL_UNITY AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(plimsoll_precompile ON)
endif()
set(standard_headers algorithm array atomic charconv cstdint cstring filesystem fstream functional limits map memory mutex optional
                     set span string string_view unordered_map utility variant vector)
list(TRANSFORM standard_headers REPLACE "(.+)" "<\\1>")

# plimsoll_own_headers(TARGET HEADER…): precompiles the standard headers and HEADER… for this target and for targets that reuse them.
function(plimsoll_own_headers target)
  if(plimsoll_precompile)
    target_precompile_headers(${target} PRIVATE ${standard_headers} ${ARGN})
    plimsoll_take_headers(${target})
  endif()
endfunction()

# plimsoll_reuse_headers(TARGET OWNER): the target uses the precompiled headers of OWNER.
function(plimsoll_reuse_headers target owner)
  if(plimsoll_precompile)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    plimsoll_take_headers(${target})
  endif()
endfunction()

function(plimsoll_take_headers target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${plimsoll_headers_options}>")
  if(PLIMSOLL_CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${plimsoll_headers_launcher}")
  endif()
endfunction()
