# cmake -D... -P check.cmake: builds the consumer in one of the ways and runs it.
#   USES        find_package, add_subdirectory or fetch_content. smallest: add_subdirectory, with few modules. dist:
#               add_subdirectory of the source archive
#   SHARED      ON: vkgemm as a shared library
#   SOURCE      vkgemm's source folder
#   BUILT       find_package, static: the build folder to install from
#   SPIRV_FROM  the build folder whose SPIR-V is taken, but by fetch_content
#   FOLDER      where to work; emptied first
#   HEADERS, TOOLCHAIN, COMPILER, GENERATOR   as vkgemm's own build has them
#   LAUNCHER    vkrun, or empty to run on this machine's own Vulkan
#   ARCHIVE     dist: the source archive
#   PYTHON      the interpreter that the Python package was built for, or empty
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "consumer: failed (${code}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
# Most ways compile the whole library again, and so they do it fastest.
set(common -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=ON
           -DBUILD_SHARED_LIBS=${SHARED} -DVKGEMM_TOOLCHAIN_DIR=${TOOLCHAIN})
set(way ${USES})
if(USES STREQUAL "smallest")
  set(way add_subdirectory)
  # The size is measured, so there are no assertions and no debugging information.
  file(WRITE ${FOLDER}/options.cmake "set(VKGEMM_PATHS khr fma CACHE STRING \"\")\n")
  list(APPEND common -C ${FOLDER}/options.cmake -DVKGEMM_TYPES=f16 -DVKGEMM_PARTS= -DCMAKE_BUILD_TYPE=MinSizeRel
       -DCONSUMER_SOURCE=smallest.cpp)
elseif(USES STREQUAL "dist")
  # The build finds a compiler, CMake and the Vulkan headers only.
  set(way add_subdirectory)
  file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${FOLDER})
  file(GLOB SOURCE ${FOLDER}/vkgemm-*)
  file(COPY ${HEADERS}/vulkan ${HEADERS}/vk_video DESTINATION ${FOLDER}/headers)
  list(APPEND common -DVKGEMM_VULKAN_HEADERS=${FOLDER}/headers -DVKGEMM_TOOLCHAIN_DIR=${FOLDER}/no_toolchain
       -DVKGEMM_GLSLANG=${FOLDER}/no_glslang -DVKGEMM_SPIRV_OPT=${FOLDER}/no_spirv-opt -DVKGEMM_SPIRV_VAL=${FOLDER}/no_spirv-val)
endif()
if(NOT USES MATCHES "fetch_content|dist")
  list(APPEND common -DVKGEMM_SPIRV_FROM=${SPIRV_FROM})
endif()

if(USES STREQUAL "find_package")
  if(SHARED)
    set(BUILT ${FOLDER}/vkgemm)
    run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILT} ${common} -DVKGEMM_PRECOMPILE_HEADERS=ON
        -DVKGEMM_BUILD_TESTS=OFF -DVKGEMM_BUILD_TOOL=OFF)
    run(${CMAKE_COMMAND} --build ${BUILT})
  endif()
  run(${CMAKE_COMMAND} --install ${BUILT} --prefix ${FOLDER}/installed)
  file(RENAME ${FOLDER}/installed ${FOLDER}/prefix)  # the tree may be moved
  set(options -DCMAKE_PREFIX_PATH=${FOLDER}/prefix -DVKGEMM_VULKAN_HEADERS=${HEADERS})
  if(EXISTS ${TOOLCHAIN}/bin/glslang)
    list(APPEND options -DVKGEMM_EPILOGUE_GLSLANG=${TOOLCHAIN}/bin/glslang)
  endif()
else()
  set(options -DCONSUMER_VKGEMM_SOURCE=${SOURCE})
endif()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${FOLDER}/build ${common} -DCONSUMER_USES=${way} ${options})
if(USES STREQUAL "fetch_content")
  # From here on the same as add_subdirectory, but for the shaders, of which one stands for all.
  run(${CMAKE_COMMAND} --build ${FOLDER}/build --target _deps/vkgemm-build/shaders/reset.spv)
  return()
endif()
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${LAUNCHER} ${FOLDER}/build/consumer)
if(USES STREQUAL "smallest")
  foreach(option IN ITEMS VKGEMM_PATHS VKGEMM_TYPES VKGEMM_PARTS)
    # -U removes the wrong value of the previous option from the cache.
    execute_process(COMMAND ${CMAKE_COMMAND} ${FOLDER}/build -UVKGEMM_PATHS -UVKGEMM_TYPES -UVKGEMM_PARTS -D${option}=tensor
                    RESULT_VARIABLE code ERROR_VARIABLE output OUTPUT_QUIET)
    if(code EQUAL 0 OR NOT output MATCHES "${option} has the unknown value 'tensor': the valid ones")
      message(FATAL_ERROR "consumer: ${option}=tensor exits with ${code}: ${output}")
    endif()
  endforeach()
endif()

# check_size(most): the stripped application has at most so many bytes.
function(check_size most)
  find_program(STRIP strip REQUIRED)
  run(${STRIP} ${FOLDER}/build/consumer)
  file(SIZE ${FOLDER}/build/consumer bytes)
  message(STATUS "consumer: the stripped application has ${bytes} bytes")
  if(bytes GREATER most)
    message(FATAL_ERROR "consumer: the stripped application has ${bytes} bytes, expected ${most} at most")
  endif()
endfunction()
if(USES STREQUAL "smallest")
  check_size(1350000)
elseif(USES STREQUAL "find_package" AND NOT SHARED)
  check_size(4800000)
endif()
if(NOT USES STREQUAL "find_package")
  return()
endif()

# From C: by CMake, and by pkg-config.
set(c ${CMAKE_CURRENT_LIST_DIR}/../c)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/c -B ${FOLDER}/c -G ${GENERATOR} -DBUILD_SHARED_LIBS=${SHARED}
    -DCMAKE_CXX_COMPILER=${COMPILER} ${options})
run(${CMAKE_COMMAND} --build ${FOLDER}/c)
run(${LAUNCHER} ${FOLDER}/c/consumer_c)
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${FOLDER}/prefix/*/vkgemm.pc)
  cmake_path(GET pc PARENT_PATH pc_folder)
  set(ENV{PKG_CONFIG_PATH} ${pc_folder})
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs vkgemm OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND ${PKG_CONFIG} --variable=libdir vkgemm OUTPUT_VARIABLE libraries
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  run(cc -std=c11 -isystem ${HEADERS} ${c}/example.c ${c}/app.c ${c}/../examples/minimal.c ${flags} -Wl,-rpath,${libraries} -ldl -lm
      -o ${FOLDER}/consumer_pkg_config)
  run(${LAUNCHER} ${FOLDER}/consumer_pkg_config)
else()
  message(STATUS "consumer: no pkg-config, so vkgemm.pc is not tried")
endif()

# From Python.
if(PYTHON)
  file(GLOB_RECURSE package ${FOLDER}/prefix/__main__.py)
  cmake_path(GET package PARENT_PATH python_folder)
  cmake_path(GET python_folder PARENT_PATH python_folder)
  set(ENV{PYTHONPATH} ${python_folder})
  run(${LAUNCHER} ${PYTHON} -m vkgemm run --m 20 --n 30 --k 40 --explain)
endif()

if(SHARED)
  run(${CMAKE_COMMAND} -DABI=${c}/abi.txt -DMAP=${SOURCE}/src/c/vkgemm.map -DLIBRARY=${BUILT}/src/libvkgemm.so
      -P ${c}/symbols.cmake)
endif()
