# The tool's refusals before it asks for a device, and their words. TOOL, FOLDER, SANITIZED, WINDOWS.
file(MAKE_DIRECTORY ${FOLDER})

function(make)
  execute_process(COMMAND ${TOOL} make ${ARGN} WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# refused("the arguments" "what the message must contain")
function(refused text message)
  separate_arguments(arguments UNIX_COMMAND "${text}")
  execute_process(COMMAND ${TOOL} ${arguments} WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(FIND "${output}" "${message}" position)
  if(NOT code EQUAL 2 OR position EQUAL -1)
    message(SEND_ERROR "vkgemm ${text} exits with ${code}, expected 2 and '${message}':\n${output}")
  endif()
endfunction()

make(a.npy --shape 3x8)
make(b.npy --shape 8x6)
make(odd.npy --shape 8x7)
make(gamma.npy --shape 6 --dtype f32)
make(gamma16.npy --shape 6 --dtype f16)
make(gammas.npy --shape 2x6)
make(short.npy --shape 5)
set(generated "run --m 3 --n 6 --k 8")
set(files "run --a a.npy --b b.npy")

# an empty size of a group is none
refused("run --groups 3,4, --n 6 --k 8" "--groups")

# files that cannot be written, before anything is computed
refused("${files} --out none/d.npy" "none/d.npy")
refused("${generated} --activation relu --aux none/aux.npy" "none/aux.npy")
refused("make none/x.npy --shape 100000x100000" "none/x.npy")
if(NOT WINDOWS AND EXISTS /dev/null)
  file(CREATE_LINK /dev/null ${FOLDER}/null SYMBOLIC)
  make(null --shape 5)
  if(NOT IS_SYMLINK ${FOLDER}/null)
    message(SEND_ERROR "vkgemm make replaces a link to a device by a file")
  endif()
endif()

# a command that there is not
refused("frobnicate" "'frobnicate' is no command: There are info, run, pack, quantise, quantise-rows, make, bench, tune")
refused("beench --shapes 8" "'beench' is no command: did you mean bench?")

# an option that there is not
refused("${generated} --actvation relu" "'--actvation' is no option of vkgemm run: did you mean --activation? See vkgemm run --help")
refused("${generated} --actvation=relu" "did you mean --activation?")
refused("run a.npy" "'a.npy' is no argument of vkgemm run: its options begin with --")
refused("bench --xyzzy" "'--xyzzy' is no option of vkgemm bench: see vkgemm bench --help")
refused("${generated} --dtype s32" "--dtype is 's32': one of f16|bf16|f32|s8|u8|e4m3|e5m2 is needed")
refused("bench --shapes 8 --dtype s32" "--dtype is 's32': one of f16|bf16|f32|s8|u8|e4m3|e5m2 is needed")
refused("${generated} --dtype-bias s32" "--dtype-bias is 's32': one of f16|bf16|f32 is needed")
refused("${generated} --dtype-d s4" "--dtype-d is 's4': one of f16|bf16|f32|s8|s32|u8|e4m3|e5m2 is needed")
refused("${generated} --dtype-aux s32 --with-aux" "--dtype-aux is 's32': one of f16|bf16|f32|s8|u8|e4m3|e5m2 is needed")
refused("${generated} --dtype-d u8 --zero-point=-1" "epilogue.zero_point is -1: for d.type u8 it must be from 0 to 255")
refused("quantise --n 8 --k 8 --format int8 --dtype f32 --out no.vkp" "--dtype is 'f32': one of f16|bf16|s8 is needed")
refused("${generated} --json" "'--json' is no option of vkgemm run: see")
refused("pack b.npy" "'b.npy' is no argument of vkgemm pack")
refused("${generated} --dtype fp16" "--dtype is 'fp16': one of f16|")
refused("${generated} --dtype fp16" "is needed; did you mean f16?")
refused("${generated} --activation gellu" "; did you mean gelu_erf?")
refused("${generated} --gated swigl:halves" "; did you mean swiglu?")
refused("${generated} --quantised-b int3:group=64" "; did you mean int")
refused("${generated} --split-k 2:none" "--split-k is '2:none': after the colon one of two_dispatches")

# What is not computed is not verified either, and --help says so.
execute_process(COMMAND ${TOOL} run --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[ \n]+" " " help "${help}")
if(NOT help MATCHES "rows of no group are not computed, nor verified: they are NaN")
  message(SEND_ERROR "run --help does not say what rows of no group hold:\n${help}")
endif()

# The host's memory is no matter of usage. 256 TiB are beyond what a process can address.
if(NOT SANITIZED)  # their allocators end the process
  execute_process(COMMAND ${TOOL} make huge.npy --shape 2147483647x65535 WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 3 OR NOT output MATCHES "no host memory")
    message(SEND_ERROR "vkgemm make of 256 TiB exits with ${code}, expected 3 and 'no host memory':\n${output}")
  endif()
endif()

# unknown names
refused("${generated} --row-op rmsnorm" "--row-op is 'rmsnorm': one of rms_norm|")
refused("${generated} --gated swish" "--gated is 'swish': one of sigmoid_tanh|")
refused("${generated} --gated swiglu:half" "--gated is 'swiglu:half': one of")
refused("bench --shapes 8 --row-op rmsnorm" "--row-op is 'rmsnorm'")

# rows
refused("${generated} --row-eps 1" "--row-eps needs --row-op")
refused("${generated} --with-row-beta" "--with-row-beta needs --row-op")
refused("${generated} --without-d" "--without-d needs --row-op")
refused("bench --shapes 8 --with-row-gamma" "--with-row-gamma needs --row-op")
refused("${generated} --row-op rms_norm --dtype-row-vectors f16" "needs --with-row-gamma")
refused("${generated} --row-op softmax --dtype-row-values f16" "--dtype-row-values needs --row-op logsumexp")
refused("${generated} --row-values v.npy" "--row-values needs --row-op logsumexp")
refused("${generated} --row-op rms_norm --row-values v.npy" "--row-values needs --row-op logsumexp")
refused("${generated} --row-op sum --without-d --out d.npy" "--out needs a D, which --without-d leaves out")
refused("${generated} --row-op rms_norm --row-gamma gamma.npy" "--row-gamma needs --a and --b")
refused("${files} --row-gamma gamma.npy" "--row-gamma needs --row-op rms_norm or layer_norm")
refused("${files} --row-op rms_norm --with-row-gamma" "--with-row-gamma is for generated matrices")
refused("${files} --row-op rms_norm --row-gamma none.npy" "none.npy: no such file")
refused("${files} --row-op rms_norm --row-gamma short.npy" "--row-gamma must have N = 6 values, but is short.npy (5,)")
refused("${files} --row-op rms_norm --row-gamma gammas.npy" "--row-gamma must be one vector, but is gammas.npy (2, 6)")
refused("${files} --row-op layer_norm --row-gamma gamma.npy --row-beta gamma16.npy"
        "--row-beta must be f32, but gamma16.npy is f16")

# bias
refused("${files} --bias gamma.npy --dtype-bias f16" "--dtype-bias is for generated matrices")
refused("${files} --bias gamma.npy --batch-stride-bias 6" "--batch-stride-bias is for generated matrices")
refused("${files} --bias short.npy" "--bias must have N = 6 values, but is short.npy (5,)")
refused("${files} --bias gamma.npy --bias-mode none" "--bias needs --bias-mode along_n or along_m")
refused("${files} --bias-mode along_n" "bias has no file: give --bias")

# C
refused("${files} --c b.npy" "--c needs --beta, the factor of C")
refused("${files} --beta 1" "c has no file: give --c")

# gates
refused("${generated} --gated swiglu:separate --b-right b.npy" "--b-right needs --a and --b")
refused("${files} --b-right b.npy" "--b-right and --gated …:separate belong together")
refused("${files} --gated swiglu:separate" "--b-right and --gated …:separate belong together")
refused("${files} --gated swiglu:separate --b-right odd.npy" "both halves of B must have one shape")
refused("run --a a.npy --b odd.npy --gated swiglu" "B has two halves, but odd.npy (8, 7) has 7 columns")

# packed operands
refused("pack --n 8 --k 8 --out x.npy" "--out is 'x.npy': a name that ends in .vkp is needed")
refused("pack --n 8 --k 8 --out none/x.vkp" "none/x.vkp")
refused("pack --out x.vkp" "give --a or --b, or to generate them")
refused("pack --m 8 --n 8 --k 8 --out x.vkp" "one operand is packed at a time")
refused("pack --a a.npy --n 8 --out x.vkp" "one operand is packed at a time")
refused("pack --n 8 --out x.vkp" "--k is needed to generate b")
refused("pack --b b.npy --k 8 --out x.vkp" "b.npy says its type, sizes and layout itself")
refused("pack --b odd.npy --gated swiglu --out x.vkp" "B has two halves, but odd.npy (8, 7) has 7 columns")
refused("quantise --b b.npy --out x.vkp" "--format is required")
refused("quantise --b b.npy --format int5 --out x.vkp" "--format: quantisation 'int5': 'int5' is none of int8, int4")
refused("quantise --b b.npy --format int4:group=x --out x.vkp" "part 'group=x': a number is needed, or all")
refused("quantise --b b.npy --format int4 --out x.npy" "--out is 'x.npy': a name that ends in .vkp is needed")

# f32 in parts
refused("${generated} --f32 bf16x9" "f32_arithmetic is bf16x9 and a.type is f16: only f32 is multiplied in parts")
refused("${generated} --dtype s8 --f32 f16x3" "f32_arithmetic is f16x3 and a.type is s8: only f32 is multiplied in parts")
refused("${generated} --dtype f32 --f32 tf32" "--f32 is 'tf32': one of ieee|bf16x9|bf16x6|f16x3")
refused("bench --shapes 8 --dtype f32 --f32 bf16" "--f32 is 'bf16': one of ieee|")
refused("${generated} --dtype f32 --f32 f16x3 --row-scales-mode shared"
        "f32_arithmetic is f16x3 and epilogue.row_scales is shared: not built together")

# rows that become s8
refused("quantise-rows --out x.npy --scales s.npy" "give --a, whose rows are quantised, or --b, whose columns are")
refused("quantise-rows --a a.npy --b b.npy --out x.npy --scales s.npy" "--a excludes --b")
refused("quantise-rows --a a.npy --out x.npy" "--scales is required")
refused("quantise-rows --a a.npy --scales s.npy" "--out is required")
refused("quantise-rows --a short.npy --out x.npy --scales s.npy" "short.npy: shape (5,): a matrix")
refused("quantise-rows --a a.npy --out none/x.npy --scales s.npy" "none/x.npy")
refused("quantise-rows --a a.npy --out x.npy --scales none/s.npy" "none/s.npy")
refused("run --a a.npy --b none.vkp" "none.vkp: no such file")
file(COPY_FILE ${FOLDER}/b.npy ${FOLDER}/foreign.vkp)
refused("run --a a.npy --b foreign.vkp" "foreign.vkp: not a .vkp file: it does not begin with vkgemmVP")
file(WRITE ${FOLDER}/short.vkp "vkgemmVP")
refused("run --a a.npy --b short.vkp" "short.vkp: header is 8 bytes, 512 are needed: the file is cut short")
refused("bench --shapes 8 --batch 0" "--shapes: '8' has no work to time")

# tune
file(REMOVE ${FOLDER}/table.json)
set(tune "tune --m 3 --n 6 --k 8")
refused("${tune}" "give --out FILE or --default-table for the table, or --compare")
refused("${tune} --out table.json --default-table" "--out")
refused("${tune} --compare --resume" "--resume needs --out")
refused("tune --compare" "nothing to tune: give --log, --shapes, or --m, --n and --k")
refused("tune --compare --shapes 8x8" "--shapes: '8x8' is neither N nor MxNxK")
refused("tune --compare --shapes 8x8x0" "a product of nothing has no time")
refused("tune --compare --log none.log" "--log: none.log cannot be read")
refused("tune --compare --log a.npy" "--log: no problem in a.npy")
refused("${tune} --compare --from nvidia_sm90" "--from")
refused("${tune} --compare --table none.json" "tuning table none.json: ")
file(WRITE ${FOLDER}/table.json "{\"architecture\": \"x\",\n \"rows\": [{\"rate\": 0}]}")
refused("${tune} --out table.json" "table.json is there already: give --resume")
refused("${tune} --out table.json --resume" "line 2: rows[0].config is missing")
