# Vulkan headers that are none, or too old, are noticed where they are named: when vkgemm is configured, and when an
# application finds it installed. SOURCE, CONFIG (the package's file), FOLDER, COMPILER, GENERATOR, TOOLCHAIN.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER}/none)
file(WRITE ${FOLDER}/old/vulkan/vulkan_core.h "#define VK_VERSION_1_0 1\n")

# refused(folder "what the message must contain"): of vkgemm's own build
function(refused folder message)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
            -DVKGEMM_TOOLCHAIN_DIR=${TOOLCHAIN} -DVKGEMM_BOOTSTRAP=OFF -DVKGEMM_BUILD_TESTS=OFF -DVKGEMM_BUILD_TOOL=OFF
            -DVKGEMM_VULKAN_HEADERS=${FOLDER}/${folder}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " words "${output}")
  string(FIND "${words}" "${message}" position)
  if(code EQUAL 0 OR position EQUAL -1 OR output MATCHES "file STRINGS")
    message(SEND_ERROR "VKGEMM_VULKAN_HEADERS=${folder}: exits with ${code}, expected an error with '${message}':\n${output}")
  endif()
endfunction()

refused(none "VKGEMM_VULKAN_HEADERS is ${FOLDER}/none, which has no vulkan/vulkan_core.h")
refused(old "for which those in ${FOLDER}/old are too old")

# The same of an application: up to here the package's file needs no targets.
function(not_found folder message)
  set(vkgemm_FOUND TRUE)
  set(VKGEMM_VULKAN_HEADERS ${FOLDER}/${folder})
  include(${CONFIG})
  string(FIND "${vkgemm_NOT_FOUND_MESSAGE}" "${message}" position)
  if(vkgemm_FOUND OR position EQUAL -1)
    message(SEND_ERROR "find_package(vkgemm) with VKGEMM_VULKAN_HEADERS=${folder} says '${vkgemm_NOT_FOUND_MESSAGE}'")
  endif()
endfunction()

not_found(none "VKGEMM_VULKAN_HEADERS is ${FOLDER}/none, which has no vulkan/vulkan_core.h")
not_found(old "${FOLDER}/old, are too old")
