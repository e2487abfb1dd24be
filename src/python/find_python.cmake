# VKGEMM_PYTHON: whether the Python package is built; by default where a Python can use it.
function(vkgemm_python_suffices result python)
  execute_process(
    COMMAND ${python} -c "import cffi, numpy, sys; sys.exit(sys.version_info < (3, 10))"
    RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
  if(NOT code EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

set(python_works OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING AND NOT VKGEMM_SANITIZE)
  find_program(VKGEMM_PYTHON3 NAMES ${Python3_EXECUTABLE} python3 VALIDATOR vkgemm_python_suffices
               DOC "Python 3.10 or newer, with cffi and numpy")
  mark_as_advanced(VKGEMM_PYTHON3)
  if(VKGEMM_PYTHON3 AND PROJECT_IS_TOP_LEVEL)
    set(python_works ON)
  elseif(PROJECT_IS_TOP_LEVEL)
    message(STATUS "vkgemm: no Python 3.10 with cffi and numpy, so no Python package")
  endif()
endif()
option(VKGEMM_PYTHON "Build the Python package (Linux, needs python3-cffi and python3-numpy)" ${python_works})
if(VKGEMM_PYTHON AND NOT VKGEMM_PYTHON3)
  message(FATAL_ERROR "VKGEMM_PYTHON is ON, and no Python 3.10 or newer with cffi and numpy was found: "
                      "-DVKGEMM_PYTHON3=<program> names one. Sanitizers go without it.")
endif()
