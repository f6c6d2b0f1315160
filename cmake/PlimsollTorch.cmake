# The torch of a wheel, for C++. torch's own CMake package asks for a CUDA toolkit if torch is a CUDA build; Plimsoll needs no toolkit.
#
# REQUIRES: PlimsollPretend, which finds torch_lib. Sets plimsoll_torch_cpp (whether torch has headers to compile against). If so, it
# also defines the target plimsoll_torch (headers and libraries) and functions for targets that use torch.

set(plimsoll_torch_cpp OFF)
if(NOT torch_lib OR PLIMSOLL_ONLY_PRETEND OR PLIMSOLL_SANITIZE)
  return()
endif()
get_filename_component(torch_folder "${torch_lib}" DIRECTORY)
if(NOT EXISTS "${torch_folder}/include/torch/csrc/api/include/torch/all.h")
  message(STATUS "torch for C++: no headers beside ${torch_lib}: what stands on torch is left out")
  return()
endif()
set(plimsoll_torch_cpp ON)

foreach(part c10 torch_cpu torch c10_cuda torch_cuda)
  if(EXISTS "${torch_lib}/lib${part}.so")
    add_library(plimsoll_torch_${part} SHARED IMPORTED)
    set_target_properties(
      plimsoll_torch_${part} PROPERTIES IMPORTED_LOCATION "${torch_lib}/lib${part}.so" IMPORTED_SONAME "lib${part}.so")
    list(APPEND torch_parts plimsoll_torch_${part})
  endif()
endforeach()

add_library(plimsoll_torch INTERFACE)
target_include_directories(plimsoll_torch SYSTEM INTERFACE "${torch_folder}/include"
                                                           "${torch_folder}/include/torch/csrc/api/include")
target_link_libraries(plimsoll_torch INTERFACE ${torch_parts})
# Programs use torch_cuda only through the dispatcher, so the linker would drop it. The undefined symbols of torch's libraries are
# resolved when a program starts, as in every program that uses torch.
target_link_options(plimsoll_torch INTERFACE LINKER:--no-as-needed LINKER:--allow-shlib-undefined)
if(plimsoll_has_torch)
  target_include_directories(plimsoll_torch SYSTEM INTERFACE "${plimsoll_cuda_include}")
endif()

# The headers that every file needs take 20 to 40 s, so they are precompiled.
add_library(plimsoll_torch_headers STATIC "${PROJECT_SOURCE_DIR}/cmake/torch_headers.cpp")
target_link_libraries(plimsoll_torch_headers PUBLIC plimsoll_torch plimsoll_options)
target_precompile_headers(
  plimsoll_torch_headers PRIVATE <torch/nn/module.h> <torch/nn/modules/container/any.h> <torch/csrc/autograd/engine.h>
  <ATen/Functions.h> <torch/csrc/distributed/c10d/ProcessGroup.hpp>)
if(PLIMSOLL_CCACHE AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(compiled_headers "${PROJECT_BINARY_DIR}/CMakeFiles/plimsoll_torch_headers.dir/cmake_pch.hxx.gch")
  add_custom_command(
    TARGET plimsoll_torch_headers POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E sha1sum "${compiled_headers}" > "${compiled_headers}.sum")
endif()

# With these headers each run of GCC takes ten seconds more. On few cores, more files are compiled as one.
set(files_as_one ${PLIMSOLL_UNITY})
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(cores LESS 5 AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  math(EXPR files_as_one "4 * ${PLIMSOLL_UNITY}")
endif()

# All targets that see torch have the same options, or the compiler refuses the precompiled headers.
target_compile_options(plimsoll_torch_headers PRIVATE -fPIC)
plimsoll_take_headers(plimsoll_torch_headers)
set_target_properties(plimsoll_torch_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
function(plimsoll_compile_with_torch target)
  target_precompile_headers(${target} REUSE_FROM plimsoll_torch_headers)
  target_compile_options(${target} PRIVATE -fPIC)
  plimsoll_take_headers(${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF UNITY_BUILD_BATCH_SIZE "${files_as_one}")
endfunction()
# plimsoll_add_torch_layer(NAME LAYER…): adds the library of a layer that sees torch; it links LAYER….
function(plimsoll_add_torch_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "/(no_)?(cuda|gloo)/[^/]*$")
  file(GLOB with_cuda CONFIGURE_DEPENDS cuda/*.cpp)
  file(GLOB without_cuda CONFIGURE_DEPENDS no_cuda/*.cpp)
  if(PLIMSOLL_UNITY)
    set(index 0)
    foreach(source IN LISTS sources)
      math(EXPR group "${index} / ${files_as_one}")
      math(EXPR index "${index} + 1")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
    endforeach()
    # The extension for CPU builds replaces cuda/ by no_cuda/, so cuda/ needs an object of its own.
    set_source_files_properties(${with_cuda} ${without_cuda} PROPERTIES UNITY_GROUP cuda)
  endif()
  if(plimsoll_has_torch)
    list(APPEND sources ${with_cuda})
  else()
    list(APPEND sources ${without_cuda})
  endif()
  add_library(plimsoll_${name} STATIC ${sources})
  set_target_properties(plimsoll_${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  target_link_libraries(plimsoll_${name} PUBLIC plimsoll_torch plimsoll_base plimsoll_options)
  foreach(layer IN LISTS ARGN)
    target_link_libraries(plimsoll_${name} PUBLIC plimsoll_${layer})
  endforeach()
  plimsoll_compile_with_torch(plimsoll_${name})
endfunction()

# Gives a program the pretend GPU.
# REQUIRES: no other library is linked to the target yet.
function(plimsoll_use_pretend_gpu target)
  if(plimsoll_has_torch)
    get_property(faces GLOBAL PROPERTY plimsoll_built_faces)
    # The loader searches breadth first and takes the first library of a SONAME: ours come before the libraries that torch needs.
    target_link_options(${target} BEFORE PRIVATE LINKER:--no-as-needed)
    foreach(face IN LISTS faces)
      target_link_libraries(${target} PRIVATE ${face})
    endforeach()
    target_link_libraries(${target} PRIVATE plimsoll_pretend)
    add_dependencies(${target} plimsoll_pretend_fits_torch)
  endif()
endfunction()

# plimsoll_add_torch_program(TARGET SOURCES … LIBRARIES …): adds a program that uses torch, with the pretend GPU if torch is a CUDA
# build. It sees tests/, which has the models that tests and benches share.
function(plimsoll_add_torch_program target)
  cmake_parse_arguments(program "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${target} ${program_SOURCES})
  plimsoll_use_pretend_gpu(${target})
  target_link_libraries(${target} PRIVATE ${program_LIBRARIES} plimsoll_torch plimsoll_base plimsoll_options)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  plimsoll_compile_with_torch(${target})
endfunction()

# plimsoll_add_python_extension(TARGET LAYER…): adds the extension module plimsoll._C below ${PROJECT_BINARY_DIR}/python, for torch's
# interpreter, and plimsoll._C_cpu for a CPU build of the same torch. The package imports the one that its torch can load.
function(plimsoll_add_python_extension target)
  cmake_path(GET torch_folder PARENT_PATH site_packages)
  set(python "${PLIMSOLL_PYTHON}")
  if(python STREQUAL "auto")
    set(python "${site_packages}/../../../bin/python")
  endif()
  execute_process(
    COMMAND "${python}" -c
            "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'), sep=';')"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(STATUS "Python package: ${python} does not run: the extension module is left out")
    return()
  endif()
  list(GET answer 0 python_include)
  list(GET answer 1 suffix)
  if(NOT EXISTS "${python_include}/Python.h" OR NOT EXISTS "${torch_lib}/libtorch_python.so")
    message(STATUS "Python package: no ${python_include}/Python.h: the extension module is left out")
    return()
  endif()

  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  add_library(${target}_objects OBJECT ${sources})
  target_include_directories(${target}_objects SYSTEM PRIVATE "${python_include}")
  set(archives "")
  foreach(layer IN LISTS ARGN)
    target_link_libraries(${target}_objects PRIVATE plimsoll_${layer})
    list(APPEND archives "$<TARGET_FILE:plimsoll_${layer}>")
  endforeach()
  target_link_libraries(${target}_objects PRIVATE plimsoll_torch plimsoll_base plimsoll_options)
  plimsoll_compile_with_torch(${target}_objects)
  target_compile_options(${target}_objects PRIVATE -Wno-attributes) # pybind11's types are hidden; ours that contain them are not.

  set(modules _C_cpu)
  set(without_cuda "")
  if(plimsoll_has_torch)
    list(APPEND modules _C)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/plimsoll/capture/no_cuda/*.cpp")
    add_library(${target}_without_cuda OBJECT ${sources})
    target_link_libraries(${target}_without_cuda PRIVATE plimsoll_torch plimsoll_ledger plimsoll_base plimsoll_options)
    plimsoll_compile_with_torch(${target}_without_cuda)
    set(without_cuda $<TARGET_OBJECTS:${target}_without_cuda>)
  endif()
  foreach(name IN LISTS modules)
    set(module ${target}${name})
    add_library(${module} MODULE $<TARGET_OBJECTS:${target}_objects>)
    set(parts c10 torch_cpu torch torch_python)
    if(name STREQUAL "_C")
      list(APPEND parts c10_cuda torch_cuda)
    else()
      target_sources(${module} PRIVATE ${without_cuda})
    endif()
    list(TRANSFORM parts REPLACE "(.+)" "${torch_lib}/lib\\1.so")
    target_link_libraries(${module} PRIVATE -Wl,--start-group ${archives} "$<TARGET_FILE:plimsoll_base>"
                                            -Wl,--end-group ${parts} Threads::Threads)
    add_dependencies(${module} plimsoll_base)
    foreach(layer IN LISTS ARGN)
      add_dependencies(${module} plimsoll_${layer})
    endforeach()
    # The interpreter has its own symbols, and torch's libraries are loaded before the module.
    target_link_options(${module} PRIVATE LINKER:-z,undefs LINKER:--as-needed LINKER:--exclude-libs,ALL)
    set_target_properties(
      ${module}
      PROPERTIES PREFIX ""
                 OUTPUT_NAME "${name}"
                 SUFFIX "${suffix}"
                 LINKER_LANGUAGE CXX
                 LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/plimsoll"
                 BUILD_WITH_INSTALL_RPATH ON
                 INSTALL_RPATH "$ORIGIN/../torch/lib")
    set_property(GLOBAL APPEND PROPERTY plimsoll_python_modules ${module})
  endforeach()
endfunction()
