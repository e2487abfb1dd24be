# Packed operands: the same bits from files, from packing first and from plain operands; in rows, and in fragments
# once there are verdicts and a table that prefers them. What was cut short, altered, or packed in another order is
# refused. TOOL, FOLDER; LAUNCHER may be empty.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(ENV{XDG_CACHE_HOME} ${FOLDER}/cache)  # no verdicts yet

# tool(exit_code "what the output must match" arguments...)
function(tool expected pattern)
  execute_process(COMMAND ${LAUNCHER} ${TOOL} ${ARGN} WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL expected OR NOT output MATCHES "${pattern}")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "vkgemm ${command} exits with ${code}, expected ${expected} and '${pattern}':\n${output}")
  endif()
endfunction()

function(same one other)
  file(SHA256 ${FOLDER}/${one} hash)
  file(SHA256 ${FOLDER}/${other} other_hash)
  if(NOT hash STREQUAL other_hash)
    message(FATAL_ERROR "${one} and ${other} differ")
  endif()
endfunction()

# Sums of so few small integers are exact, in whatever order.
foreach(matrix IN ITEMS "a 37x71" "b 71x70" "left 71x24" "right 71x24" "both 71x48" "experts 3x71x24")
  separate_arguments(matrix)
  list(GET matrix 0 name)
  list(GET matrix 1 shape)
  tool(0 "" make ${name}.npy --shape ${shape} --fill integers --seed 1)
endforeach()

# check(order_of_files): every arrangement, from plain operands, packed first, and from files
function(check order)
  set(gated run --a a.npy --gated reglu --repeat 0)
  tool(0 "in ${order}\n.*wrote +b.vkp" pack --b b.npy --out b.vkp)
  tool(0 "packed +a, 37 wide, K 71, f16, 1 matrix, in ${order}" pack --a a.npy --out a.vkp)
  tool(0 "PASSED" run --a a.npy --b b.npy --out plain.npy --repeat 0)
  tool(0 "PASSED" run --a a.npy --b b.npy --packed-b --out first.npy --repeat 0)
  tool(0 "PASSED.*wrote +mask.npy" run --a a.npy --b b.npy --tensors mask --steps store:t0 --t0 mask.npy --repeat 0)
  tool(0 "PASSED" run --a a.npy --b b.npy --tensors mask --steps multiply:t0 --t0 mask.npy --repeat 0)
  tool(0 "verification +not verified: b is packed" run --a a.npy --b b.vkp --out file.npy --repeat 0)
  tool(0 "not verified: a and b are packed" run --a a.vkp --b b.vkp --out files.npy --repeat 0)
  same(plain.npy first.npy)
  same(plain.npy file.npy)
  same(plain.npy files.npy)

  tool(0 "" pack --b b.npy --layout-d col_major --out columns.vkp)
  tool(0 "PASSED" run --a a.npy --b b.npy --layout-d col_major --out plain.npy --repeat 0)
  tool(0 "not verified" run --a a.npy --b columns.vkp --layout-d col_major --out file.npy --repeat 0)
  same(plain.npy file.npy)
  tool(2 "b.vkp: packed for .*: place in the product is b, wanted is a" run --a a.npy --b b.vkp --layout-d col_major)

  tool(0 "" pack --b both.npy --gated reglu --out both.vkp)
  tool(0 "PASSED" ${gated} --b both.npy --out plain.npy)
  tool(0 "not verified" ${gated} --b both.vkp --out file.npy)
  same(plain.npy file.npy)
  tool(0 "" pack --b left.npy --out left.vkp)
  tool(0 "" pack --b right.npy --out right.vkp)
  tool(0 "PASSED" run --a a.npy --gated reglu:separate --b left.npy --b-right right.npy --out plain.npy --repeat 0)
  tool(0 "not verified" run --a a.npy --gated reglu:separate --b left.vkp --b-right right.vkp --out file.npy --repeat 0)
  same(plain.npy file.npy)

  tool(0 "3 matrices" pack --b experts.npy --out experts.vkp)
  tool(0 "PASSED" run --a a.npy --b experts.npy --out plain.npy --repeat 0)
  tool(0 "not verified" run --a a.npy --b experts.vkp --out file.npy --repeat 0)
  same(plain.npy file.npy)
  set(groups run --a a.npy --groups 17,0,20 --b-per-group --repeat 0)
  tool(0 "PASSED" ${groups} --b experts.npy --out plain.npy)
  tool(0 "not verified" ${groups} --b experts.vkp --out file.npy)
  same(plain.npy file.npy)

  tool(0 "in ${order}.*codes int4:group=32:zeros\nerror +0.0[0-9]+ of the elements' norm" quantise --b b.npy
       --format int4:group=32:zeros --out codes.vkp)
  tool(0 "relative error 0.0.*PASSED" run --a a.npy --b b.npy --quantised-b int4:group=32:zeros --out first.npy
       --repeat 0)
  tool(0 "packed b int4:group=32:zeros.*not verified" run --a a.npy --b codes.vkp --out file.npy --repeat 0)
  same(first.npy file.npy)
endfunction()

check(rows)
file(COPY_FILE ${FOLDER}/b.vkp ${FOLDER}/rows.vkp)

tool(0 "khr_direct.*passed" info --self-test --only "khr_direct" --device 0)
# The estimates of lavapipe's table prefer rows all the same.
tool(0 "in rows\n" pack --b b.npy --out b.vkp)
tool(0 "packed by the caller, in fragment order.*PASSED" run --a a.npy --b b.npy --packed-b-fragments --explain
     --repeat 0)
file(WRITE ${FOLDER}/fragments.json "{\"architecture\": \"cpu\", \"rows\": [{\"input_types\": [\"f16\"], \"rate\": 1, \
\"config\": \"khr_direct:tile=16x16x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,peel=0,pack=ab\", \
\"provenance\": \"derived: for a test\"}]}")
set(ENV{VKGEMM_TUNING} ${FOLDER}/fragments.json)
check("fragments of 8x8 for subgroups of 8")
# What was packed in rows before stays usable, and the tool says what packing it again would give.
tool(0 "packed by the caller, in rows; packed again, in fragments: khr_direct" run --a a.npy --b rows.vkp
     --explain --repeat 0)
tool(0 "packed by the caller, in rows.*PASSED" run --a a.npy --b b.npy --packed-b-rows --explain --repeat 0)

# Files that are not what they were.
execute_process(COMMAND head -c 612 b.vkp WORKING_DIRECTORY ${FOLDER} OUTPUT_FILE ${FOLDER}/short.vkp
                COMMAND_ERROR_IS_FATAL ANY)
tool(2 "short.vkp: payload is 100 bytes, the header says [0-9]+\n" run --a a.npy --b short.vkp)
execute_process(COMMAND sh -c "{ head -c 600 b.vkp; printf '#'; tail -c +602 b.vkp; } > altered.vkp"
                WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
tool(2 "altered.vkp: hash differs: the file was altered" run --a a.npy --b altered.vkp)
file(COPY_FILE ${FOLDER}/b.npy ${FOLDER}/foreign.vkp)
tool(2 "foreign.vkp: not a .vkp file" run --a a.npy --b foreign.vkp)
tool(2 "b.vkp: operand is b, wanted is a" run --a b.vkp --b b.vkp)
tool(2 "b.vkp: packed for .*: what was packed is one matrix, wanted is both halves of a gated product"
     run --a a.npy --b b.vkp --gated swiglu)

# No code stands for infinity, and no scale of f16 for what is larger than that.
tool(0 "" make wide.npy --shape 71x70 --dtype bf16)
foreach(last IN ITEMS "b 174 infinite" "wide 177 large")  # the upper byte of the last element, octal
  separate_arguments(last)
  list(GET last 0 from)
  list(GET last 1 byte)
  list(GET last 2 to)
  execute_process(COMMAND sh -c "{ head -c -2 ${from}.npy; printf '\\000\\${byte}'; } > ${to}.npy"
                  WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
tool(2 "b.0, 70, 69. is inf: what is quantised must be finite"
     quantise --b infinite.npy --format int4:group=32:zeros --out none.vkp)
tool(2 "b.0, 70, 69. is inf" run --a a.npy --b infinite.npy --quantised-b int8)
tool(2 "b.0, 64, 69. is .*: the scale of its group, or what it gives, is too large"
     quantise --b large.npy --bf16 --format int4:group=32 --out none.vkp)

# Rows and columns that become s8.
tool(0 "quantised +a, 37 rows of 71, f16, 1 matrix\nerror +0.00[0-9]+ of the elements' norm, 0.0[0-9]+ at most\nwrote"
     quantise-rows --a a.npy --out a8.npy --scales a_scales.npy)
tool(0 "quantised +b, 70 columns of 71, f16, 1 matrix\nerror +0.00" quantise-rows --b b.npy --out b8.npy
     --scales b_scales.npy)
tool(0 "b, 24 columns of 71, f16, 3 matrices" quantise-rows --b experts.npy --out experts8.npy --scales scales.npy)
tool(0 "not finite +1 columns, whose codes are 0" quantise-rows --b infinite.npy --out none.npy --scales scales.npy)
tool(2 "a8.npy .37, 71. is s8: f16, f32, or with --bf16 bf16 is needed" quantise-rows --a a8.npy --out none.npy
     --scales scales.npy)
foreach(header IN ITEMS "a8 .i1 False .37,.71." "b8 .i1 True .71,.70." "experts8 .i1 False .3,.71,.24." "a_scales .f4 False .37,."
        "b_scales .f4 False .70,.")
  separate_arguments(header)
  list(POP_FRONT header name descr order shape)
  file(STRINGS ${FOLDER}/${name}.npy words LIMIT_INPUT 118 REGEX "descr")
  if(NOT words MATCHES "'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}")
    message(FATAL_ERROR "${name}.npy begins with ${words}")
  endif()
endforeach()

# A product's rows become what its f32 D does. Files of 8-bit floats are read as what an option names.
tool(0 "" run --a a.npy --b b.npy --dtype-d f32 --out d32.npy)
tool(0 "" quantise-rows --a d32.npy --out d8.npy --scales d_scales.npy)
tool(0 "" run --a a.npy --b b.npy --row-op quantise --out fused8.npy --row-values fused_scales.npy)
same(d8.npy fused8.npy)
tool(0 "" run --a a.npy --b b.npy --dtype-d e4m3 --alpha 0.25 --out d_e4m3.npy)
tool(0 "" run --a a.npy --b b.npy --c d_e4m3.npy --dtype-c e4m3 --beta 2 --dtype-d f32 --out sum.npy)
tool(0 "" run --a a.npy --b b.npy --dtype-d u8 --zero-point 128 --out d_u8.npy)
tool(2 "--c: d_e4m3.npy says its type and layout itself" run --a a.npy --b b.npy --c d_e4m3.npy --dtype-c f16 --beta 2)

# What is not known is not verified, nor packed again.
tool(2 "--verify is full, but of b only the packed form is known" run --a a.npy --b b.vkp --verify full)
tool(2 "--packed-b is for plain matrices: b.vkp is packed already" run --a a.npy --b b.vkp --packed-b)
tool(2 "--quantised-b is for plain matrices: b.vkp is packed already" run --a a.npy --b b.vkp --quantised-b int8)

# Options of what is not packed.
tool(2 "--gated is of B: A is packed" pack --a a.npy --gated reglu --out none.vkp)
tool(2 "--layout-a, .* are of A: B is packed" pack --n 8 --k 8 --layout-a col_major --out none.vkp)
tool(2 "b has no elements: it is 0 by K 64" pack --n 0 --k 64 --out none.vkp)

# Nothing to gain: nothing is written.
tool(2 "b, 64 by K 64 of type f32: .* gains nothing by packing it, nothing is written"
     pack --n 64 --k 64 --dtype f32 --out none.vkp)
if(EXISTS ${FOLDER}/none.vkp)
  message(FATAL_ERROR "vkgemm pack writes a file that is refused")
endif()
