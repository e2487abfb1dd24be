# PAGE shows EXAMPLE word for word.
file(READ ${PAGE} page)
file(READ ${EXAMPLE} example)
string(FIND "${page}" "${example}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not contain ${EXAMPLE} word for word: copy it into its block")
endif()
