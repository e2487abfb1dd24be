# cmake -DOPT=spirv-opt -DAS=spirv-as -DDIS=spirv-dis -DPASSES=list -DIN=file -DOUT=file -P optimise.cmake
# Runs the passes of spirv-opt. Most passes skip a module that names an extension which they do not know, and
# SPV_KHR_bfloat16 is one. So the module goes through them without this name.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(extension "OpExtension \"SPV_KHR_bfloat16\"\n")
set(target --target-env=vulkan1.3)
file(STRINGS ${IN} named REGEX SPV_KHR_bfloat16)
if(NOT named)
  run(${OPT} ${target} ${PASSES} ${IN} -o ${OUT})
  return()
endif()

run(${DIS} --raw-id --no-indent --no-color ${IN} -o ${OUT}.text)
file(READ ${OUT}.text text)
string(REPLACE "${extension}" "" text "${text}")
file(WRITE ${OUT}.text "${text}")
run(${AS} --target-env vulkan1.3 --preserve-numeric-ids ${OUT}.text -o ${OUT}.unnamed)
run(${OPT} ${target} --skip-validation ${PASSES} ${OUT}.unnamed -o ${OUT}.optimised)
run(${DIS} --raw-id --no-indent --no-color ${OUT}.optimised -o ${OUT}.text)
file(READ ${OUT}.text text)
string(REGEX REPLACE "(\nOpCapability [^\n]*\n)(OpExtension|[^\n]*OpExtInstImport|OpMemoryModel)" "\\1${extension}\\2" text "${text}")
file(WRITE ${OUT}.text "${text}")
run(${AS} --target-env vulkan1.3 --preserve-numeric-ids ${OUT}.text -o ${OUT})
file(REMOVE ${OUT}.text ${OUT}.unnamed ${OUT}.optimised)
