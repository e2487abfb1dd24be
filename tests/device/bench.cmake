# A benchmark on a device: its lines can be read again, and are its own baseline. TOOL, FOLDER, LAUNCHER.
file(MAKE_DIRECTORY ${FOLDER})
function(bench output code)
  execute_process(COMMAND ${LAUNCHER} ${TOOL} bench ${ARGN} WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE result OUTPUT_VARIABLE lines ERROR_VARIABLE errors)
  if(NOT result EQUAL code)
    message(FATAL_ERROR "vkgemm bench ${ARGN} exits with ${result}, expected ${code}:\n${lines}${errors}")
  endif()
  set(${output} "${lines}" PARENT_SCOPE)
endfunction()

set(case --shapes 24x40x56 --epilogue bias+relu --path fma --repeat 1 --warm-up 0)
bench(lines 0 ${case} --no-ceiling --json)
if(NOT lines MATCHES "\"epilogue\":\"bias.relu\".*\"bytes\":9248.0.*\"verified\":true")
  message(FATAL_ERROR "not what was asked for:\n${lines}")
endif()
file(WRITE ${FOLDER}/rows.jsonl "${lines}")
bench(same 0 --from rows.jsonl --json)
if(NOT same STREQUAL lines)
  message(FATAL_ERROR "read and printed again:\n${lines}${same}")
endif()

# Of packed operands the product alone is timed, and the row says so.
bench(packed 0 --shapes 24x40x56 --packed-b --path fma --repeat 1 --warm-up 0 --no-ceiling --json)
if(NOT packed MATCHES "\"packed\":\"b\",\"epilogue\":\"plain\".*,pack=b.*\"verified\":true")
  message(FATAL_ERROR "not what was asked for:\n${packed}")
endif()
execute_process(COMMAND ${LAUNCHER} ${TOOL} bench --shapes 24x40x56 --packed-b --path fma --repeat 1 --warm-up 0
                        --no-ceiling --baseline rows.jsonl
                WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE error)
if(NOT code EQUAL 2 OR NOT error MATCHES "none of these cases")
  message(FATAL_ERROR "plain rows are no baseline of packed ones, but: ${code}, ${error}")
endif()

# Each row has the ceiling of its own unit. A device without matrices of this shape has one only.
set(unit --shapes 32x32x32 --repeat 1 --warm-up 0 --json)
bench(each 0 ${unit} --config fma:tile=16x16x8,fragment=4x4,peel=0
      --config khr:tile=16x16x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,peel=0)
string(REGEX MATCHALL "\"ceiling_tflops\":[0-9.e+-]+" ceilings "${each}")
string(REGEX MATCHALL "\"median_ms\":" timed "${each}")
list(LENGTH ceilings count)
list(LENGTH timed rows)
list(REMOVE_DUPLICATES ceilings)
list(LENGTH ceilings units)
if(NOT count EQUAL rows OR NOT units EQUAL rows)
  message(FATAL_ERROR "fma and khr have not a ceiling each:\n${each}")
endif()

# A baseline that took hardly any time, and one that took an hour.
string(REGEX REPLACE "\"median_ms\":[^,]*," "\"median_ms\":1e-9," fast "${lines}")
file(WRITE ${FOLDER}/fast.jsonl "${fast}")
bench(ignored 4 ${case} --no-ceiling --baseline fast.jsonl)
string(REGEX REPLACE "\"median_ms\":[^,]*," "\"median_ms\":3.6e6," slow "${lines}")
file(WRITE ${FOLDER}/slow.jsonl "${slow}")
bench(ignored 0 ${case} --no-ceiling --baseline slow.jsonl)
