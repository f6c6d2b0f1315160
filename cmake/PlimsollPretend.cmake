# Plans the pretend libraries for the installed torch, and builds them.
#
# Sets plimsoll_faces, plimsoll_has_torch, plimsoll_cuda_major, plimsoll_cuda_include (empty: no headers),
# plimsoll_cuda_definitions, and for each face plimsoll_<face>_soname and plimsoll_<face>_header (the CUDA header that its sources
# need, or empty).

set(plimsoll_stub_folder "${PROJECT_SOURCE_DIR}/src/plimsoll/pretend/stubs")
set(plimsoll_plan_folder "${PROJECT_BINARY_DIR}/plan")
file(GLOB plimsoll_generator CONFIGURE_DEPENDS "${plimsoll_stub_folder}/*.py")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plimsoll_generator})

set(torch_lib "${PLIMSOLL_TORCH_LIB}")
if(torch_lib STREQUAL "auto")
  file(GLOB torch_lib "${PROJECT_SOURCE_DIR}/.plimsoll/venv/lib/python3*/site-packages/torch/lib")
endif()
if(torch_lib)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${torch_lib}/libtorch_cpu.so")
  set(torch_arguments --torch-lib "${torch_lib}")
endif()
if(PLIMSOLL_CUDA_MAJOR)
  list(APPEND torch_arguments --cuda-major ${PLIMSOLL_CUDA_MAJOR})
endif()
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -B "${plimsoll_stub_folder}/generate.py" plan ${torch_arguments}
          --out "${plimsoll_plan_folder}"
  OUTPUT_VARIABLE plan_says OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE plan_result)
if(NOT plan_result EQUAL 0)
  message(FATAL_ERROR "The pretend libraries cannot be planned for the torch in ${torch_lib}: see above.")
endif()
message(STATUS "Pretend GPU: ${plan_says}")
include("${plimsoll_plan_folder}/libraries.cmake")
set(plimsoll_pretend_folder "${PROJECT_BINARY_DIR}/pretend")
if(torch_lib AND NOT plimsoll_has_torch)
  # Keep these libraries away from the folder where a CUDA build of torch looks for the pretend GPU.
  string(APPEND plimsoll_pretend_folder "_without_torch")
endif()

set(plimsoll_cuda_definitions PLIMSOLL_CUDA_MAJOR=${plimsoll_cuda_major})
if(plimsoll_cuda_version)
  list(APPEND plimsoll_cuda_definitions PLIMSOLL_CUDA_VERSION=${plimsoll_cuda_version})
endif()

set(plimsoll_cuda_include "${PLIMSOLL_CUDA_INCLUDE}")
if(plimsoll_cuda_include STREQUAL "auto")
  set(plimsoll_cuda_include "${PROJECT_SOURCE_DIR}/.plimsoll/headers/cu${plimsoll_cuda_major}/include")
endif()
if(NOT EXISTS "${plimsoll_cuda_include}/cuda_runtime_api.h")
  message(STATUS "Pretend GPU: no CUDA ${plimsoll_cuda_major} headers in '${plimsoll_cuda_include}' (scripts/setup.sh "
                 "fetches them): the runtime and the driver are left out")
  set(plimsoll_cuda_include "")
endif()

# The library of one vendor API: the face's sources, and stubs for the other functions that torch needs.
function(plimsoll_add_face face)
  set(target plimsoll_${face})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/plimsoll/pretend/${face}/*.cpp")
  set(stub_source "${PROJECT_BINARY_DIR}/stubs/stubs_${face}.c")
  set(header "")
  if(plimsoll_${face}_header)
    set(header --header "${plimsoll_cuda_include}/${plimsoll_${face}_header}")
  endif()
  set(objects "")
  # Its declarations conflict with cuda.h.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/plimsoll/pretend/driver/refused.cpp"
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(sources)
    add_library(${target}_objects OBJECT ${sources})
    target_link_libraries(${target}_objects PRIVATE plimsoll_pretend plimsoll_base plimsoll_options)
    target_compile_options(${target}_objects PRIVATE -fvisibility=hidden)
    target_compile_definitions(${target}_objects PRIVATE ${plimsoll_cuda_definitions})
    plimsoll_reuse_headers(${target}_objects plimsoll_base)
    if(plimsoll_${face}_header)
      target_include_directories(${target}_objects SYSTEM PRIVATE "${plimsoll_cuda_include}")
    endif()
    set(objects "$<TARGET_OBJECTS:${target}_objects>")
  endif()
  add_custom_command(
    OUTPUT "${stub_source}"
    COMMAND "${Python3_EXECUTABLE}" -B "${plimsoll_stub_folder}/generate.py" stubs
            --plan "${plimsoll_plan_folder}/plan.json" --face ${face} --out "${stub_source}" ${header} ${objects}
    DEPENDS ${objects} "${plimsoll_plan_folder}/plan.json" ${plimsoll_generator}
    COMMENT "Stubs for ${plimsoll_${face}_soname}"
    COMMAND_EXPAND_LISTS VERBATIM)

  set(version_script "${plimsoll_plan_folder}/${face}.map")
  add_library(${target} SHARED "${stub_source}" ${objects})
  target_link_libraries(${target} PRIVATE plimsoll_pretend plimsoll_base plimsoll_options)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${version_script}")
  plimsoll_place_library(${target} "${plimsoll_${face}_soname}")
  plimsoll_bring_own_runtime(${target})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS "${version_script}")
endfunction()

# The library's file has the name of its SONAME, and finds its neighbours even if the folder moves.
function(plimsoll_place_library target soname)
  set_target_properties(
    ${target}
    PROPERTIES PREFIX ""
               OUTPUT_NAME "${soname}"
               SUFFIX ""
               LIBRARY_OUTPUT_DIRECTORY "${plimsoll_pretend_folder}"
               BUILD_WITH_INSTALL_RPATH ON
               INSTALL_RPATH "$ORIGIN")
endfunction()

# A preloaded library contains its C++ runtime. Otherwise it would load the system's runtime early, which may be older than the
# one that the user's interpreter or torch needs (conda's, for example).
function(plimsoll_bring_own_runtime target)
  if(NOT PLIMSOLL_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
