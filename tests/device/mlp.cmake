# A transformer's MLP by the two commands that src/tool/README.md shows, on weights in .npy files. Each of them
# verifies what it has computed.
# TOOL, FOLDER, PAGE; LAUNCHER may be empty.
file(MAKE_DIRECTORY ${FOLDER})

function(run)
  list(JOIN ARGN " " command)
  message(STATUS "vkgemm ${command}")
  execute_process(COMMAND ${LAUNCHER} ${TOOL} ${ARGN} WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "vkgemm ${command} exits with ${code}:\n${output}")
  endif()
  if(ARGV0 STREQUAL "run" AND NOT output MATCHES "verification   full.*verdict        PASSED")
    message(FATAL_ERROR "vkgemm ${command} has not verified all that it computed:\n${output}")
  endif()
endfunction()

# The vkgemm commands of the section's block, their continued lines joined.
file(READ ${PAGE} page)
if(NOT page MATCHES "## A transformer's MLP\n[^`]*```sh\n([^`]*)```")
  message(FATAL_ERROR "src/tool/README.md has no commands under \"A transformer's MLP\"")
endif()
string(REGEX REPLACE "\\\\\n *" "" block "${CMAKE_MATCH_1}")
string(REGEX MATCHALL "vkgemm run [^\n#]+" commands "${block}")
list(LENGTH commands count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "src/tool/README.md shows ${count} commands under \"A transformer's MLP\", not the two products")
endif()

# 50 tokens, 96 wide, 136 hidden values.
run(make x.npy --shape 50x96 --seed 1)
run(make gate_up.npy --shape 96x272 --seed 2)
run(make down.npy --shape 136x96 --seed 3)
run(make residual.npy --shape 50x96 --seed 4)
run(make gamma.npy --shape 96 --dtype f32 --seed 5)
file(REMOVE ${FOLDER}/h.npy ${FOLDER}/stream.npy ${FOLDER}/y.npy)
foreach(command IN LISTS commands)
  separate_arguments(arguments UNIX_COMMAND "${command}")
  list(POP_FRONT arguments)
  run(${arguments} --repeat 0)
endforeach()
foreach(result IN ITEMS h stream y)
  if(NOT EXISTS ${FOLDER}/${result}.npy)
    message(FATAL_ERROR "the commands of src/tool/README.md have not written ${result}.npy")
  endif()
endforeach()

# The same from weights as PyTorch has them, two matrices of Fortran order, in bf16.
run(make x.npy --shape 50x96 --dtype bf16 --seed 1)
run(make gate.npy --shape 96x136 --fortran --dtype bf16 --seed 6)
run(make up.npy --shape 96x136 --fortran --dtype bf16 --seed 7)
run(make down.npy --shape 136x96 --fortran --dtype bf16 --seed 3)
run(make residual.npy --shape 50x96 --dtype bf16 --seed 4)
run(run --bf16 --a x.npy --b gate.npy --b-right up.npy --gated swiglu:separate --out h.npy --repeat 0)
run(run --bf16 --a h.npy --b down.npy --c residual.npy --beta 1 --row-op rms_norm --row-gamma gamma.npy
    --out y.npy --repeat 0)
