# cmake -D... -P dist.cmake: writes the source archive, which builds without a shader compiler.
#   SOURCE, NAME     the source tree; vkgemm-<version>
#   WORK, OUT        a folder to work in, which is emptied first; the archive
#   DATA             the generated source file of embedded modules and tables
#   ZSTD, JSON, SPIRV  folders of zstd's lib/, of nlohmann/json.hpp and of spirv/unified1/*.h*
cmake_minimum_required(VERSION 3.25)

set(root ${WORK}/${NAME})
set(vendored ${root}/third_party/vendored)
file(REMOVE_RECURSE ${WORK})
file(COPY ${SOURCE}/CMakeLists.txt ${SOURCE}/README.md ${SOURCE}/CHANGELOG.md ${SOURCE}/include ${SOURCE}/shaders ${SOURCE}/src
     DESTINATION ${root} PATTERN __pycache__ EXCLUDE PATTERN target EXCLUDE PATTERN Cargo.lock EXCLUDE)
file(GLOB files LIST_DIRECTORIES OFF ${SOURCE}/third_party/*)
file(COPY ${files} DESTINATION ${root}/third_party)
file(COPY ${SOURCE}/bench/results/h100-eight.svg DESTINATION ${root}/bench/results) # the README's picture
file(COPY ${DATA} DESTINATION ${vendored})

file(GLOB files ${ZSTD}/*.h)
file(COPY ${files} DESTINATION ${vendored}/zstd/lib)
foreach(folder IN ITEMS common decompress)
  file(GLOB files ${ZSTD}/${folder}/*.[ch])
  file(COPY ${files} DESTINATION ${vendored}/zstd/lib/${folder})
endforeach()
file(COPY ${JSON}/nlohmann DESTINATION ${vendored}/include)
file(COPY ${SPIRV}/spirv/unified1/spirv.hpp11 ${SPIRV}/spirv/unified1/GLSL.std.450.h DESTINATION ${vendored}/include/spirv/unified1)

# copy_licence(name candidate ...)
function(copy_licence name)
  foreach(candidate IN LISTS ARGN)
    if(EXISTS ${candidate})
      file(COPY_FILE ${candidate} ${vendored}/LICENCE.${name})
      return()
    endif()
  endforeach()
  list(JOIN ARGN ", " candidates)
  message(FATAL_ERROR "dist: the licence of ${name} is at none of ${candidates}.")
endfunction()
copy_licence(zstd ${ZSTD}/../LICENSE /usr/share/doc/libzstd-dev/copyright)
copy_licence(nlohmann-json ${JSON}/../share/doc/nlohmann-json3-dev/copyright ${JSON}/../share/licenses/nlohmann-json/LICENSE.MIT)
copy_licence(spirv-headers ${SPIRV}/../share/doc/spirv-headers/copyright ${SPIRV}/../share/licenses/spirv-headers/LICENSE)

execute_process(COMMAND ${CMAKE_COMMAND} -E tar cJf ${OUT} ${NAME} WORKING_DIRECTORY ${WORK} COMMAND_ERROR_IS_FATAL ANY)
file(SIZE ${OUT} bytes)
message(STATUS "${OUT}: ${bytes} bytes")
