# `vkgemm info --self-test`: a driver that crashes or hangs is a verdict, and verdicts are kept. TOOL, FOLDER;
# LAUNCHER may be empty.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

# check("environment" exit_code "what the output must match" arguments...)
function(check environment expected pattern)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ${environment} ${LAUNCHER} ${TOOL} info --device 0 --self-test
            --cache ${FOLDER}/verdicts.json ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL expected OR NOT output MATCHES "${pattern}")
    message(SEND_ERROR "info --self-test ${ARGN} exits with ${code}, expected ${expected} and '${pattern}':\n${output}")
  endif()
endfunction()

# Kinds 2 and 5 are those of f32, on every device.
set(f32 --only "f32")
# A kind without a verdict is tried again. Anything else that is printed doesn't matter.
check("VKGEMM_SELF_TEST_FAULT=mute:2" 0 "f32 +untested: its process ended without a verdict" --only "skinny, f32")
check("VKGEMM_SELF_TEST_FAULT=chatter:5" 0 "main loop skinny, f32 +passed\n.*main loop fma, f32 +passed\n" ${f32})
file(REMOVE ${FOLDER}/verdicts.json)
# The first crashes, the second is tried all the same.
check("VKGEMM_SELF_TEST_FAULT=crash:2" 1
      "main loop skinny, f32 +crashed: its process was ended by signal.*main loop fma, f32 +passed\n" ${f32})
check("" 1 "f32 +crashed: .*from the cache.*main loop fma, f32 +passed .from the cache" ${f32})
check("VKGEMM_SELF_TEST_FAULT=hang:2" 1
      "main loop skinny, f32 +timed_out: its process did not end within 2 s" --only "skinny, f32" --fresh --timeout 2)
check("" 0 "main loop skinny, f32 +passed\n" --only "skinny, f32" --fresh)
check("" 2 "--only 'skiny': no kind has this in its name:.*main loop skinny, f32" --only skiny)
# Kinds beside each other: the one that crashes is tried again alone, the other ones keep what they found.
check("VKGEMM_SELF_TEST_FAULT=crash:2" 1
      "main loop skinny, f32 +crashed: its process was ended by signal.*main loop fma, f32 +passed\n" ${f32} --fresh
      --jobs 2)
check("" 0 "main loop skinny, f32 +passed\n.*main loop fma, f32 +passed\n" ${f32} --fresh --jobs 2)
# Who is ended by somebody else has not crashed.
check("VKGEMM_SELF_TEST_FAULT=killed:2" 0 "f32 +untested: its process was ended by signal 9" --only "skinny, f32" --fresh)
# A parent may ignore its children's ends, and leaves that to those that it starts.
file(WRITE ${FOLDER}/deaf "trap '' CHLD\nexec \"$@\"\n")
set(LAUNCHER sh ${FOLDER}/deaf ${LAUNCHER})
check("VKGEMM_SELF_TEST_FAULT=crash:2" 1 "skinny, f32 +crashed: its process was ended by signal" --only "skinny, f32"
      --fresh)
check("" 0 "main loop skinny, f32 +passed\n" --only "skinny, f32" --fresh)
check("" 0 "\"failed\": false.*\"outcome\": \"passed\".*\"from_cache\": true" ${f32} --json)
