// constants.h: the specialization constants, the values of the enumerations that they carry, and
// sizes of main loops that C++ and GLSL must agree on. Compiled as both.
#ifndef VKGEMM_CONSTANTS_H
#define VKGEMM_CONSTANTS_H

#include "quantised.h"
#include "types.h"

#define BIAS_NONE 0
#define BIAS_ALONG_N 1
#define BIAS_ALONG_M 2

#define ACTIVATION_NONE 0  // others: epilogue/activation.h

// The steps of an epilogue: StepOp. A step is a constant, the sum of its parts, each shifted.
#define STEP_NONE 0
#define STEP_ADD 1
#define STEP_SUBTRACT 2
#define STEP_MULTIPLY 3
#define STEP_DIVIDE 4
#define STEP_MAXIMUM 5
#define STEP_MINIMUM 6
#define STEP_ACTIVATE 7
#define STEP_DERIVATIVE 8
#define STEP_STORE 9
#define STEP_SUM_COLUMNS 10
#define STEP_AMAX 11
#define STEP_ARGUMENT 12
#define STEP_FUNCTION 13

// X(name, NAME): the enumerators of StepOp and of VkgemmStepOp after none, in the order of the
// values above.
#define VKGEMM_STEP_OPS(X)     \
    X(add, ADD)                \
    X(subtract, SUBTRACT)      \
    X(multiply, MULTIPLY)      \
    X(divide, DIVIDE)          \
    X(maximum, MAXIMUM)        \
    X(minimum, MINIMUM)        \
    X(activate, ACTIVATE)      \
    X(derivative, DERIVATIVE)  \
    X(store, STORE)            \
    X(sum_columns, SUM_COLUMNS) \
    X(amax, AMAX)              \
    X(argument, ARGUMENT)      \
    X(function, FUNCTION)

#define STEP_ACTIVATION_SHIFT 4  // one of epilogue/activation.h; the number of an argument
#define STEP_OPERAND_SHIFT 9     // OPERAND_*
#define STEP_TYPE_SHIFT 12       // TYPE_*
#define STEP_PLACE_SHIFT 16      // PLACE_*
#define STEP_COL_MAJOR_SHIFT 18  // the tensor is column-major; a function gets (column, row)
#define STEP_VECTOR_SHIFT 19     // accesses to four elements at once are allowed

// The most arguments of a function beside the value: components of a vec4.
#define MOST_ARGUMENTS 4

// The second operand of a step: its number, or a tensor of one of the shapes of TensorShape.
#define OPERAND_NUMBER 0
#define OPERAND_SCALAR 1
#define OPERAND_ALONG_N 2
#define OPERAND_ALONG_M 3
#define OPERAND_MATRIX 4
#define OPERAND_MASK 5

// The place of a tensor in the parameter block: that of C, aux or bias if there is none, or its own.
#define PLACE_C 0
#define PLACE_AUX 1
#define PLACE_BIAS 2
#define PLACE_EXTRA 3
#define PLACE_COUNT 4

// The factors of rows and of columns: Scales.
#define SCALES_NONE 0
#define SCALES_SHARED 1
#define SCALES_PER_MATRIX 2
#define SCALES_OF_PARTS 3  // those of the lines of f32 in parts: parts.glsl

// Gates make D of the products with the left and the right half of B, see gated.glsl.
#define GATE_NONE 0
#define GATE_SIGMOID_TANH 1
#define GATE_GEGLU_ERF 2
#define GATE_GEGLU_TANH 3
#define GATE_SWIGLU 4
#define GATE_REGLU 5
#define GATE_GLU 6

// The reduction modes: who adds the slices of K, see split_k.glsl.
#define SPLIT_NONE 0
#define SPLIT_TWO_DISPATCHES 1
#define SPLIT_LAST_ARRIVER 2
#define SPLIT_DEVICE_BARRIER 3

#define GROUPED_NONE 0
#define GROUPED_ALONG_M 1
#define GROUPED_ALONG_K 2

// The rows of D by index: row_index.glsl.
#define SCATTER_NONE 0
#define SCATTER_ROWS 1   // each row is stored to the row of its index
#define SCATTER_TERMS 2  // rows are added up to rows of D, by sum_rows.comp

// Row reductions. From ROW_OP_LOGSUMEXP on they give a number a row.
#define ROW_OP_NONE 0
#define ROW_OP_RMS_NORM 1
#define ROW_OP_LAYER_NORM 2
#define ROW_OP_SOFTMAX 3
#define ROW_OP_L2_NORMALIZE 4
#define ROW_OP_LOGSUMEXP 5
#define ROW_OP_SUM 6
#define ROW_OP_MAX 7
#define ROW_OP_MEAN 8
#define ROW_OP_VARIANCE 9
#define ROW_OP_QUANTISE 10  // also transforms D
#define ROW_OP_AMAX 11

// X(name, NAME): the enumerators of RowOp and of VkgemmRowOp, in the order of the values above.
#define VKGEMM_ROW_OPS(X)          \
    X(rms_norm, RMS_NORM)          \
    X(layer_norm, LAYER_NORM)      \
    X(softmax, SOFTMAX)            \
    X(l2_normalize, L2_NORMALIZE)  \
    X(logsumexp, LOGSUMEXP)        \
    X(sum, SUM)                    \
    X(max, MAX)                    \
    X(mean, MEAN)                  \
    X(variance, VARIANCE)          \
    X(quantise, QUANTISE)      \
    X(amax, AMAX)

// The specialization constants of all kernels, which use what they need: X(id, name, default).
// Booleans are 0 or 1. Ids are consecutive.
#define VKGEMM_CONSTANTS(X) \
    /* The configuration. */ \
    X(0, LOCAL_SIZE, 128)    /* invocations of a workgroup */ \
    X(1, TILE_M, 128) \
    X(2, TILE_N, 128) \
    X(3, TILE_K, 32) \
    X(4, FRAGMENT_M, 16) \
    X(5, FRAGMENT_N, 16) \
    X(6, FRAGMENT_K, 16) \
    X(7, SUBGROUPS_M, 2) \
    X(8, SUBGROUPS_N, 2) \
    X(9, SUBTILES, 4) \
    X(10, SWIZZLE, 8) \
    X(11, UNROLL_K, 1) \
    X(12, PEEL, 1) \
    X(13, SPLIT, SPLIT_NONE)    /* a workgroup takes a slice of K only: SPLIT_* */ \
    /* The operands. */ \
    X(14, A_COL_MAJOR, 0) \
    X(15, B_COL_MAJOR, 0) \
    X(16, A_VECTOR, 8)    /* 0: loads element by element. Else 16-byte loads are allowed, and */ \
    X(17, B_VECTOR, 8)    /* the value is a power of two of elements that divides the ld */ \
    X(18, A_PADDED, 0)    /* packed: in fragment order, or rows can be read up to the ld */ \
    X(19, B_PADDED, 0) \
    X(20, C_VECTOR, 1)    /* accesses to four elements at once are allowed */ \
    X(21, D_VECTOR, 1) \
    X(22, AUX_VECTOR, 1) \
    X(23, STATIC_N, 0)    /* 0: read from the push constants, see elements.glsl, tile.glsl */ \
    X(24, STATIC_K, 0) \
    X(25, STATIC_LDA, 0) \
    X(26, STATIC_LDB, 0) \
    X(27, EDGES, 1)     /* M or N is not a multiple of the tile */ \
    X(28, K_TAIL, 1)    /* K is not a multiple of TILE_K * UNROLL_K */ \
    /* The epilogue. */ \
    X(29, C_TYPE, TYPE_NONE)      /* TYPE_NONE: beta is 0, C is not read */ \
    X(30, D_TYPE, TYPE_F32)       /* TYPE_NONE: only row values are stored */ \
    X(31, AUX_TYPE, TYPE_NONE)    /* TYPE_NONE: no aux */ \
    X(32, BIAS_TYPE, TYPE_NONE) \
    X(33, BIAS, BIAS_NONE) \
    X(34, ACTIVATION, ACTIVATION_NONE) \
    X(35, CLAMP, 0) \
    X(36, GUARDED, 0)    /* does nothing unless the dispatch before gave up waiting */ \
    /* Grouped products. */ \
    X(37, GROUPED, GROUPED_NONE) \
    X(38, OFFSETS_64, 0)    /* offsets are int64 */ \
    X(39, PERSISTENT, 0)    /* workgroups take tiles by stride */ \
    /* Row reductions. */ \
    X(40, ROW_OP, ROW_OP_NONE) \
    X(41, ROW_GAMMA, 0)    /* rows are scaled, … */ \
    X(42, ROW_SHIFT, 0)    /* … and shifted, … */ \
    X(43, ROW_VECTOR_TYPE, TYPE_F32)    /* … by vectors of this type */ \
    X(44, ROW_VALUE_TYPE, TYPE_F32) \
    X(45, ROW_SHARED, 0)    /* tiles share rows: reduce_tiles.comp is not resident */ \
    /* Gated products. */ \
    X(46, GATE, GATE_NONE) \
    X(47, GATE_INTERLEAVED, 0)    /* neighbouring columns of B, bias and aux are a pair */ \
    /* Row reductions and gated products. */ \
    X(48, C_COL_MAJOR, 0)    /* C and aux */ \
    X(49, D_COL_MAJOR, 0) \
    /* The direct loop and the operands in fragment order: fragment_words.glsl. */ \
    X(50, AHEAD, 1)     /* how far loads are ahead: KhrDirectLoop::ahead */ \
    X(51, SWAP_A, 0)    /* the middle two of the words of A have changed places */ \
    X(52, PACKS_B, 0) \
    X(53, PACK_HALVES, 0)    /* of a gated product's B, one behind the other */ \
    X(54, SUBGROUPS_K, 1)    /* subgroups that share K */ \
    X(55, NARROW_SLICES, 0)    /* D is stored from slices of its own 16 bits: khr_narrow.glsl */ \
    X(56, INTERLEAVE_K, 0)    /* K of fragments is in another order: fragment_words.glsl */ \
    /* A quantised B: quantised.h. */ \
    X(57, CODES, CODES_NONE) \
    X(58, CODE_GROUP_K, 0)    /* of K, that share a scale; 0: all of K */ \
    X(59, SCALE_TYPE, TYPE_F16)    /* or SCALE_LEVELS */ \
    X(60, CODE_ZEROS, ZEROS_NONE)    /* the numbers that follow scales: ZEROS_* */ \
    X(61, CODE_GROUP_N, 1)    /* that share a scale where it is packed from; 0: all */ \
    X(62, CODE_SOURCE, SOURCE_ARRAYS)    /* what it is packed from: SOURCE_* */ \
    X(63, CODE_RUN, 1)    /* elements of an invocation's fragment that are of one column */ \
    /* Factors of the product: epilogue.glsl. */ \
    X(64, ROW_SCALES, SCALES_NONE) \
    X(65, COLUMN_SCALES, SCALES_NONE) \
    /* Rows that are quantised: quantise_rows.comp. */ \
    X(66, SOURCE_TYPE, TYPE_F16) \
    /* f32 in parts: parts.glsl. */ \
    X(67, LAST_ORDER, 0)    /* parts are multiplied whose numbers add up to at most this */ \
    /* A quantised B in the direct loop. */ \
    X(68, SCALES_OF, SCALES_OF_CODES)    /* what scales multiply: SCALES_OF_* */ \
    /* Workgroups that wait for others, and row reductions. */ \
    X(69, SPIN_LIMIT, 0)    /* how often a workgroup polls for others before it gives up */ \
    X(70, ROW_EPS, 0)    /* the bits of eps */ \
    /* The steps of the epilogue, and the bits of their numbers: steps.glsl. */ \
    X(71, STEP_COUNT, 0) \
    X(72, STEP0, 0) \
    X(73, STEP1, 0) \
    X(74, STEP2, 0) \
    X(75, STEP3, 0) \
    X(76, STEP4, 0) \
    X(77, STEP5, 0) \
    X(78, STEP6, 0) \
    X(79, STEP7, 0) \
    X(80, STEP_NUMBER0, 0) \
    X(81, STEP_NUMBER1, 0) \
    X(82, STEP_NUMBER2, 0) \
    X(83, STEP_NUMBER3, 0) \
    X(84, STEP_NUMBER4, 0) \
    X(85, STEP_NUMBER5, 0) \
    X(86, STEP_NUMBER6, 0) \
    X(87, STEP_NUMBER7, 0) \
    /* The parameters of a gate, and the bits of their numbers: gated.glsl. */ \
    X(88, GATE_SWAPPED, 0) \
    X(89, GATE_LIMIT, 0)    /* 0: there is none */ \
    X(90, GATE_SLOPE, 0x3f800000u)    /* 1.0: there is none */ \
    X(91, GATE_OFFSET, 0)    /* 0: there is none */ \
    X(92, C_STEP, 0)    /* 1 + the step whose matrix is loaded in place of C, ahead; 0: there is none */ \
    X(93, HAS_COLUMN_SUMS, 0)    /* a step sums columns: column_sums.glsl */ \
    X(94, ZERO_POINT, 0)    /* of an integer D: store_d.glsl */ \
    X(95, BYTE_TYPES, 0)    /* an operand has a type of 8 bits: bytes.glsl */ \
    X(96, HAS_AMAX, 0)    /* a step finds the largest magnitude: steps.glsl */ \
    X(97, EPILOGUE_FUNCTION, 0)    /* the function that steps call; it marks the one that gives way: steps.glsl */ \
    /* The types of A and B in memory, if loads convert them: converted.glsl. The source's, if a kernel packs. */ \
    X(98, A_TYPE, TYPE_NONE) \
    X(99, B_TYPE, TYPE_NONE) \
    X(100, SUM_BATCH, 0)    /* the products of a batch are added up: multiply_tile() */ \
    /* Groups of rows by index: row_index.glsl. */ \
    X(101, GATHER, 0)    /* indices that share a row of A; 0: rows of A are in order */ \
    X(102, SCATTER, SCATTER_NONE) \
    X(103, INDEXED_B, 0)    /* a group's matrix B has an index */ \
    X(104, GROUP_ENDS, 0)    /* the numbers of where groups end follow those of where they begin */ \
    X(105, A_GROUP_K, 0)    /* of K, in which a row of A has a scale: scaled_sums.glsl; 0: none */ \
    X(106, ROTATE, 0)       /* KhrLoop::rotate */

// Rows are reduced by x4s, four neighbouring columns, merged as a binary tree up to so many
// columns; these blocks are merged from left to right. Whatever the tile, the order is the same.
#define ROW_BLOCK 1024
#define ROW_LEAST_TILE_N 32  // of tiles that share rows

// So many bytes along K change places with each other, word by word: INTERLEAVE_K.
#define INTERLEAVED_BYTES 64
#define INTERLEAVED_WORDS (INTERLEAVED_BYTES / 4)

// x4s of C that an invocation has on their way in khr's epilogue.
#define KHR_EPILOGUE_LOADS 8

// The most x4s of columns that an invocation of khr's epilogue sums: khr_slices.glsl.
#define KHR_MOST_SUMS 8

#ifdef __cplusplus
#include <array>
#include <cstddef>
#include <string_view>

namespace vkgemm {

// SPEC_TILE_M …: the ids, which index the values of a pipeline's constants.
enum SpecConstant : std::size_t {
#define VKGEMM_ENUMERATOR(id, name, value) SPEC_##name,
  VKGEMM_CONSTANTS(VKGEMM_ENUMERATOR)
#undef VKGEMM_ENUMERATOR
      SPEC_COUNT
};

#define VKGEMM_CHECK(id, name, value) \
  static_assert(SPEC_##name == id, "ids of specialization constants are consecutive");
VKGEMM_CONSTANTS(VKGEMM_CHECK)
#undef VKGEMM_CHECK

#define VKGEMM_NAME(id, name, value) std::string_view(#name),
inline constexpr std::array<std::string_view, SPEC_COUNT> spec_names{
    VKGEMM_CONSTANTS(VKGEMM_NAME)};
#undef VKGEMM_NAME

}  // namespace vkgemm
#else
#define VKGEMM_DECLARE(id, name, value) layout(constant_id = id) const uint name = value;
VKGEMM_CONSTANTS(VKGEMM_DECLARE)
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
#endif
#endif
