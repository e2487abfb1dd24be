# vkgemm_add_epilogue(target name file): compiles a function of GLSL for Context::add_function(). The file has
#   float NAME(float value, uvec2 at, vec4 x)
# and may include others. The target can include NAME.epilogue.h, which holds the array vkgemm_NAME. glslang is that of
# VKGEMM_GLSLANG or on the path. Its errors carry the file's lines.
function(vkgemm_add_epilogue target name file)
  if(NOT VKGEMM_EPILOGUE_GLSLANG)
    find_program(VKGEMM_EPILOGUE_GLSLANG NAMES glslang glslangValidator HINTS $ENV{VULKAN_SDK}/bin $ENV{VULKAN_SDK}/Bin)
  endif()
  if(NOT VKGEMM_EPILOGUE_GLSLANG)
    message(FATAL_ERROR "vkgemm_add_epilogue(${target} ${name}) needs glslang: install it, or give -DVKGEMM_EPILOGUE_GLSLANG=<program>.")
  endif()
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE source)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET source FILENAME file_name)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/epilogues/${target})
  file(CONFIGURE OUTPUT ${out}/${name}.comp @ONLY CONTENT [[#version 460
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "@file_name@"
float vkgemm_epilogue(float value, uvec2 at, vec4 x) { return @name@(value, at, x); }
void main() { vkgemm_epilogue(0.0, uvec2(0), vec4(0.0)); } // glslang drops what nobody calls
]])
  file(CONFIGURE OUTPUT ${out}/${name}.epilogue.h @ONLY CONTENT [[#pragma once
#include <stdint.h>
#include "@name@.spv.h"
]])
  add_custom_command(
    OUTPUT ${out}/${name}.spv.h
    COMMAND ${VKGEMM_EPILOGUE_GLSLANG} -V --quiet --target-env vulkan1.3 -I${folder} --vn vkgemm_${name}
            --depfile ${out}/${name}.d -o ${out}/${name}.spv.h ${out}/${name}.comp
    DEPENDS ${source} ${out}/${name}.comp
    DEPFILE ${out}/${name}.d
    COMMENT "Epilogue ${name}"
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/${name}.spv.h)
  target_include_directories(${target} PRIVATE ${out})
endfunction()
