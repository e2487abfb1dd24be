# cmake -DOPT=spirv-opt -DAS=spirv-as -DDIS=spirv-dis -DPASSES=list -DCALLED=list -DIN=file -DOUT=file -P optimise.cmake
# Runs the passes of spirv-opt on text of the module, which is changed before and after:
# - Most passes skip a module that names an extension which they do not know, as SPV_KHR_bfloat16 and SPV_EXT_float8 are. So
#   the module goes through them without these names.
# - The functions of CALLED, by their names in GLSL, are not inlined.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(disassemble in)
  run(${DIS} --raw-id --no-indent --no-color ${in} -o ${OUT}.text)
  file(READ ${OUT}.text text)
  set(text "${text}" PARENT_SCOPE)
endfunction()

function(assemble out)
  file(WRITE ${OUT}.text "${text}")
  run(${AS} --target-env vulkan1.3 --preserve-numeric-ids ${OUT}.text -o ${out})
endfunction()

disassemble(${IN})
string(REGEX MATCH "OpExtension \"(SPV_KHR_bfloat16|SPV_EXT_float8)\"\n" extension "${text}")
if(extension)
  string(REPLACE "${extension}" "" text "${text}")
endif()
foreach(function IN LISTS CALLED)
  if(text MATCHES "OpName (%[0-9]+) \"${function}\\(")
    string(REGEX REPLACE "(\n${CMAKE_MATCH_1} = OpFunction %[0-9]+ )None" "\\1DontInline" text "${text}")
  elseif(text MATCHES "OpName %[0-9]+ \"${function}")
    message(FATAL_ERROR "${IN}: ${function} has another name: ${CMAKE_MATCH_0}")
  endif()
endforeach()
assemble(${OUT}.unnamed)
run(${OPT} --target-env=vulkan1.3 --skip-validation ${PASSES} ${OUT}.unnamed -o ${OUT}.optimised)
disassemble(${OUT}.optimised)
string(REPLACE " DontInline " " None " text "${text}") # drivers inline what they like
if(extension)
  string(REGEX REPLACE "(\nOpCapability [^\n]*\n)(OpExtension|[^\n]*OpExtInstImport|OpMemoryModel)" "\\1${extension}\\2" text "${text}")
endif()
assemble(${OUT})
file(REMOVE ${OUT}.text ${OUT}.unnamed ${OUT}.optimised)
