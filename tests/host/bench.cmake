# `vkgemm bench` on stored rows, without a device: formats, peers, baselines, and the exit codes of each. TOOL, FOLDER, RESULTS.
file(MAKE_DIRECTORY ${FOLDER})
set(ENV{VK_DRIVER_FILES} ${FOLDER}/none.json)  # nothing here may compute
set(ENV{VK_ICD_FILENAMES} ${FOLDER}/none.json)

# bench(code "the arguments" "what the output must contain"...)
function(bench code text)
  separate_arguments(arguments UNIX_COMMAND "${text}")
  execute_process(COMMAND ${TOOL} bench ${arguments} WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL code)
    message(SEND_ERROR "vkgemm bench ${text} exits with ${result}, expected ${code}:\n${output}${errors}")
  endif()
  foreach(expected IN LISTS ARGN)
    string(FIND "${output}${errors}" "${expected}" position)
    if(position EQUAL -1)
      message(SEND_ERROR "vkgemm bench ${text}: '${expected}' is not in:\n${output}${errors}")
    endif()
  endforeach()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# row(file m ms more...): a line of a benchmark
function(row file m ms)
  string(JOIN "," fields "\"device\":\"card\",\"driver\":\"d 1\",\"commit\":\"c\",\"m\":${m},\"n\":64,\"k\":32"
         "\"type\":\"f16\",\"layout_a\":\"row_major\",\"layout_b\":\"row_major\",\"epilogue\":\"plain\",\"l2\":\"cold\""
         "\"kernel\":\"gemm\",\"config\":\"x\",\"plan_ms\":1,\"repeats\":3,\"median_ms\":${ms},\"min_ms\":${ms}"
         "\"tflops\":2,\"ceiling_tflops\":8,\"relative_error\":1e-4,\"verified\":true" ${ARGN})
  file(APPEND ${FOLDER}/${file} "{${fields}}\n")
endfunction()

file(REMOVE ${FOLDER}/new.jsonl ${FOLDER}/old.jsonl ${FOLDER}/other.jsonl ${FOLDER}/peers.jsonl ${FOLDER}/wrong.jsonl
     ${FOLDER}/mixed.jsonl ${FOLDER}/late.jsonl ${FOLDER}/lost.jsonl)
row(new.jsonl 16 1.0)
row(new.jsonl 16 2.0)  # another configuration: the fastest counts
row(new.jsonl 32 1.1)
row(new.jsonl 48 1.0)
row(old.jsonl 16 1.0)
row(old.jsonl 32 1.0)
row(old.jsonl 64 1.0)
row(peers.jsonl 16 3.0 "\"kernel\":\"cublas\"")
row(peers.jsonl 16 0.5 "\"kernel\":\"faster\"")
row(wrong.jsonl 16 1.0 "\"verified\":false")
row(mixed.jsonl 32 1.0)
row(mixed.jsonl 32 0.1 "\"verified\":false")
row(late.jsonl 16 7.0)
row(other.jsonl 99 1.0)
file(WRITE ${FOLDER}/lost.jsonl
     "{\"m\":16,\"n\":64,\"k\":32,\"type\":\"f16\",\"epilogue\":\"plain\",\"error\":\"no memory\"}\n")

# formats: what is printed as JSON lines reads as it was
bench(0 "--from new.jsonl" "16x64x32" "0.250" "ok 1.0e-04")
bench(0 "--from new.jsonl --json" "\"median_ms\":1.1,")
file(WRITE ${FOLDER}/again.jsonl "${output}")
bench(0 "--from again.jsonl --json")
file(READ ${FOLDER}/again.jsonl again)
if(NOT output STREQUAL again)
  message(SEND_ERROR "JSON lines change when they are read and printed:\n${again}\n${output}")
endif()
bench(0 "--from new.jsonl --from late.jsonl --json" "\"median_ms\":7")
string(FIND "${output}" "\"m\":16,\"n\":64,\"k\":32,\"type\":\"f16\",\"layout_a\":\"row_major\",\"layout_b\":\"row_major\",\"epilogue\":\"plain\",\"l2\":\"cold\",\"kernel\":\"gemm\",\"config\":\"x\",\"plan_ms\":1.0,\"repeats\":3,\"median_ms\":1.0" position)
if(NOT position EQUAL -1)
  message(SEND_ERROR "a later file does not replace the cases of an earlier one:\n${output}")
endif()

# peers: the fastest of each case
bench(0 "--from new.jsonl --peers peers.jsonl --markdown" "| 1.0000 | 2.0 | 0.250 | faster | 0.5000 | 4.0 | 0.50× |"
      "| 1.1000 | 2.0 | 0.250 | – |" "peers: card, d 1")
bench(0 "--from new.jsonl --peers peers.jsonl --json"
      "\"peer\":\"faster\",\"peer_ms\":0.5,\"times_peer\":0.5,\"peer_driver\":\"d 1\"}")
file(WRITE ${FOLDER}/again.jsonl "${output}")
bench(0 "--from again.jsonl --json")
file(READ ${FOLDER}/again.jsonl again)
if(NOT output STREQUAL again)
  message(SEND_ERROR "rows with a peer change when they are read and printed:\n${again}\n${output}")
endif()

# baseline: 1.1 times as long is a regression unless it is tolerated; a case that has no time any more is one
bench(4 "--from new.jsonl --baseline old.jsonl" "1.100  32x64x32 f16  REGRESSION" "1 of 2 cases are slower"
      "1 case is not in it" "1 of its cases were not timed now")
bench(0 "--from new.jsonl --baseline old.jsonl --tolerance 1.2" "0 of 2 cases are slower")
bench(4 "--from new.jsonl --baseline old.jsonl --json" "\"baseline_ms\":1.0,\"of_baseline\":1.1")
bench(4 "--from lost.jsonl --baseline old.jsonl" "REGRESSION: no memory" "the baseline's device is card, not ")
bench(2 "--from other.jsonl --baseline old.jsonl" "old.jsonl has none of these cases")

# a packed product is another case than a plain one: for files, peers and baselines
file(REMOVE ${FOLDER}/packed.jsonl ${FOLDER}/slow.jsonl)
row(packed.jsonl 16 0.9 "\"packed\":\"b\"")
bench(0 "--from new.jsonl --from packed.jsonl --json" "\"median_ms\":0.9," "\"median_ms\":2.0," "\"packed\":\"b\"")
bench(0 "--from packed.jsonl --peers peers.jsonl --markdown" "| 16×64×32 packed b | f16 |" "| 0.9000 | 2.0 | 0.250 | – |")
row(slow.jsonl 16 0.9 "\"packed\":\"b\",\"clock\":0.62")
bench(0 "--from slow.jsonl" "ok 1.0e-04, clock at 0.62 of its best")
bench(0 "--from slow.jsonl --markdown" "clock at 0.62 of its best")
bench(2 "--from packed.jsonl --baseline old.jsonl" "old.jsonl has none of these cases")
bench(0 "--from packed.jsonl --baseline packed.jsonl" "1.000  16x64x32 packed b f16")

# what is wrong outweighs what is slow, and its time is none to compare with
bench(0 "--from old.jsonl --baseline mixed.jsonl --tolerance 1" "0 of 1 cases are slower")
bench(1 "--from mixed.jsonl --baseline old.jsonl" "1.000  32x64x32 f16")
bench(1 "--from wrong.jsonl" "WRONG 1.0e-04" "1 of 1 results are wrong")
bench(1 "--from wrong.jsonl --from new.jsonl --from wrong.jsonl --baseline old.jsonl --tolerance 1")
bench(0 "--from lost.jsonl" "1 of 1 rows have no time")

# files that are none
file(WRITE ${FOLDER}/broken.jsonl "{\"m\":1,\"n\":1,\"k\":1,\"type\":\"f16\",\"epilogue\":\"plain\"}\n\n{\"m\":\n")
bench(2 "--from broken.jsonl" "broken.jsonl:3: not JSON")
file(WRITE ${FOLDER}/broken.jsonl "{\"m\":1,\"n\":1,\"k\":1,\"type\":\"f16\",\"epilogue\":\"plain\",\"median_ms\":-1}\n")
bench(2 "--from broken.jsonl" "broken.jsonl:1: median_ms is -1, not a finite number of at least 0")
bench(2 "--from new.jsonl --baseline none.jsonl" "none.jsonl cannot be read")
bench(2 "--from new.jsonl --shapes 8" "excludes")
bench(2 "--suite dense --dtype f16" "excludes")

# the results that are there
file(GLOB results RELATIVE ${RESULTS} ${RESULTS}/*-peers.jsonl)
if(NOT results)
  message(SEND_ERROR "no results in ${RESULTS}")
endif()
foreach(peers IN LISTS results)
  string(REPLACE "-peers.jsonl" ".jsonl" rows ${peers})
  bench(0 "--from ${RESULTS}/${rows} --peers ${RESULTS}/${peers} --markdown")
endforeach()

# suites: every case's options are understood, before a device is asked for
bench(0 "--list-suites" "dense:" "seeds:" "--shapes 131072x4096x512,2048,131072x1024x6144")
bench(2 "--suite none" "--suite is 'none': one of dense, epilogue, splitk, grouped, rowred, gated, packed, quantised, seeds is needed")
bench(3 "--suite dense,epilogue,splitk,grouped,rowred,gated,packed,quantised,seeds")
bench(2 "--shapes 8 --epilogue bias+gelu" "parts like bias+gelu_erf")
