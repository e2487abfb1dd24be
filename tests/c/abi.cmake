# cmake -DHEADER=vkgemm.h -DSOURCE=abi.c -P abi.cmake: writes a C program that prints the ABI: the size of every
# structure, the offset, size and type of every field, the value of every enumerator, the signature of every function.
# It compiles only if no structure has padding, and links only if every function is there.
file(READ ${HEADER} text)
string(REGEX REPLACE "//[^\n]*" "" text "${text}")
# What would take lists apart.
string(REPLACE ";" "@" text "${text}")
string(REPLACE "[" "<" text "${text}")
string(REPLACE "]" ">" text "${text}")
string(REGEX REPLACE "[ \n]+" " " text "${text}")
string(REPLACE "( " "(" text "${text}")

set(checks "")
set(body "")
function(print format)
  list(JOIN ARGN ", " arguments)
  if(arguments)
    string(PREPEND arguments ", ")
  endif()
  set(body "${body}  printf(\"${format}\\n\"${arguments});\n" PARENT_SCOPE)
endfunction()

string(REGEX MATCHALL "typedef struct [A-Za-z]+ {[^}]*}" structures "${text}")
foreach(structure IN LISTS structures)
  string(REGEX MATCH "typedef struct ([A-Za-z]+) {([^}]*)}" all "${structure}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "@" ";" fields "${CMAKE_MATCH_2}")
  print("struct ${name}, %zu bytes, aligned to %zu" "sizeof(${name})" "_Alignof(${name})")
  set(end 0)
  foreach(field IN LISTS fields)
    string(STRIP "${field}" field)
    if(NOT field STREQUAL "")
      string(REGEX MATCH "([A-Za-z0-9_]+)(<[A-Za-z0-9_]+>)?$" all "${field}")
      set(member ${CMAKE_MATCH_1})
      string(REPLACE "<" "[" field "${field}")
      string(REPLACE ">" "]" field "${field}")
      set(size "sizeof(((${name}*)0)->${member})")
      print("  %3zu + %2zu  ${field}" "offsetof(${name}, ${member})" "${size}")
      string(APPEND checks "_Static_assert(offsetof(${name}, ${member}) == ${end}, \"padding before ${name}::${member}\");\n")
      set(end "offsetof(${name}, ${member}) + ${size}")
    endif()
  endforeach()
  string(APPEND checks "_Static_assert(sizeof(${name}) == ${end}, \"padding at the end of ${name}\");\n")
  string(APPEND checks "_Static_assert(sizeof(${name}) % 8 == 0, \"${name} is no multiple of 8 bytes\");\n")
endforeach()

string(REGEX MATCHALL "typedef enum [A-Za-z0-9]+ {[^}]*}" enumerations "${text}")
foreach(enumeration IN LISTS enumerations)
  string(REGEX MATCH "typedef enum ([A-Za-z0-9]+) {([^}]*)}" all "${enumeration}")
  print("enum ${CMAKE_MATCH_1}, %zu bytes" "sizeof(${CMAKE_MATCH_1})")
  string(REGEX MATCHALL "VKGEMM_[A-Z0-9_]+" enumerators "${CMAKE_MATCH_2}")
  foreach(enumerator IN LISTS enumerators)
    print("  %3d  ${enumerator}" "(int)${enumerator}")
  endforeach()
endforeach()

string(REGEX MATCHALL "typedef [A-Za-z0-9]+\\(VKAPI_PTR\\*[^@]*" callbacks "${text}")
string(REGEX MATCHALL "VKGEMM_API [^@]*" functions "${text}")
foreach(function IN LISTS callbacks functions)
  string(REPLACE "VKGEMM_API " "" function "${function}")
  print("${function}")
  if(function MATCHES "^VkgemmStatus ([a-z0-9_]+)\\(")
    string(APPEND body "  symbol = (void (*)(void))${CMAKE_MATCH_1};\n")
  endif()
endforeach()

string(REPLACE "@" ";" body "${body}")
file(WRITE ${SOURCE} "// Written by tests/c/abi.cmake.
#include <stddef.h>
#include <stdio.h>
#include <vkgemm/vkgemm.h>

${checks}
int main(void) {
  void (*volatile symbol)(void) = NULL;
  printf(\"# The ABI of vkgemm.h where pointers have 8 bytes: written by vkgemm_c_abi, see src/c/README.md.\\n\");
${body}  return symbol == NULL;
}
")
