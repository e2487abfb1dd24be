# cmake -DTOOL=... -DVKRUN=... -DFOLDER=... -P demo.cmake: the main job on real files. Makes four .npy
# files, computes D = gelu(1.25·A·B + 0.5·C + bias) from them, verified: on a GPU if this machine has
# one, else on the CPU with the private Vulkan stack.
file(MAKE_DIRECTORY ${FOLDER})

function(run)
  list(JOIN ARGV " " command)
  string(REPLACE "${FOLDER}/" "" command "${command}")
  message("$ ${command}")
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "demo: that failed (${code})")
  endif()
endfunction()

# A CPU device of the system is not asked for: Debian 12's lavapipe has no cooperative matrices.
set(launcher "")
execute_process(COMMAND ${TOOL} info --json OUTPUT_VARIABLE devices ERROR_QUIET RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT devices MATCHES "\"type\": *\"(discrete|integrated|virtual)")
  if(NOT VKRUN)
    message(FATAL_ERROR "demo: this machine has no Vulkan GPU, and no private Vulkan stack (third_party/bootstrap)")
  endif()
  message("No GPU here: running on the CPU through vkrun.")
  set(launcher ${VKRUN} -d lvp)
endif()

run(${TOOL} make a.npy --shape 1024x1024 --dtype f16 --seed 1)
run(${TOOL} make b.npy --shape 1024x1024 --dtype f16 --seed 2)
run(${TOOL} make c.npy --shape 1024x1024 --dtype f16 --seed 3)
run(${TOOL} make bias.npy --shape 1024 --dtype f32 --seed 4)
run(${launcher} ${TOOL} run --a a.npy --b b.npy --c c.npy --bias bias.npy --alpha 1.25 --beta 0.5
    --activation gelu_erf --out d.npy --aux aux.npy --verify full)
