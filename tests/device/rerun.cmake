# The line that a plan logs is a command: run with it, the tool logs the same line again.
# TOOL, FOLDER; LAUNCHER may be empty.
file(MAKE_DIRECTORY ${FOLDER})

function(run_and_read_log log line)
  file(REMOVE ${log})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env VKGEMM_LOG=${log} ${LAUNCHER} ${TOOL} ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "vkgemm ${ARGN} exits with ${code}:\n${output}")
  endif()
  file(STRINGS ${log} lines REGEX "^vkgemm info: vkgemm run ")
  list(GET lines -1 last)
  string(REGEX REPLACE "^vkgemm info: vkgemm " "" last "${last}")
  set(${line} "${last}" PARENT_SCOPE)
endfunction()

set(problems
  "run --m 33 --n 17 --k 19 --dtype f16"
  "run --m 33 --n 17 --k 19 --dtype f16 --path khr"
  "run --m 50 --n 17 --k 19 --group-count 4 --b-per-group --offset-type int64"
  "run --m 33 --n 17 --k 19 --gated geglu_tanh:separate"
  "run --m 33 --n 17 --k 19 --packed-b --layout-b col_major --ld-b 24"
  "run --m 33 --n 17 --k 19 --batch 2 --packed-a --packed-b --batch-stride-b 0"
  "run --m 33 --n 17 --k 19 --row-op layer_norm --row-eps 1e-3 --with-row-gamma --with-row-beta --dtype-row-vectors f16"
  "run --m 33 --n 17 --k 19 --activation relu --tensors mask,scalar,along_n --steps store:t0,amax:t1,sum_columns:t2"
  "run --m 33 --n 17 --k 19 --row-op variance --dtype-row-values f16 --without-d"
  "run --m 90 --n 100 --k 64 --dtype f32 --max-dispatch-ms 0.01 --repeat 1"
  "run --m 9 --n 10 --k 11 --batch 3 --dtype f32 --layout-a col_major --layout-b col_major --layout-d col_major --ld-a 12 --ld-d 14 --alignment-a 4 --alignment-d 4 --alpha 1.25 --beta -0.5 --bias-mode along_m --activation gelu_erf --clamp-max 6 --with-aux")
foreach(problem IN LISTS problems)
  separate_arguments(arguments UNIX_COMMAND "${problem}")
  run_and_read_log(${FOLDER}/first.log first ${arguments})
  separate_arguments(arguments UNIX_COMMAND "${first}")
  run_and_read_log(${FOLDER}/second.log second ${arguments})
  if(NOT first STREQUAL second)
    message(FATAL_ERROR "the logged line\n  ${first}\nlogs another one when it is run:\n  ${second}")
  endif()
  # What dispatches are cut by was measured first.
  if(first MATCHES "--max-dispatch-ms" AND NOT first MATCHES " --estimate-scale [0-9.e+-]+ ")
    message(FATAL_ERROR "no measured scale in\n  ${first}")
  endif()
  message(STATUS "vkgemm ${first}")
endforeach()

# In a pipe, too, an error stands after what was printed before it.
execute_process(COMMAND ${LAUNCHER} ${TOOL} run --m 8 --n 8 --k 8 --config nonsense
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT output MATCHES "device  .*vkgemm: --config: ")
  message(FATAL_ERROR "stderr overtakes stdout:\n${output}")
endif()

# A device that has no room says so before operands are made.
execute_process(COMMAND ${LAUNCHER} ${TOOL} run --m 2000000 --n 2000000 --k 16
                RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT code EQUAL 3 OR NOT output MATCHES "8000000000000 bytes" OR output MATCHES "generating")
  message(FATAL_ERROR "exits with ${code}, expected 3 without generating operands:\n${output}")
endif()
