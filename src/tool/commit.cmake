# Writes HEADER with the commit of SOURCE, only if it has changed.
set(commit unknown)
execute_process(COMMAND git describe --always --dirty WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(described)
  set(commit ${described})
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define VKGEMM_COMMIT \"${commit}\"\n")
