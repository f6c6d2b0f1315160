# Headers that are compiled once and not for each file, and how ccache takes part: only where it is told that their date does not matter
# (their contents always do).
#
# REQUIRES: PlimsollCompiler. Sets plimsoll_headers_launcher and plimsoll_headers_options, for targets that have or reuse such headers,
# and plimsoll_precompile (are the headers of what does not see torch compiled once?).

if(PLIMSOLL_CCACHE)
  set(plimsoll_headers_launcher env CCACHE_SLOPPINESS=pch_defines,time_macros "${PLIMSOLL_CCACHE}")
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang") # Its file has half a gigabyte for torch: ccache is given a sum of it.
    list(INSERT plimsoll_headers_launcher 1 CCACHE_PCH_EXTSUM=1)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(plimsoll_headers_options "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(plimsoll_headers_options -fpch-preprocess)
endif()

# Half of what a small file takes is the standard library's headers: those that most files have. GCC gains nothing by it, and where
# each file is compiled by itself, each is to show that it includes what it needs.
set(plimsoll_precompile OFF)
if(PLIMSOLL_UNITY AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(plimsoll_precompile ON)
endif()
set(standard_headers algorithm array atomic charconv cstdint cstring filesystem fstream functional limits map memory mutex optional
                     set span string string_view unordered_map utility variant vector)
list(TRANSFORM standard_headers REPLACE "(.+)" "<\\1>")

# plimsoll_own_headers(TARGET HEADER…): the target has the standard headers, and those named, compiled once, for itself and others.
function(plimsoll_own_headers target)
  if(plimsoll_precompile)
    target_precompile_headers(${target} PRIVATE ${standard_headers} ${ARGN})
    plimsoll_take_headers(${target})
  endif()
endfunction()

# plimsoll_reuse_headers(TARGET OWNER): the target is compiled with the headers of another one.
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
