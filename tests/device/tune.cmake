# `vkgemm tune` from the list of problems to a table that chooses; interrupted, and with a worker that is
# killed. TOOL, FOLDER; LAUNCHER may be empty.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(search --path fma --per-problem 2 --repeat 1)

# Runs a line of the shell, in which $tool is the command with its launcher.
function(shell line code output)
  list(JOIN LAUNCHER " " launcher)
  execute_process(COMMAND sh -c "tool=\"${launcher} ${TOOL}\"; ${line}" WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE exit OUTPUT_VARIABLE out ERROR_VARIABLE out TIMEOUT 100)
  if(NOT exit EQUAL code)
    message(FATAL_ERROR "${line}\nexits with ${exit}, expected ${code}:\n${out}")
  endif()
  message(STATUS "${line}")
  set(${output} "${out}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern} in:\n${text}")
  endif()
endfunction()

list(JOIN search " " search)

# From a log, with lines of other things and one problem twice.
file(WRITE ${FOLDER}/plans.log "starting\nvkgemm info: vkgemm run --m 16 --n 24 --k 16 --dtype f32 --dtype-d f32 \
--config fma:tile=32x32x16,fragment=4x4\n12:00 vkgemm run --m 16 --n 24 --k 16 --dtype f32 --dtype-d f32\n\
vkgemm run --m nonsense\n")
# The variable may already name the table that is to be written.
shell("VKGEMM_TUNING=table.json $tool tune --log plans.log --out table.json --time-limit 1 ${search} --json 2>&1"
      0 output)
expect("${output}" "VKGEMM_TUNING is left out: tuning table table.json: No such file")
expect("${output}" "1 problem in 4 lines \\(1 repeated, 1 left out, 1 of other things\\)")
expect("${output}" "\"built_in\":.*\"tuned\":.*\"best\":.*\"loss\":")
file(READ ${FOLDER}/table.json table)
expect("${table}" "\"m\":16,\"n\":24,\"k\":16,\"count\":1,\"config\":\"fma:.*\"problem\":\"--m 16 .*\"measured: ")

# A table that can't be written is told of before anything is measured.
shell("$tool tune --log plans.log --out none/table.json ${search} --json 2>&1" 2 output)
expect("${output}" "none/table.json.*cannot be written")
if(output MATCHES "\"event\"")
  message(FATAL_ERROR "nothing was to be measured here:\n${output}")
endif()

# It chooses.
shell("VKGEMM_TUNING=table.json $tool run --m 16 --n 24 --k 16 --dtype f32 --explain --repeat 0" 0 output)
expect("${output}" "tuning table: table.json\n  tuned: this shape, measured [0-9.]+ us")
expect("${output}" "verdict        PASSED")

# A measured time is not claimed for another epilogue.
shell("VKGEMM_TUNING=table.json $tool run --m 16 --n 24 --k 16 --dtype f32 --beta 1 --explain --repeat 0" 0 output)
expect("${output}" "tuned: this shape with another epilogue, measured [0-9.]+ us there\n.*\n  measured with another epilogue: ")

# One that is not right is told of and left out.
file(WRITE ${FOLDER}/bad.json "{\"architecture\": \"generic\",\n \"rows\": 3}")
shell("VKGEMM_TUNING=bad.json $tool run --m 16 --n 24 --k 16 --dtype f32 --explain --repeat 0 2>&1" 0 output)
expect("${output}" "VKGEMM_TUNING is left out: tuning table bad.json: line 2: rows is number, not an array")
if(output MATCHES "tuned: this shape")
  message(FATAL_ERROR "nothing was to be tuned here:\n${output}")
endif()

# There already: not replaced unasked, not measured again.
shell("$tool tune --log plans.log --out table.json ${search} 2>&1" 2 output)
expect("${output}" "give --resume")
shell("$tool tune --log plans.log --out table.json --resume ${search} 2>&1" 0 output)
expect("${output}" "table.json has 1 of 1 problems")

# The user's table is added to, and chooses.
set(home "XDG_CACHE_HOME=${FOLDER}/cache")
shell("${home} $tool tune --log plans.log --default-table --time-limit 1 ${search} 2>&1" 0 output)
expect("${output}" "wrote ${FOLDER}/cache/vkgemm/tuned-[0-9a-f-]+.json")
shell("${home} $tool tune --m 8 --n 24 --k 16 --dtype f32 --default-table --time-limit 1 ${search} 2>&1" 0 output)
shell("${home} $tool tune --log plans.log --default-table --resume ${search} 2>&1" 0 output)
expect("${output}" "cache/vkgemm/tuned-[0-9a-f-]+.json has 1 of 1 problems")
file(GLOB users_table ${FOLDER}/cache/vkgemm/tuned-*.json)
file(READ ${users_table} table)
expect("${table}" "\"m\":8,\"n\":24,\"k\":16.*\"m\":16,\"n\":24,\"k\":16")
shell("${home} $tool run --m 16 --n 24 --k 16 --dtype f32 --explain --repeat 0" 0 output)
expect("${output}" "tuning table: ${users_table}\n  tuned: this shape, measured [0-9.]+ us")
shell("${home} VKGEMM_TUNING=0 $tool run --m 16 --n 24 --k 16 --dtype f32 --explain --repeat 0" 0 output)
if(output MATCHES "tuned: this shape")
  message(FATAL_ERROR "the user's table was to be left out here:\n${output}")
endif()
file(WRITE ${users_table} "[")
shell("${home} $tool run --m 16 --n 24 --k 16 --dtype f32 --repeat 0 2>&1" 0 output)
expect("${output}" "the user's tuning table is left out: tuning table ${users_table}: ")

# A worker that is killed costs at most what it was at; a new one goes on, and what was there stays. Then an
# interrupt keeps what there is: as soon as a second problem is written.
set(shapes 16x24x16,24x16x16)
foreach(k RANGE 32 176 8)
  string(APPEND shapes ,16x16x${k})
endforeach()
shell("$tool tune --shapes ${shapes} --dtype f32 --out table.json --resume --time-limit 40 ${search} --json \
2>err.log >out.log & tune=$!; \
for i in $(seq 300); do worker=$(sed -n 's/.*\"worker\",\"pid\":\\([0-9]*\\).*/\\1/p' out.log | head -1); \
[ -n \"$worker\" ] && break; sleep 0.1; done; sleep 0.3; kill -9 $worker; \
for i in $(seq 300); do grep -q '^24x16x16 f32: ' err.log && break; sleep 0.1; done; \
kill -INT $tune; wait $tune" 130 output)
file(READ ${FOLDER}/out.log output)
expect("${output}" "\"worker\".*\"worker\"")
file(READ ${FOLDER}/err.log output)
expect("${output}" "table.json has 1 of 21 problems.*\n24x16x16 f32: .*interrupted: what was measured is kept.*wrote table.json")
file(READ ${FOLDER}/table.json table)
expect("${table}" "\"m\":16,\"n\":24,\"k\":16")
expect("${table}" "\"m\":24,\"n\":16,\"k\":16")

# A configuration that crashes while several are built is found by building them one at a time, and denied alone.
set(crowd "--m 16 --n 24 --k 16 --dtype f32 --path fma --per-problem 6 --within 50 --repeat 1 --threads 3")
set(guilty "fma:tile=16x32x16,fragment=4x4,peel=0")
shell("VKGEMM_TUNE_FAULT='crash ${guilty}' $tool tune ${crowd} --out crash.json --time-limit 6 --json 2>&1" 0 output)
expect("${output}" "\"worker\".*\"worker\".*FAILED: 16x24x16 f32, ${guilty}: signal.*\"worker\"")
expect("${output}" "\"failed\":1,")
file(READ ${FOLDER}/crash.json table)
expect("${table}" "\"tuned\": .*\"denied\": .\n    {\"config\":\"${guilty}\",[^\n]*\n  ]")

# A configuration that hangs is found out, however little time is left.
shell("VKGEMM_TUNE_FAULT='hang ${guilty}' $tool tune ${crowd} --patience 2 --time-limit 3 --out hang.json 2>&1 || true"
      0 output)
expect("${output}" "FAILED: 16x24x16 f32, ${guilty}: no answer for 2 seconds; denied")

# Where workgroups gave up waiting, another process goes on: this one's would not wait any more.
shell("VKGEMM_TUNE_FAULT='give_up ${guilty}' $tool tune ${crowd} --out late.json --time-limit 6 --json 2>&1" 0 output)
expect("${output}" "\"worker\".*LATE: 16x24x16 f32, ${guilty}: .*another process goes on.*\"worker\".*\"late\":1,")
file(READ ${FOLDER}/late.json table)
expect("${table}" "\"tuned\": .*\"microseconds\"")
if(table MATCHES "\"config\":\"${guilty}\"")
  message(FATAL_ERROR "who is late is not dangerous, and not chosen:\n${table}")
endif()

# The printed lines are all that a report needs, later and without a device.
shell("$tool tune --log plans.log --shapes 8x24x16 --dtype f32 ${search} --compare --time-limit 20 --json >compare.jsonl 2>err.log && \
$tool tune --report compare.jsonl 2>&1" 0 output)
expect("${output}" "loss: plans 1 problem, geometric mean [0-9.]+, worst [0-9.]+ \\(16x24x16 f32\\); the best of [0-9]+ tried of [0-9]+ legal")
shell("$tool tune --report compare.jsonl --log plans.log 2>&1" 2 output)
expect("${output}" "--report excludes --log|--log excludes --report")

# Each path that can compute a problem is timed, however few are tried and however little time there is.
shell("$tool tune --shapes 16x24x16 --dtype f16 --per-problem 1 --repeat 1 --time-limit 0.5 --compare --json 2>err.log"
      0 output)
expect("${output}" "\"timed\":{.*\"fma:")
execute_process(COMMAND ${LAUNCHER} ${TOOL} info --json OUTPUT_VARIABLE devices)
if(devices MATCHES "\"khr\": *{[^}]*\"available\": *true")
  expect("${output}" "\"timed\":{.*\"khr:")
endif()
