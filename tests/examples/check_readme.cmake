# The README shows tests/examples/minimal.cpp word for word.
file(READ ${README} readme)
file(READ ${EXAMPLE} example)
string(FIND "${readme}" "${example}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "README.md does not contain ${EXAMPLE} word for word: copy it into the cpp block")
endif()
