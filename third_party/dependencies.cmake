# Finds everything that vkgemm does not write itself. Each thing is looked for in this order: an
# explicit -D, the private toolchain of third_party/bootstrap, the system if it is new enough. The
# shader compiler and the Vulkan headers are judged by what they can do, never by a version number.
include_guard(GLOBAL)

set(VKGEMM_TOOLCHAIN_DIR ${PROJECT_SOURCE_DIR}/third_party/.toolchain
    CACHE PATH "The private toolchain that third_party/bootstrap unpacks")
set(VKGEMM_GLSLANG "" CACHE FILEPATH "glslang, 16 or newer (default: private toolchain, then system)")
set(VKGEMM_SPIRV_OPT "" CACHE FILEPATH "spirv-opt that belongs to it")
set(VKGEMM_ZSTD "" CACHE FILEPATH "zstd, which compresses modules a quarter smaller than CMake does")
set(VKGEMM_SPIRV_VAL "" CACHE FILEPATH "spirv-val that belongs to it")
set(VKGEMM_VULKAN_HEADERS "" CACHE PATH "Folder that holds vulkan/vulkan_core.h")
set(VKGEMM_SPIRV_HEADERS "" CACHE PATH "Folder that holds spirv/unified1/spirv.hpp11")
set(VKGEMM_ZSTD_SOURCE "" CACHE PATH "Folder lib/ of zstd's source (default: private toolchain, then the system's libzstd)")
if(VKGEMM_VULKAN_HEADERS AND NOT EXISTS ${VKGEMM_VULKAN_HEADERS}/vulkan/vulkan_core.h)
  message(FATAL_ERROR "VKGEMM_VULKAN_HEADERS is ${VKGEMM_VULKAN_HEADERS}, which has no vulkan/vulkan_core.h: "
                      "it must be the folder above, e.g. /usr/include.")
endif()
if(VKGEMM_SPIRV_HEADERS AND NOT EXISTS ${VKGEMM_SPIRV_HEADERS}/spirv/unified1/spirv.hpp11)
  message(FATAL_ERROR "VKGEMM_SPIRV_HEADERS is ${VKGEMM_SPIRV_HEADERS}, which has no spirv/unified1/spirv.hpp11: "
                      "it must be the folder above, e.g. /usr/include.")
endif()
if(VKGEMM_ZSTD_SOURCE AND NOT EXISTS ${VKGEMM_ZSTD_SOURCE}/decompress/zstd_decompress.c)
  message(FATAL_ERROR "VKGEMM_ZSTD_SOURCE is ${VKGEMM_ZSTD_SOURCE}, which has no decompress/zstd_decompress.c: "
                      "it must be the folder lib/ of zstd's source.")
endif()

set(_bootstrap_works OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT vkgemm_prebuilt AND CMAKE_HOST_SYSTEM_NAME STREQUAL "Linux"
   AND CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "x86_64" AND EXISTS /etc/os-release)
  # Not its relatives: the locks name Debian's packages and a Debian mirror serves them.
  file(STRINGS /etc/os-release _is_debian REGEX "^ID=\"?debian\"?$")
endif()
if(_is_debian)
  find_program(VKGEMM_APT_GET apt-get)
  mark_as_advanced(VKGEMM_APT_GET)
  if(VKGEMM_APT_GET)
    set(_bootstrap_works ON)
  endif()
endif()
option(VKGEMM_BOOTSTRAP "Let configure run third_party/bootstrap when something is missing" ${_bootstrap_works})

function(vkgemm_run_bootstrap)
  set(profile shaders)
  if(VKGEMM_BUILD_TESTS OR VKGEMM_BUILD_TOOL)
    set(profile test)
  endif()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env TOOLCHAIN_DIR=${VKGEMM_TOOLCHAIN_DIR}
            ${PROJECT_SOURCE_DIR}/third_party/bootstrap --profile ${profile}
    RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "third_party/bootstrap failed (see above): repair that, or configure with "
                        "-DVKGEMM_BOOTSTRAP=OFF and install what is then named as missing.")
  endif()
endfunction()

# Does this glslang compile, and this spirv-val accept, what our shaders use?
function(vkgemm_probe_compiler result)
  set(spirv ${CMAKE_BINARY_DIR}/vkgemm_probe.spv)
  execute_process(
    COMMAND ${glslang} -V --target-env vulkan1.3 ${PROJECT_SOURCE_DIR}/third_party/probe.comp -o ${spirv}
    RESULT_VARIABLE compiled OUTPUT_QUIET ERROR_QUIET)
  execute_process(
    COMMAND ${spirv_val} --target-env vulkan1.3 ${spirv}
    RESULT_VARIABLE validated OUTPUT_QUIET ERROR_QUIET)
  file(REMOVE ${spirv})
  if(compiled EQUAL 0 AND validated EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Sets `variable` to the explicit path, or searches the private toolchain's bin and then the system.
# Not cached, so that a toolchain which appears later is seen.
macro(vkgemm_find_program variable explicit name)
  if(${explicit})
    set(${variable} ${${explicit}})
  else()
    set(${variable} ${variable}-NOTFOUND)
    find_program(${variable} ${name} HINTS ${VKGEMM_TOOLCHAIN_DIR}/bin $ENV{VULKAN_SDK}/bin $ENV{VULKAN_SDK}/Bin NO_CACHE)
  endif()
endmacro()

macro(vkgemm_find_headers variable header)
  set(${variable} ${variable}-NOTFOUND)
  find_path(${variable} ${header} NO_CACHE
            HINTS ${vkgemm_vendored}/include ${VKGEMM_TOOLCHAIN_DIR}/root/usr/include $ENV{VULKAN_SDK}/include $ENV{VULKAN_SDK}/Include)
  if(NOT ${variable})
    list(APPEND missing "${header}")
  endif()
endmacro()

# Sets zstd_source; or, without a source, zstd_library and zstd_headers of the system.
macro(vkgemm_find_zstd)
  set(zstd_source ${VKGEMM_ZSTD_SOURCE})
  if(NOT zstd_source)
    find_path(zstd_source decompress/zstd_decompress.c NO_CACHE NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
              PATHS ${vkgemm_vendored}/zstd/lib ${VKGEMM_TOOLCHAIN_DIR}/root/usr/src/zstd/lib)
  endif()
  if(NOT zstd_source)
    set(zstd_library zstd_library-NOTFOUND)
    set(zstd_headers zstd_headers-NOTFOUND)
    find_library(zstd_library zstd NO_CACHE)
    find_path(zstd_headers zstd.h NO_CACHE)
    if(NOT zstd_library OR NOT zstd_headers)
      list(APPEND missing "zstd: its source (-DVKGEMM_ZSTD_SOURCE=) or the system's libzstd with zstd.h")
    endif()
  endif()
endmacro()

# Sets glslang, spirv_opt, spirv_val, spirv_as and spirv_dis.
macro(vkgemm_find_shader_compiler)
  vkgemm_find_program(glslang VKGEMM_GLSLANG glslang)
  vkgemm_find_program(spirv_opt VKGEMM_SPIRV_OPT spirv-opt)
  vkgemm_find_program(spirv_val VKGEMM_SPIRV_VAL spirv-val)
  if(spirv_opt)
    cmake_path(GET spirv_opt PARENT_PATH spirv_tools)
  endif()
  foreach(tool IN ITEMS spirv-as spirv-dis)
    string(REPLACE - _ variable ${tool})
    set(${variable} ${variable}-NOTFOUND)
    find_program(${variable} ${tool} HINTS ${spirv_tools} NO_CACHE)
  endforeach()
  if(NOT glslang)
    list(APPEND missing "glslang (-DVKGEMM_GLSLANG=)")
  endif()
  if(NOT spirv_opt OR NOT spirv_val)
    list(APPEND missing "SPIRV-Tools (-DVKGEMM_SPIRV_OPT=, -DVKGEMM_SPIRV_VAL=)")
  elseif(NOT spirv_as OR NOT spirv_dis)
    list(APPEND missing "spirv-as and spirv-dis beside ${spirv_opt}")
  endif()
  if(NOT missing)
    vkgemm_probe_compiler(compiler_is_new_enough)
    if(NOT compiler_is_new_enough)
      list(APPEND missing "a glslang with GL_EXT_bfloat16, GL_EXT_float_e4m3 and GL_NV_cooperative_matrix2, which ${glslang} lacks (-DVKGEMM_GLSLANG=)")
    endif()
  endif()
endmacro()

# Sets the tools that compile shaders, zstd_*, *_headers, googletest_sources, and `missing`: what was not found.
macro(vkgemm_find_everything)
  set(missing "")
  if(NOT vkgemm_prebuilt)
    vkgemm_find_shader_compiler()
    vkgemm_find_program(zstd VKGEMM_ZSTD zstd) # else CMake compresses modules, less
  endif()

  if(VKGEMM_VULKAN_HEADERS)
    set(vulkan_headers ${VKGEMM_VULKAN_HEADERS})
  else()
    vkgemm_find_headers(vulkan_headers vulkan/vulkan_core.h)
  endif()
  if(vulkan_headers)
    file(STRINGS ${vulkan_headers}/vulkan/vulkan_core.h recent REGEX "define VK_(KHR_shader_bfloat16|NV_cooperative_matrix2|EXT_shader_float8) 1")
    list(LENGTH recent recent)
    if(recent LESS 3)
      list(APPEND missing "Vulkan headers with VK_KHR_shader_bfloat16, VK_NV_cooperative_matrix2 and VK_EXT_shader_float8, for which those in ${vulkan_headers} are too old (-DVKGEMM_VULKAN_HEADERS=)")
    endif()
  endif()

  if(VKGEMM_SPIRV_HEADERS)
    set(spirv_headers ${VKGEMM_SPIRV_HEADERS})
  else()
    vkgemm_find_headers(spirv_headers spirv/unified1/spirv.hpp11)
  endif()
  if(spirv_headers)
    file(STRINGS ${spirv_headers}/spirv/unified1/spirv.hpp11 recent REGEX "OpTypeCooperativeMatrixKHR = " LIMIT_COUNT 1)
    if(NOT recent)
      list(APPEND missing "SPIRV-Headers with cooperative matrices, for which those in ${spirv_headers} are too old (-DVKGEMM_SPIRV_HEADERS=)")
    endif()
  endif()
  vkgemm_find_headers(json_headers nlohmann/json.hpp)
  vkgemm_find_zstd()
  if(VKGEMM_BUILD_TOOL OR VKGEMM_BUILD_TESTS)
    vkgemm_find_headers(volk_headers volk.c) # volk.h is useless without the source that it includes
    vkgemm_find_headers(cli11_headers CLI/CLI.hpp)
    vkgemm_find_headers(vma_headers vk_mem_alloc.h)
  endif()
  if(VKGEMM_BUILD_TESTS)
    find_path(googletest_sources googletest/src/gtest-all.cc NO_CACHE NO_DEFAULT_PATH
              PATHS ${VKGEMM_TOOLCHAIN_DIR}/root/usr/src/googletest /usr/src/googletest)
    if(NOT googletest_sources)
      find_package(GTest QUIET)
      if(NOT GTest_FOUND)
        list(APPEND missing "GoogleTest")
      endif()
    endif()
  endif()
endmacro()

if(VKGEMM_BOOTSTRAP AND EXISTS ${VKGEMM_TOOLCHAIN_DIR}/stamp)
  vkgemm_run_bootstrap() # quick; brings it up to date when the lock or the profile has changed
endif()
vkgemm_find_everything()
if(missing AND VKGEMM_BOOTSTRAP)
  vkgemm_run_bootstrap()
  vkgemm_find_everything()
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "vkgemm needs ${missing}: run third_party/bootstrap (Debian, Ubuntu), install the "
                      "current Vulkan SDK and the named packages, or give their paths with -D.")
endif()
if(vkgemm_prebuilt)
  set(glslang "not needed")
endif()
message(STATUS "vkgemm: shader compiler ${glslang}, Vulkan headers ${vulkan_headers}")

# One interface target a header-only library; a target that the parent project already has is kept.
function(vkgemm_header_target target folder)
  if(folder AND NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL) # imported: its headers are system headers
    target_include_directories(${target} INTERFACE ${folder})
  endif()
endfunction()
vkgemm_header_target(Vulkan::Headers "${vulkan_headers}")
vkgemm_header_target(SPIRV-Headers::SPIRV-Headers "${spirv_headers}")
vkgemm_header_target(nlohmann_json::nlohmann_json "${json_headers}")
vkgemm_header_target(volk::volk "${volk_headers}")
vkgemm_header_target(CLI11::CLI11 "${cli11_headers}")
vkgemm_header_target(vkgemm_vma "${vma_headers}")
if(TARGET volk::volk)
  # Header-only: one source file of the executable defines VOLK_IMPLEMENTATION. It loads the loader.
  target_link_libraries(volk::volk INTERFACE Vulkan::Headers ${CMAKE_DL_LIBS})
  # Else a vulkan_core.h that is included before volk.h declares what volk defines.
  target_compile_definitions(volk::volk INTERFACE VK_NO_PROTOTYPES)
endif()

if(VKGEMM_BUILD_TESTS AND NOT TARGET GTest::gtest)
  find_package(Threads REQUIRED)
  add_library(vkgemm_gtest STATIC ${googletest_sources}/googletest/src/gtest-all.cc)
  target_include_directories(vkgemm_gtest SYSTEM
    PUBLIC ${googletest_sources}/googletest/include PRIVATE ${googletest_sources}/googletest)
  target_compile_options(vkgemm_gtest PRIVATE -w) # not ours to repair
  target_link_libraries(vkgemm_gtest PUBLIC Threads::Threads)
  add_library(vkgemm_gtest_main STATIC ${googletest_sources}/googletest/src/gtest_main.cc)
  target_compile_options(vkgemm_gtest_main PRIVATE -w)
  target_link_libraries(vkgemm_gtest_main PUBLIC vkgemm_gtest)
  add_library(GTest::gtest ALIAS vkgemm_gtest)
  add_library(GTest::gtest_main ALIAS vkgemm_gtest_main)
endif()

# Starts a program of this machine's kind on the private Vulkan stack (lavapipe and the stub devices), where there is one.
if(NOT CMAKE_CROSSCOMPILING)
  find_program(VKGEMM_VKRUN vkrun HINTS ${VKGEMM_TOOLCHAIN_DIR}/bin NO_DEFAULT_PATH)
  mark_as_advanced(VKGEMM_VKRUN)
endif()

# vkgemm_use_zstd(source): gives the source file zstd's decoder. The source file includes upstream's files in an
# unnamed namespace. There extern "C" functions would still clash with an application's own zstd, so a copy of the files
# says extern "C++".
function(vkgemm_use_zstd source)
  if(NOT zstd_source)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS VKGEMM_SYSTEM_ZSTD)
    set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES ${zstd_headers})
    return()
  endif()
  set(copy ${CMAKE_CURRENT_BINARY_DIR}/zstd)
  file(GLOB files RELATIVE ${zstd_source} ${zstd_source}/*.h ${zstd_source}/common/*.[ch] ${zstd_source}/decompress/*.[ch])
  foreach(file IN LISTS files)
    file(READ ${zstd_source}/${file} text)
    string(REPLACE "extern \"C\"" "extern \"C++\"" text "${text}")
    set(old "")
    if(EXISTS ${copy}/${file})
      file(READ ${copy}/${file} old)
    endif()
    if(NOT text STREQUAL old) # unchanged files keep their time stamps
      file(WRITE ${copy}/${file} "${text}")
    endif()
  endforeach()
  set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES ${copy})
  if(MSVC)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS /w)
  else()
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -w) # not ours to repair
  endif()
endfunction()
