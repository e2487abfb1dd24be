# Processes that try every kind are killed at random: no kind is condemned for it. TESTS, FOLDER; LAUNCHER may be
# empty. COUNT: of kills. A kind is on the device for milliseconds; after a kill in these, all begins anew, since the
# next one of the same kind would be a verdict.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(verdicts ${FOLDER}/verdicts.json)
set(kills 0)
set(hits 0)
set(rounds 0)
while(kills LESS COUNT)
  string(RANDOM LENGTH 3 ALPHABET 0123456789 random)
  math(EXPR hundredths "1${random} % 400 + 10") # from 0.1 to 4 seconds
  math(EXPR seconds "${hundredths} / 100")
  math(EXPR hundredths "${hundredths} % 100 + 100")
  string(SUBSTRING ${hundredths} 1 2 hundredths)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env VKGEMM_TEST_VERDICTS=${verdicts} ${LAUNCHER} ${TESTS}
            --gtest_also_run_disabled_tests --gtest_filter=SelfTests.DISABLED_TryEverything
    TIMEOUT ${seconds}.${hundredths} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(text "")
  if(EXISTS ${verdicts})
    file(READ ${verdicts} text)
  endif()
  if(text MATCHES "crashed|timed_out" OR output MATCHES "failed the self-test")
    message(FATAL_ERROR "after ${kills} kills a kind is condemned:\n${text}\n${output}")
  endif()
  if(text MATCHES "\"trying\"")
    math(EXPR hits "${hits} + 1")
    file(REMOVE ${verdicts})
  endif()
  if(result EQUAL 0) # it came to its end: all over again
    math(EXPR rounds "${rounds} + 1")
    file(REMOVE ${verdicts})
  elseif(result MATCHES "timeout")
    math(EXPR kills "${kills} + 1")
  else()
    message(FATAL_ERROR "the tests end with ${result}:\n${output}")
  endif()
endwhile()
math(EXPR most_hits "${kills} / 5 + 1")
if(hits GREATER most_hits)
  message(FATAL_ERROR "${hits} of ${kills} kills found a kind noted: more than its products take")
endif()
message("${kills} kills, ${hits} of them on the device, ${rounds} rounds complete")
