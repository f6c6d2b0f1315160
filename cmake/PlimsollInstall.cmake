# The binary files of the Python package. pyproject.toml copies the files of python/plimsoll:
#
#   plimsoll/_C.*.so, plimsoll/_C_cpu.*.so   the extension modules
#   plimsoll/bin/plimsoll                    the command
#   plimsoll/bin/plimsoll-planner            runs its jobs             } only if
#   plimsoll/pretend/                        the pretend libraries     } torch is a CUDA build
#   plimsoll/profiles/*.json                 GPUs as data
#
# The target plimsoll_wheel builds them all. src/plimsoll/cli/installation.h has the same layout.

get_property(faces GLOBAL PROPERTY plimsoll_built_faces)
get_property(python_modules GLOBAL PROPERTY plimsoll_python_modules)
if(plimsoll_for_wheel AND NOT python_modules)
  message(FATAL_ERROR "Python's headers (Python.h) are needed for ${PLIMSOLL_PYTHON}: on Debian, "
                      "`apt-get install python3-dev`.")
endif()

add_custom_target(plimsoll_wheel)
function(plimsoll_install destination)
  install(TARGETS ${ARGN} RUNTIME DESTINATION "${destination}" LIBRARY DESTINATION "${destination}")
  add_dependencies(plimsoll_wheel ${ARGN})
endfunction()

if(TARGET plimsoll)
  plimsoll_install(plimsoll/bin plimsoll)
endif()
if(python_modules)
  plimsoll_install(plimsoll ${python_modules})
endif()
if(TARGET plimsoll_planner)
  plimsoll_install(plimsoll/bin plimsoll_planner)
  plimsoll_install(plimsoll/pretend plimsoll_pretend ${faces})
  add_dependencies(plimsoll_wheel plimsoll_pretend_fits_torch)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/plimsoll/pretend/profiles/" DESTINATION plimsoll/profiles
        FILES_MATCHING PATTERN "*.json")
