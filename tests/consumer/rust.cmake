# cmake -D... -P rust.cmake: installs vkgemm, tests the crate that is installed with it, and runs its example under the
# validation layers.
#   CARGO, PKG_CONFIG  programs; the test is skipped without them
#   BUILT, FOLDER      the build folder to install from; where to work, emptied first
#   LAUNCHER           what runs programs on a Vulkan device
#   ABI                tests/c/abi.txt: C's layouts
foreach(program IN ITEMS CARGO PKG_CONFIG)
  if(NOT ${program})
    string(TOLOWER ${program} name)
    message(STATUS "skipped: no program ${name}")
    return()
  endif()
endforeach()

function(cargo)
  execute_process(COMMAND ${CARGO} ${ARGV} --offline --manifest-path ${FOLDER}/prefix/share/vkgemm/rust/Cargo.toml
                  OUTPUT_VARIABLE output ERROR_VARIABLE output ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR output MATCHES "VUID-")
    message(FATAL_ERROR "rust: failed (${code}): cargo ${ARGV}")
  endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILT} --prefix ${FOLDER}/prefix --component development
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
set(ENV{VKGEMM_DIR} ${FOLDER}/prefix)
set(ENV{CARGO_HOME} ${FOLDER}/home)
set(ENV{CARGO_TARGET_DIR} ${FOLDER}/target)
set(ENV{RUSTFLAGS} "-D warnings")
set(ENV{VKGEMM_ABI} ${ABI})
cargo(test)
# The runner of every host: Cargo has a variable for each.
file(WRITE ${FOLDER}/home/config.toml "[target.'cfg(all())']\nrunner = '${LAUNCHER}'\n")
set(ENV{VK_INSTANCE_LAYERS} VK_LAYER_KHRONOS_validation)
cargo(run --example gemm)
