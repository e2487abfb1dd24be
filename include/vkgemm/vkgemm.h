// vkgemm/vkgemm.h: the whole of vkgemm in C11, for C and for every language that calls C.
//
// Every program makes four calls: vkgemm_requirements_query() before vkCreateDevice(),
// vkgemm_context_create() once for each device, vkgemm_plan_create() once for each shape, and
// vkgemm_plan_record() any number of times. Functions and fields mean the same as in the C++ API.
// Comments name the C++ header if it says more.
//
// Status. Every function returns a VkgemmStatus: VKGEMM_SUCCESS or the kind of failure. Many take a
// VkgemmError, which may be null; its message names the field and its value. A call that fails
// changes no output except the error, and the size of a text that did not fit.
//
// Handles are opaque. Null, a handle of another kind, and other memory give
// VKGEMM_ERROR_INVALID_HANDLE. A destroyed handle usually gives it, too, unless its memory was used
// again: do not rely on it. Destroying null does nothing.
//
// Structures begin with their size, so that a newer library serves an older caller. A structure
// that you fill has a function that sets its size and defaults, as in vkgemm_matrix_init(&a, sizeof
// a). In a structure that vkgemm fills, set struct_size to sizeof yourself. If a structure is
// smaller than the library's, its missing fields have their defaults. If it is larger, the
// additional bytes must be zero. A size of no version is VKGEMM_ERROR_INVALID_ARGUMENT. Fields
// named `reserved` must be zero. There is no padding. VkgemmDeviceSpan and VkgemmFingerprint are
// plain values: they have no size and will never change.
//
// Lifetime. vkgemm reads your structures during the call only. The handles and functions in
// VkgemmContextCreateInfo, and log_user_data, outlive the context and its plans. A pointer that you
// receive belongs to the handle that you asked, and is valid as long as the handle, unless its
// declaration says less.
//
// Texts are UTF-8 and end with a zero byte; names of files, too. A function that writes a text
// takes a buffer and its size. Before the call, `*size` holds the bytes of the buffer; afterwards,
// the bytes of the text, with its zero byte. With a null buffer it only returns the size.
//
// Threads. "Any thread": any number of threads may make the call at once, with the same handles,
// too. "One thread": no other thread may use the handle during the call. Outputs, and a
// VkgemmError, always belong to the caller alone.
#ifndef VKGEMM_VKGEMM_H
#define VKGEMM_VKGEMM_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

#include "vkgemm/export.h"   // VKGEMM_API
#include "vkgemm/version.h"  // VKGEMM_VERSION_MAJOR, VKGEMM_VERSION_MINOR, VKGEMM_VERSION_PATCH

#ifdef __cplusplus
extern "C" {
#endif

// --- Handles -------------------------------------------------------------------------------------

// The error of the last call that it was passed to. Use one for each thread.
typedef struct VkgemmError VkgemmError;

// The extensions and features to enable on a physical device.
typedef struct VkgemmRequirements VkgemmRequirements;

// The capabilities of a device. Immutable; they belong to their requirements or context.
typedef struct VkgemmCaps VkgemmCaps;

// A list of the self-test's verdicts.
typedef struct VkgemmVerdicts VkgemmVerdicts;

// vkgemm on one VkDevice.
typedef struct VkgemmContext VkgemmContext;

// A list of the configurations that compute a problem. Immutable.
typedef struct VkgemmCandidates VkgemmCandidates;

// A product, the packing of an operand, or the quantisation of rows, bound to pipelines. Immutable.
typedef struct VkgemmPlan VkgemmPlan;

// --- Enumerations --------------------------------------------------------------------------------
// Every enumerator has its value for good. *_MAX_ENUM is no value: it makes enumerations 32 bits
// wide, as Vulkan's are.

// Success, or the kind of failure. A call that fails records nothing. The statuses 1 to 8, 15 and
// 16 report a fault of the call: an argument, an operand or a handle.
typedef enum VkgemmStatus {
  VKGEMM_SUCCESS = 0,
  VKGEMM_ERROR_INVALID_ARGUMENT = 1,      // a field has a value that no device could accept
  VKGEMM_ERROR_UNSUPPORTED = 2,           // valid, but not computed by this device or version
  VKGEMM_ERROR_MISALIGNED = 3,            // an address or a stride is less aligned than promised
  VKGEMM_ERROR_SPAN_TOO_SMALL = 4,        // a span ends before the last element that is touched
  VKGEMM_ERROR_OVERLAPPING_OPERANDS = 5,  // a written operand shares bytes that it must not share
  VKGEMM_ERROR_WORKSPACE_TOO_SMALL = 6,   // smaller than vkgemm_plan_workspace_bytes()
  VKGEMM_ERROR_WRONG_FINGERPRINT = 7,     // packed for another device, driver, order or matrix
  VKGEMM_ERROR_WRONG_CONTEXT = 8,         // the plan is of another context
  VKGEMM_ERROR_MISSING_FEATURE = 9,       // the device lacks an extension or a feature
  VKGEMM_ERROR_IO = 10,                   // a file could not be read or written
  VKGEMM_ERROR_OUT_OF_HOST_MEMORY = 11,
  VKGEMM_ERROR_OUT_OF_DEVICE_MEMORY = 12,
  VKGEMM_ERROR_DEVICE_LOST = 13,       // sticky: later calls return it, too; destruction works
  VKGEMM_ERROR_DRIVER = 14,            // any other VkResult below zero: vkgemm_error_vk_result()
  VKGEMM_ERROR_INVALID_HANDLE = 15,    // null, of another kind, destroyed, or no handle
  VKGEMM_ERROR_BUFFER_TOO_SMALL = 16,  // for the text: *size says how many bytes it takes
  VKGEMM_ERROR_INTERNAL = 17,          // an exception that vkgemm did not expect: please report it
  VKGEMM_STATUS_MAX_ENUM = 0x7FFFFFFF
} VkgemmStatus;

// How much a message matters.
typedef enum VkgemmLogLevel {
  VKGEMM_LOG_LEVEL_INFO = 0,
  VKGEMM_LOG_LEVEL_WARNING = 1,
  VKGEMM_LOG_LEVEL_ERROR = 2,
  VKGEMM_LOG_LEVEL_MAX_ENUM = 0x7FFFFFFF
} VkgemmLogLevel;

// IEEE 754 binary16, bfloat16 and binary32; integers in two's complement.
typedef enum VkgemmDataType {
  VKGEMM_DATA_TYPE_ANY = 0,   // in VkgemmDenial, and in VkgemmProblem::multiply_as
  VKGEMM_DATA_TYPE_F16 = 1,   // 2 bytes
  VKGEMM_DATA_TYPE_BF16 = 2,  // 2 bytes
  VKGEMM_DATA_TYPE_F32 = 3,   // 4 bytes
  VKGEMM_DATA_TYPE_S8 = 4,    // 1 byte
  VKGEMM_DATA_TYPE_S32 = 5,   // 4 bytes; of D if A and B are s8
  VKGEMM_DATA_TYPE_U8 = 6,    // 1 byte; of A and B only with multiply_as
  VKGEMM_DATA_TYPE_E4M3 = 7,  // 1 byte, ±448, NaN 0x7f and 0xff, no infinities
  VKGEMM_DATA_TYPE_E5M2 = 8,  // 1 byte, ±57344, the upper byte of an f16
  VKGEMM_DATA_TYPE_MAX_ENUM = 0x7FFFFFFF
} VkgemmDataType;

// The arithmetic of products of f32. All but IEEE split each element into 16-bit parts that matrix
// units multiply, and add the products in f32. vkgemm/problem.hpp says how much each errs.
typedef enum VkgemmF32Arithmetic {
  VKGEMM_F32_ARITHMETIC_IEEE = 0,    // multiply-adds of f32
  VKGEMM_F32_ARITHMETIC_BF16X9 = 1,  // three bf16, nine products, which are exact
  VKGEMM_F32_ARITHMETIC_BF16X6 = 2,  // without the three smallest products
  VKGEMM_F32_ARITHMETIC_F16X3 = 3,   // two f16, three products; scales rows and columns first
  VKGEMM_F32_ARITHMETIC_MAX_ENUM = 0x7FFFFFFF
} VkgemmF32Arithmetic;

// The order of the elements of a matrix in memory.
typedef enum VkgemmLayout {
  VKGEMM_LAYOUT_ROW_MAJOR = 0,  // element (i, j) is at i * ld + j
  VKGEMM_LAYOUT_COL_MAJOR = 1,  // element (i, j) is at j * ld + i
  VKGEMM_LAYOUT_MAX_ENUM = 0x7FFFFFFF
} VkgemmLayout;

// The form of an operand.
typedef enum VkgemmPacking {
  VKGEMM_PACKING_PLAIN = 0,  // rows or columns
  // In the order that vkgemm_plan_pack() writes, which suits the device. For A and B of 16-bit
  // types and s8, of types converted to 16 bits, and of f32 if VkgemmProblem::f32_arithmetic is not
  // IEEE.
  VKGEMM_PACKING_PACKED = 1,
  // In rows, on every device: PACKED writes the same bytes where rows are the device's order. Not
  // for s8 and f32. See vkgemm_packing_of().
  VKGEMM_PACKING_PACKED_ROWS = 2,
  // In fragments: VKGEMM_ERROR_UNSUPPORTED if main loop khr_direct is not legal here.
  VKGEMM_PACKING_PACKED_FRAGMENTS = 3,
  VKGEMM_PACKING_MAX_ENUM = 0x7FFFFFFF
} VkgemmPacking;

// Applied to each element of the result, by its name in PyTorch.
typedef enum VkgemmActivation {
  VKGEMM_ACTIVATION_NONE = 0,
  VKGEMM_ACTIVATION_RELU = 1,
  VKGEMM_ACTIVATION_GELU_ERF = 2,
  VKGEMM_ACTIVATION_GELU_TANH = 3,  // approximated by tanh
  VKGEMM_ACTIVATION_SILU = 4,
  VKGEMM_ACTIVATION_SIGMOID = 5,
  VKGEMM_ACTIVATION_TANH = 6,
  VKGEMM_ACTIVATION_SOFTPLUS = 7,    // log(1 + exp(v))
  VKGEMM_ACTIVATION_HARD_SWISH = 8,  // v · min(max(v + 3, 0), 6) / 6
  VKGEMM_ACTIVATION_EXP = 9,
  VKGEMM_ACTIVATION_ABS = 10,
  VKGEMM_ACTIVATION_SQUARE = 11,
  VKGEMM_ACTIVATION_SQRT = 12,
  // These take a number, so they must be steps (VkgemmEpilogueStep::number).
  VKGEMM_ACTIVATION_LEAKY_RELU = 13,  // v < 0 ? number · v : v
  VKGEMM_ACTIVATION_ELU = 14,         // v > 0 ? v : number · (exp(v) - 1)
  VKGEMM_ACTIVATION_MAX_ENUM = 0x7FFFFFFF
} VkgemmActivation;

// The operation of a step on the value v of each element; x is its operand. NaN in v or x gives
// NaN.
typedef enum VkgemmStepOp {
  VKGEMM_STEP_OP_NONE = 0,
  VKGEMM_STEP_OP_ADD = 1,         // v + x
  VKGEMM_STEP_OP_SUBTRACT = 2,    // v - x
  VKGEMM_STEP_OP_MULTIPLY = 3,    // v · x
  VKGEMM_STEP_OP_DIVIDE = 4,      // v / x
  VKGEMM_STEP_OP_MAXIMUM = 5,     // max(v, x)
  VKGEMM_STEP_OP_MINIMUM = 6,     // min(v, x)
  VKGEMM_STEP_OP_ACTIVATE = 7,    // activation(v)
  VKGEMM_STEP_OP_DERIVATIVE = 8,  // v · activation'(x)
  VKGEMM_STEP_OP_STORE = 9,       // writes cast(v) to the tensor; v stays
  // Writes the sum of v over the rows of D to the tensor, for each column; v stays. The tensor is
  // f32 and along_n: a vector for each matrix of a batch and for each group. At most one step.
  // StepOp::sum_columns in vkgemm/epilogue.hpp has the limits.
  VKGEMM_STEP_OP_SUM_COLUMNS = 10,
  // Writes the largest |v| of all elements of D to the tensor, which is f32 and scalar; v stays. At
  // most one step. StepOp::amax in vkgemm/epilogue.hpp has the limits.
  VKGEMM_STEP_OP_AMAX = 11,
  VKGEMM_STEP_OP_ARGUMENT = 12,  // x becomes an argument of the next function, up to four; v stays
  VKGEMM_STEP_OP_FUNCTION = 13,  // VkgemmEpilogue::function of v, (i, j) and the arguments
  VKGEMM_STEP_OP_MAX_ENUM = 0x7FFFFFFF
} VkgemmStepOp;

// The operand of a step: its number, or one of the problem's tensors.
typedef enum VkgemmStepOperand {
  VKGEMM_STEP_OPERAND_NUMBER = 0,
  VKGEMM_STEP_OPERAND_T0 = 1,
  VKGEMM_STEP_OPERAND_T1 = 2,
  VKGEMM_STEP_OPERAND_T2 = 3,
  VKGEMM_STEP_OPERAND_T3 = 4,
  VKGEMM_STEP_OPERAND_MAX_ENUM = 0x7FFFFFFF
} VkgemmStepOperand;

// The elements of a tensor that belong to element (i, j) of D.
typedef enum VkgemmTensorShape {
  VKGEMM_TENSOR_SHAPE_NONE = 0,     // there is no such tensor
  VKGEMM_TENSOR_SHAPE_SCALAR = 1,   // one number, in memory
  VKGEMM_TENSOR_SHAPE_ALONG_N = 2,  // N values: element j
  VKGEMM_TENSOR_SHAPE_ALONG_M = 3,  // M values: element i
  VKGEMM_TENSOR_SHAPE_MATRIX = 4,   // M×N: element (i, j)
  // M×N bits: bit j % 8 of byte j / 8 of row i. A store writes v > 0, other steps read 1 or 0. The
  // type is u8, the layout that of D. ld, batch_stride and alignment are multiples of 4 bytes. The
  // default ld is 4 · ceil(N / 32). TensorShape::mask in vkgemm/epilogue.hpp has the limits.
  VKGEMM_TENSOR_SHAPE_MASK = 5,
  VKGEMM_TENSOR_SHAPE_MAX_ENUM = 0x7FFFFFFF
} VkgemmTensorShape;

// The vector that is added to the product, if any.
typedef enum VkgemmBias {
  VKGEMM_BIAS_NONE = 0,
  VKGEMM_BIAS_ALONG_N = 1,  // N values, bias[j] is added to every element of column j
  VKGEMM_BIAS_ALONG_M = 2,  // M values, bias[i] is added to every element of row i
  VKGEMM_BIAS_MAX_ENUM = 0x7FFFFFFF
} VkgemmBias;

// f32 factors for the rows or columns of A·B, contiguous. Vectors of a batch follow each other
// without gaps, and so do the column scales of groups of M.
typedef enum VkgemmScales {
  VKGEMM_SCALES_NONE = 0,
  VKGEMM_SCALES_SHARED = 1,  // one vector for the whole batch
  // One vector for each matrix; column scales with groups of M: one for each group.
  VKGEMM_SCALES_PER_MATRIX = 2,
  VKGEMM_SCALES_MAX_ENUM = 0x7FFFFFFF
} VkgemmScales;

// The function that a gated product applies to l and r, its products with the left and the right
// half of B.
typedef enum VkgemmGate {
  VKGEMM_GATE_SIGMOID_TANH = 0,  // sigmoid(l) * tanh(r)
  VKGEMM_GATE_GEGLU_ERF = 1,     // l * gelu(r)
  VKGEMM_GATE_GEGLU_TANH = 2,    // l * gelu(r), approximated by tanh
  VKGEMM_GATE_SWIGLU = 3,        // silu(l) * r: l is Llama's gate_proj, r its up_proj
  VKGEMM_GATE_REGLU = 4,         // l * relu(r)
  VKGEMM_GATE_GLU = 5,           // l * sigmoid(r)
  VKGEMM_GATE_MAX_ENUM = 0x7FFFFFFF
} VkgemmGate;

// The place of the columns of l and r in B. All give the same bits.
typedef enum VkgemmGatedB {
  VKGEMM_GATED_B_HALVES = 0,       // B is K×2N: N columns of l, then N of r
  VKGEMM_GATED_B_SEPARATE = 1,     // two matrices, K×N: VkgemmOperands::b of l, b_right of r
  VKGEMM_GATED_B_INTERLEAVED = 2,  // B is K×2N: columns 2j and 2j + 1 are of l and r
  VKGEMM_GATED_B_MAX_ENUM = 0x7FFFFFFF
} VkgemmGatedB;

// The type of the offsets of groups.
typedef enum VkgemmOffsetType {
  VKGEMM_OFFSET_TYPE_INT32 = 0,
  VKGEMM_OFFSET_TYPE_INT64 = 1,
  VKGEMM_OFFSET_TYPE_MAX_ENUM = 0x7FFFFFFF
} VkgemmOffsetType;

// The direction that is divided into groups.
typedef enum VkgemmGroupAlong {
  VKGEMM_GROUP_ALONG_M = 0,  // rows of A, C, D and aux belong to groups: tokens of experts
  VKGEMM_GROUP_ALONG_K = 1,  // every group has a D of its own: gradients of weights
  VKGEMM_GROUP_ALONG_MAX_ENUM = 0x7FFFFFFF
} VkgemmGroupAlong;

// One matrix B for all groups of rows, or one for each.
typedef enum VkgemmGroupedB {
  VKGEMM_GROUPED_B_SHARED = 0,
  VKGEMM_GROUPED_B_PER_GROUP = 1,  // VkgemmMatrix::batch_stride apart
  VKGEMM_GROUPED_B_MAX_ENUM = 0x7FFFFFFF
} VkgemmGroupedB;

// The numbers that say where groups begin and end.
typedef enum VkgemmGroupBounds {
  VKGEMM_GROUP_BOUNDS_OFFSETS = 0,           // [offsets[g], offsets[g + 1])
  VKGEMM_GROUP_BOUNDS_SIZES = 1,             // group_sizes: the first group begins at 0
  VKGEMM_GROUP_BOUNDS_STARTS_AND_SIZES = 2,  // [offsets[g], offsets[g] + group_sizes[g])
  VKGEMM_GROUP_BOUNDS_MAX_ENUM = 0x7FFFFFFF
} VkgemmGroupBounds;

// The result that a row reduction computes from each row v of N values.
typedef enum VkgemmRowOp {
  // These change a row of D as a whole.
  VKGEMM_ROW_OP_RMS_NORM = 0,      // v / sqrt(sum(v²) / n + eps) · gamma + beta
  VKGEMM_ROW_OP_LAYER_NORM = 1,    // (v - mean) / sqrt(variance + eps) · gamma + beta
  VKGEMM_ROW_OP_SOFTMAX = 2,       // exp(v - max) / sum(exp(v - max))
  VKGEMM_ROW_OP_L2_NORMALIZE = 3,  // v / max(sqrt(sum(v²)), eps)
  // These give one number for each row, and leave D as it is.
  VKGEMM_ROW_OP_LOGSUMEXP = 4,  // log(sum(exp(v)))
  VKGEMM_ROW_OP_SUM = 5,
  VKGEMM_ROW_OP_MAX = 6,
  VKGEMM_ROW_OP_MEAN = 7,
  VKGEMM_ROW_OP_VARIANCE = 8,  // sum((v - mean)²) / n: not n - 1
  // Makes s8 codes of D, and gives the scale of each row: D and row_values are the A and the
  // row_scales of an s8 product.
  VKGEMM_ROW_OP_QUANTISE = 9,  // round(v · (127 / max(|v|))), scale max(|v|) / 127
  // Gives one number for each row, and leaves D as it is.
  VKGEMM_ROW_OP_AMAX = 10,  // max(|v|)
  VKGEMM_ROW_OP_MAX_ENUM = 0x7FFFFFFF
} VkgemmRowOp;

// The matrix instructions that a kernel is built on.
typedef enum VkgemmPath {
  VKGEMM_PATH_NV = 0,   // VK_NV_cooperative_matrix2
  VKGEMM_PATH_KHR = 1,  // VK_KHR_cooperative_matrix
  VKGEMM_PATH_FMA = 2,  // plain Vulkan 1.3; also the true-f32 path everywhere
  VKGEMM_PATH_MAX_ENUM = 0x7FFFFFFF
} VkgemmPath;

// How A and B reach the units that multiply them.
typedef enum VkgemmMainLoop {
  VKGEMM_MAIN_LOOP_NV = 0,          // path nv
  VKGEMM_MAIN_LOOP_KHR = 1,         // path khr: through shared memory
  VKGEMM_MAIN_LOOP_KHR_RING = 2,    // path khr: through a ring of three stages
  VKGEMM_MAIN_LOOP_KHR_DIRECT = 3,  // path khr: from memory to registers
  VKGEMM_MAIN_LOOP_FMA = 4,         // path fma: through shared memory
  VKGEMM_MAIN_LOOP_SKINNY = 5,      // path fma: few rows of A
  VKGEMM_MAIN_LOOP_MAX_ENUM = 0x7FFFFFFF
} VkgemmMainLoop;

// The order in which workgroups of a grouped product take its tiles.
typedef enum VkgemmSchedule {
  VKGEMM_SCHEDULE_SIMPLE = 0,      // one workgroup a tile
  VKGEMM_SCHEDULE_PERSISTENT = 1,  // as many as the device keeps resident take tiles in turn
  VKGEMM_SCHEDULE_MAX_ENUM = 0x7FFFFFFF
} VkgemmSchedule;

// The workgroups that add the slices of K. All modes give the same bits.
typedef enum VkgemmReductionMode {
  VKGEMM_REDUCTION_MODE_ANY = 0,             // in VkgemmSplitK only: vkgemm chooses
  VKGEMM_REDUCTION_MODE_TWO_DISPATCHES = 1,  // a second dispatch, after a pipeline barrier
  VKGEMM_REDUCTION_MODE_LAST_ARRIVER = 2,    // the last workgroup to finish a tile
  VKGEMM_REDUCTION_MODE_DEVICE_BARRIER = 3,  // all workgroups, after a barrier in the dispatch
  VKGEMM_REDUCTION_MODE_MAX_ENUM = 0x7FFFFFFF
} VkgemmReductionMode;

// How a row reduction combines the tiles of a row. All give the same bits.
typedef enum VkgemmRowStrategy {
  VKGEMM_ROW_STRATEGY_NONE = 0,       // of problems without a row reduction
  VKGEMM_ROW_STRATEGY_RESIDENT = 1,   // a tile is as wide as N
  VKGEMM_ROW_STRATEGY_PANEL = 2,      // workgroups of a row exchange statistics and wait
  VKGEMM_ROW_STRATEGY_RECOMPUTE = 3,  // the product is computed twice
  VKGEMM_ROW_STRATEGY_TWO_PASS = 4,   // a second kernel reduces the stored values
  VKGEMM_ROW_STRATEGY_MAX_ENUM = 0x7FFFFFFF
} VkgemmRowStrategy;

// The invocations that share a cooperative matrix.
typedef enum VkgemmMatrixScope {
  VKGEMM_MATRIX_SCOPE_SUBGROUP = 0,
  VKGEMM_MATRIX_SCOPE_WORKGROUP = 1,
  VKGEMM_MATRIX_SCOPE_MAX_ENUM = 0x7FFFFFFF
} VkgemmMatrixScope;

// How the self-test of a kind of kernel ended. VkgemmVerdict::failed says whether the driver is
// at fault.
typedef enum VkgemmOutcome {
  VKGEMM_OUTCOME_PASSED = 0,
  VKGEMM_OUTCOME_WRONG_RESULT = 1,  // it computed something else
  VKGEMM_OUTCOME_DRIVER_ERROR = 2,  // a pipeline was not built, or a call failed
  VKGEMM_OUTCOME_DEVICE_LOST = 3,
  VKGEMM_OUTCOME_TIMED_OUT = 4,
  VKGEMM_OUTCOME_CRASHED = 5,   // its process ended during the test
  VKGEMM_OUTCOME_UNUSABLE = 6,  // it needs a property that the driver lacks, which is no fault
  VKGEMM_OUTCOME_UNTESTED = 7,  // no result
  VKGEMM_OUTCOME_MAX_ENUM = 0x7FFFFFFF
} VkgemmOutcome;

// The codes of a quantised matrix. In memory a 4-bit code shares its byte with the next one along
// K, which has the upper half.
typedef enum VkgemmCodeType {
  VKGEMM_CODE_TYPE_INT8 = 0,   // two's complement
  VKGEMM_CODE_TYPE_INT4 = 1,   // two's complement, or with zero points 0 … 15
  VKGEMM_CODE_TYPE_E4M3 = 2,   // 8-bit floats of OCP: ±448, NaN, no infinities
  VKGEMM_CODE_TYPE_E5M2 = 3,   // the upper byte of an f16
  VKGEMM_CODE_TYPE_MXFP4 = 4,  // E2M1 of OCP's microscaling formats
  VKGEMM_CODE_TYPE_NVFP4 = 5,  // the same codes, 16 share a scale of E4M3
  // Types of ggml (CodeType in vkgemm/matrix.hpp), which lie in blocks of ggml files.
  VKGEMM_CODE_TYPE_Q4_1 = 6,
  VKGEMM_CODE_TYPE_Q5_0 = 7,
  VKGEMM_CODE_TYPE_Q5_1 = 8,
  VKGEMM_CODE_TYPE_Q2_K = 9,
  VKGEMM_CODE_TYPE_Q3_K = 10,
  VKGEMM_CODE_TYPE_Q4_K = 11,
  VKGEMM_CODE_TYPE_Q5_K = 12,
  VKGEMM_CODE_TYPE_Q6_K = 13,
  VKGEMM_CODE_TYPE_IQ4_NL = 14,
  VKGEMM_CODE_TYPE_IQ4_XS = 15,
  VKGEMM_CODE_TYPE_Q1_0 = 16,
  VKGEMM_CODE_TYPE_Q2_0 = 17,
  VKGEMM_CODE_TYPE_TQ2_0 = 18,
  VKGEMM_CODE_TYPE_MAX_ENUM = 0x7FFFFFFF
} VkgemmCodeType;

// The place of scales and zero points before a matrix is packed, and the order of 4-bit codes.
typedef enum VkgemmCodeLayout {
  VKGEMM_CODE_LAYOUT_SEPARATE = 0,     // arrays of their own
  VKGEMM_CODE_LAYOUT_GGML_BLOCKS = 1,  // in blocks of ggml files
  VKGEMM_CODE_LAYOUT_GPTQ = 2,         // int4 in words of 8 along K, zero points one less
  VKGEMM_CODE_LAYOUT_GPTQ_V2 = 3,      // the same, with the zero points themselves
  VKGEMM_CODE_LAYOUT_AWQ = 4,          // int4 in words of 8 columns: 0, 2, 4, 6, 1, 3, 5, 7
  VKGEMM_CODE_LAYOUT_MAX_ENUM = 0x7FFFFFFF
} VkgemmCodeLayout;

// The operands that can be packed.
typedef enum VkgemmPackedOperand {
  VKGEMM_PACKED_OPERAND_A = 0,
  VKGEMM_PACKED_OPERAND_B = 1,
  VKGEMM_PACKED_OPERAND_MAX_ENUM = 0x7FFFFFFF
} VkgemmPackedOperand;

// The enumerations whose enumerators have names: vkgemm_enumerator_name().
typedef enum VkgemmEnumeration {
  VKGEMM_ENUMERATION_STATUS = 0,
  VKGEMM_ENUMERATION_LOG_LEVEL = 1,
  VKGEMM_ENUMERATION_DATA_TYPE = 2,
  VKGEMM_ENUMERATION_LAYOUT = 3,
  VKGEMM_ENUMERATION_PACKING = 4,
  VKGEMM_ENUMERATION_ACTIVATION = 5,
  VKGEMM_ENUMERATION_BIAS = 6,
  VKGEMM_ENUMERATION_GATE = 7,
  VKGEMM_ENUMERATION_GATED_B = 8,
  VKGEMM_ENUMERATION_OFFSET_TYPE = 9,
  VKGEMM_ENUMERATION_GROUP_ALONG = 10,
  VKGEMM_ENUMERATION_GROUPED_B = 11,
  VKGEMM_ENUMERATION_ROW_OP = 12,
  VKGEMM_ENUMERATION_PATH = 13,
  VKGEMM_ENUMERATION_MAIN_LOOP = 14,
  VKGEMM_ENUMERATION_SCHEDULE = 15,
  VKGEMM_ENUMERATION_REDUCTION_MODE = 16,
  VKGEMM_ENUMERATION_ROW_STRATEGY = 17,
  VKGEMM_ENUMERATION_MATRIX_SCOPE = 18,
  VKGEMM_ENUMERATION_OUTCOME = 19,
  VKGEMM_ENUMERATION_PACKED_OPERAND = 20,
  VKGEMM_ENUMERATION_CODE_TYPE = 21,
  VKGEMM_ENUMERATION_CODE_LAYOUT = 22,
  VKGEMM_ENUMERATION_SCALES = 23,
  VKGEMM_ENUMERATION_F32_ARITHMETIC = 24,
  VKGEMM_ENUMERATION_STEP_OP = 25,
  VKGEMM_ENUMERATION_STEP_OPERAND = 26,
  VKGEMM_ENUMERATION_TENSOR_SHAPE = 27,
  VKGEMM_ENUMERATION_GROUP_BOUNDS = 28,
  VKGEMM_ENUMERATION_MAX_ENUM = 0x7FFFFFFF
} VkgemmEnumeration;

// The name of an enumerator, as configurations and the command line have it: "f16", "gelu_erf".
// VKGEMM_ERROR_INVALID_ARGUMENT if there is none. The text is valid for ever. Any thread.
VKGEMM_API VkgemmStatus vkgemm_enumerator_name(VkgemmEnumeration enumeration, int32_t value,
                                               const char** name);

// The inverse of vkgemm_enumerator_name(). Any thread.
VKGEMM_API VkgemmStatus vkgemm_enumerator_parse(VkgemmEnumeration enumeration, const char* name,
                                                int32_t* value);

// --- Version and errors --------------------------------------------------------------------------

// The version of the library that is linked; VKGEMM_VERSION_* is that of this header. Any thread.
VKGEMM_API VkgemmStatus vkgemm_version(uint32_t* major, uint32_t* minor, uint32_t* patch);

// Makes an error, to be passed to many calls, one after the other. It is VKGEMM_SUCCESS at first.
// Any thread.
VKGEMM_API VkgemmStatus vkgemm_error_create(VkgemmError** error);

// Destroys an error with its message. One thread.
VKGEMM_API VkgemmStatus vkgemm_error_destroy(VkgemmError* error);

// The status of the last call that the error was passed to. One thread.
VKGEMM_API VkgemmStatus vkgemm_error_status(const VkgemmError* error, VkgemmStatus* status);

// Its message: "a.ld is 12: a row of K = 16 needs at least 16". Empty after success. The text
// is valid until the error is passed to another call. One thread.
VKGEMM_API VkgemmStatus vkgemm_error_message(const VkgemmError* error, const char** message);

// The driver's result if a call to it failed, otherwise VK_SUCCESS. One thread.
VKGEMM_API VkgemmStatus vkgemm_error_vk_result(const VkgemmError* error, VkResult* result);

// --- Problem: what to compute --------------------------------------------------------------------
//
// D = epilogue(alpha * A·B): A is M×K, B is K×N, C, D and aux are M×N, batch times
// outer_batch products.
//
// A and B have one type, unless multiply_as is set. f32 inputs are multiplied in IEEE f32, unless
// f32_arithmetic or multiply_as names another arithmetic. f16 and bf16 products are accumulated in
// f32. 8-bit floats are multiplied as f16, exactly: e4m3, e5m2 and f16 count as one type. s8
// products are accumulated in s32, exactly: K is at most 131071. D of s8 inputs may be s32, the
// sums themselves: then the epilogue is at its defaults, and there are no gates or row reductions.
// m, n, k, batch and every leading dimension are at most 2^31 - 1. vkgemm/problem.hpp says more
// about NaN, rounding, groups and row reductions, vkgemm/epilogue.hpp about steps and gates.

// Not set, of a number in a VkgemmMatrix.
#define VKGEMM_NOT_SET UINT64_MAX

// The memory layout of one operand. Units are elements unless a name says bytes.
typedef struct VkgemmMatrix {
  uint32_t struct_size;
  VkgemmDataType type;    // default f16; A and B share one type, unless multiply_as is set
  VkgemmLayout layout;    // default row-major; C, D and aux share one layout
  VkgemmPacking packing;  // default plain; C, D and aux must be

  // Leading dimension: from one row (row-major) or column (column-major) to the next, at least its
  // length. Default VKGEMM_NOT_SET: its length. Must not be set of a packed operand.
  uint64_t ld;

  // From one matrix of a batch, or of groups, to the next; 0: all share one. Default
  // VKGEMM_NOT_SET: the matrices are contiguous. For a packed operand the unit is one packed
  // matrix.
  uint64_t batch_stride;

  // A promise: the address that is bound is a multiple of this many bytes, a power of two. Default
  // 16, which lets kernels load 16 bytes at a time.
  uint32_t alignment;
  uint32_t reserved;

  // From one outer batch index to the next, if VkgemmProblem::outer_batch is not 1. 0: all share
  // one matrix. Default VKGEMM_NOT_SET: batch times batch_stride, or the whole matrix if that is 0.
  uint64_t outer_batch_stride;
} VkgemmMatrix;

// One step of an epilogue, in f32. Fields that the step has no use for are 0.
typedef struct VkgemmEpilogueStep {
  VkgemmStepOp op;              // default none, which ends the steps
  VkgemmActivation activation;  // of activate and derivative
  VkgemmStepOperand operand;    // default number
  // The operand if that is VKGEMM_STEP_OPERAND_NUMBER; for leaky_relu and elu their number, which
  // must not be 0. It is compiled into the pipeline.
  float number;
} VkgemmEpilogueStep;

// The elementwise epilogue, in this order, in f32 from the accumulator:
//   pre = alpha * (row_scale * column_scale * (A·B)) + beta * C + bias      aux = cast(pre)
//   D   = cast(clamp(steps(activation(pre))))
typedef struct VkgemmEpilogue {
  uint32_t struct_size;
  float alpha;                  // default 1
  float beta;                   // default 0: C is neither bound nor read
  VkgemmBias bias;              // default none
  VkgemmDataType bias_type;     // default f32
  VkgemmActivation activation;  // default none
  uint64_t bias_batch_stride;   // elements; default 0: one bias for the whole batch
  VkBool32 aux;                 // also write pre to VkgemmOperands::aux; default false
  float clamp_min;              // default NaN: no bound
  float clamp_max;              // default NaN: no bound
  // Default none. M factors; with groups of M shared: one for each row.
  VkgemmScales row_scales;
  // Default none. N factors; for a gated product 2N, in the order of its bias.
  VkgemmScales column_scales;
  // Default 0. For D of s8 and u8, within the range of that type: D = saturate(round(v) +
  // zero_point).
  int32_t zero_point;

  // The shapes of VkgemmProblem::t0 … t3: none, unless a step names the tensor. An epilogue uses at
  // most four of these: C, aux, bias, t0 … t3.
  VkgemmTensorShape tensors[4];
  VkgemmEpilogueStep steps[8];  // applied one after the other

  // Default 0: none. The function that steps call, as vkgemm_context_add_function() returned it.
  uint32_t function;
  uint32_t reserved;

  // Between the biases of consecutive outer indices. Default VKGEMM_NOT_SET: batch times
  // bias_batch_stride.
  uint64_t bias_outer_batch_stride;
} VkgemmEpilogue;

// A gated product reads A once for two products, and D has half as many columns as these:
//   l = alpha * A·Bl + bias_l      r = alpha * A·Br + bias_r      aux = cast([l r])
//   D = cast(clamp(steps(gate(l, r))))
// n counts the columns of D and of the steps' tensors. Aux, column scales and a bias along N have
// 2N, arranged as in B.
typedef struct VkgemmGated {
  uint32_t struct_size;
  VkgemmGate gate;  // default swiglu
  VkgemmGatedB b;   // default halves
  uint32_t reserved;

  // The parameters of the gate, compiled into the pipeline.
  VkBool32 swapped;  // l and r change places in the gate; default false
  float limit;   // the activated half is at most limit, the other within ±limit; default 0: none
  float slope;   // sigmoid(slope · x); default 1
  float offset;  // is added to the half that is not activated; default 0
} VkgemmGated;

// Many products in one, of sizes that only the device knows: group g is a range of M or of K. Its
// bounds are in device memory (VkgemmOperands::offsets, group_sizes). The problem's m or k is their
// capacity, and its batch is 1. struct Grouping in vkgemm/problem.hpp says more, also of rows by
// index (VkgemmOperands::row_index, row_weights) and B by index (VkgemmOperands::b_index).
typedef struct VkgemmGrouping {
  uint32_t struct_size;
  uint32_t groups;           // default 0; at most 65535
  VkgemmOffsetType offsets;  // default int32
  VkgemmGroupAlong along;    // default M
  VkgemmGroupedB b;          // default shared
  VkgemmGroupBounds bounds;  // default offsets

  uint64_t a_rows;       // rows of A, which are gathered; default 0: they are in order
  uint64_t d_rows;       // rows of D, to which rows are scattered or added; default 0: neither
  uint32_t a_terms;      // default 1: row i is row row_index[i] / a_terms of A
  uint32_t d_terms;      // default 1; more: d_terms rows are added up to a row of D
  VkBool32 row_weights;  // rows are added up, times factors; default false
  uint32_t b_matrices;   // B's matrices, which b_index assigns to groups; default 0: in order
} VkgemmGrouping;

// A reduction of whole rows of the value of the epilogue before its cast to D's type, in f32.
typedef struct VkgemmRowReduction {
  uint32_t struct_size;
  VkgemmRowOp op;              // default rms_norm
  float eps;                   // default NaN: 1e-6 rms_norm, 1e-5 layer_norm, 1e-12 l2_normalize
  VkBool32 gamma;              // rms_norm, layer_norm: N factors are bound; default false
  VkBool32 beta;               // rms_norm, layer_norm: N summands are bound; default false
  VkgemmDataType vector_type;  // of gamma and beta; default f32
  VkgemmDataType value_type;   // of VkgemmOperands::row_values; default f32
  VkBool32 store_d;            // false: D is neither bound nor written; default true
} VkgemmRowReduction;

// Split-K: separate workgroups multiply slices of K, and vkgemm adds them in order. A request that
// cannot be met is an error that names the cause.
typedef struct VkgemmSplitK {
  uint32_t struct_size;
  uint32_t slices;                     // 1 … 512; default 0: vkgemm chooses
  VkgemmReductionMode reduction_mode;  // default any: vkgemm chooses
  uint32_t reserved;
} VkgemmSplitK;

// B as codes. An element is scale * (code - zero), computed in f32 and rounded to B's type, f16 or
// bf16. Elements are not rounded if scales multiply sums.
//
// Before packing, in separate arrays, code (k, n) and its scale have these indices (division rounds
// down, ceil() up). Zero points are arranged like scales.
//   row-major     k * ld + n     (k / group_k) * ceil(N / group_n) + n / group_n
//   column-major  n * ld + k     (n / group_n) * ceil(K / group_k) + k / group_k
//
// Two 4-bit codes that are neighbours along K share a byte; the second one is the upper half. The
// byte is k / 2 * ld + n, or (n * ld + k) / 2. For a gated product with one matrix B, N is 2N
// here. struct Quantisation in vkgemm/matrix.hpp also describes batches and ggml blocks.
typedef struct VkgemmQuantisation {
  uint32_t struct_size;
  VkgemmCodeType type;  // default int8
  // Codes along K that share a scale: 16, 32, 64, 128, 192, 256, or 0 (the default) for all of K.
  // Types and layouts with groups of their own: that group, and 0 means it, too.
  uint32_t group_k;
  // Columns that share a scale: 1 (the default), 128, or 0 for all columns. Types with groups: 1.
  uint32_t group_n;
  VkgemmDataType scale_type;  // default f16; types with groups of their own ignore it
  VkBool32 zeros;             // int4: there are zero points; default false
  VkgemmCodeLayout layout;    // default separate; read by vkgemm_plan_pack()
  VkBool32 float_zeros;  // with zeros: they are of scale_type, not bytes 0 … 16; default false
} VkgemmQuantisation;

// The problem to compute. A null pointer is a part at its defaults or, if its comment says so, no
// such part.
typedef struct VkgemmProblem {
  uint32_t struct_size;

  // The arithmetic of f32 inputs; for other types it must be IEEE, the default. If the device has
  // no configuration for parts, vkgemm uses IEEE. F16X3 supports no row_scales, column_scales or
  // groups along K.
  VkgemmF32Arithmetic f32_arithmetic;

  uint64_t m;                               // default 0; 0: nothing is done
  uint64_t n;                               // default 0; 0: nothing is done
  uint64_t k;                               // default 0; 0: A·B is zero
  uint64_t batch;                           // default 1; 0: nothing is done
  const VkgemmMatrix* a;                    // M×K
  const VkgemmMatrix* b;                    // K×N; of a gated product K×2N, or its left half
  const VkgemmMatrix* c;                    // used if epilogue->beta is not 0
  const VkgemmMatrix* d;                    // null: f16, also if A is f32
  const VkgemmMatrix* aux;                  // used if epilogue->aux
  const VkgemmEpilogue* epilogue;           // default: D = A·B
  const VkgemmGated* gated;                 // null: not gated
  const VkgemmGrouping* grouping;           // null: no groups
  const VkgemmRowReduction* row_reduction;  // null: none
  const VkgemmSplitK* split_k;              // default: vkgemm chooses

  // The most that vkgemm_plan_workspace_bytes() may want if vkgemm chooses the configuration.
  // Default 256 MiB; 0: none.
  uint64_t max_workspace_bytes;

  // Milliseconds that a dispatch may take, by the estimate times estimate_scale: longer ones are
  // cut into several, with the same bits. Default 0: any.
  double max_dispatch_ms;

  // The device's time divided by the estimate. Default 1; infinity: unknown, dispatches are as
  // short as possible.
  double estimate_scale;

  const VkgemmQuantisation* quantised_b;  // null: B has elements, not codes

  // The tensors of epilogue->steps, plain, of any type of D but s32. Vectors and scalars have a
  // type and a batch_stride. If that is VKGEMM_NOT_SET, the whole batch shares a vector or scalar,
  // and the vectors of VKGEMM_STEP_OP_SUM_COLUMNS are contiguous.
  const VkgemmMatrix* t0;
  const VkgemmMatrix* t1;
  const VkgemmMatrix* t2;
  const VkgemmMatrix* t3;

  // The type in which A and B are multiplied: f16 or bf16. If it is set, A and B may have mixed
  // types, as Problem::multiply_as in vkgemm/problem.hpp describes. s8: as if it were not set, with
  // a quantised B alone. e4m3: plain A and B of e4m3, on matrices of it. Default any: A and B have
  // one type.
  VkgemmDataType multiply_as;

  // True: the products of `batch` are added up before the epilogue, as Problem::sum_batch in
  // vkgemm/problem.hpp describes. Default false.
  VkBool32 sum_batch;

  // A second dimension of the batch: product (o, i) uses the matrices at o * outer_batch_stride + i
  // * batch_stride. Scales per matrix and row_values are contiguous, those of (o, i) at o * batch +
  // i. Default 1; with a grouping it must be 1; 0: nothing is done.
  uint64_t outer_batch;

  // 8-bit activations: A holds codes of s8, and B of type s8 is quantised with codes that are
  // integers. Or A holds 8-bit floats or f16, and B of type f16 has codes of e4m3 or e5m2.
  // row_scales has ceil(K / a_group_k) scales for each row, row after row. 32, 64, 128, or 0: one
  // scale for all of K, or none. Default 0. See Problem::a_group_k in vkgemm/problem.hpp.
  uint32_t a_group_k;
  uint32_t reserved;
} VkgemmProblem;

// Each sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_matrix_init(VkgemmMatrix* matrix, size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_epilogue_init(VkgemmEpilogue* epilogue, size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_gated_init(VkgemmGated* gated, size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_grouping_init(VkgemmGrouping* grouping, size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_row_reduction_init(VkgemmRowReduction* reduction,
                                                  size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_split_k_init(VkgemmSplitK* split_k, size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_quantisation_init(VkgemmQuantisation* quantisation,
                                                 size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_problem_init(VkgemmProblem* problem, size_t struct_size);

// Writes the problem as the arguments of a `vkgemm run` command line that computes it again.
// Any thread.
VKGEMM_API VkgemmStatus vkgemm_problem_command_line(const VkgemmProblem* problem, char* text,
                                                    size_t* size, VkgemmError* error);

// --- Configuration: how a problem is computed ----------------------------------------------------
//
// A configuration is a text, as vkgemm prints it: the main loop, a colon, and parts with commas
// between them, in any order. vkgemm leaves out parts at their defaults.
//   khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4
// Parts without a default below are required. vkgemm/config.hpp explains each.
//   every loop   tile=MxNxK, swizzle=8, slices=1, static_shape=0, workgroups=0, spin_limit=131072,
//                reduction_mode=two_dispatches|last_arriver|device_barrier, pack=none|a|b|ab,
//                schedule=simple|persistent, rows=none|resident|panel|recompute|two_pass
//   nv           invocations=N, unroll_k=1
//   khr, khr_ring, khr_direct
//                fragment=MxNxK, subgroups=MxN, subgroup_size=N, subtiles=1, peel=1
//   khr          rotate=0
//   khr_direct   ahead=1, swap_a=0, interleave_k=0, subgroups_k=1, code_run=1
//   fma          fragment=MxN, peel=1
//   skinny       nothing more
// In a list of names the first one is the default.

// The parameters that all main loops share. vkgemm/config.hpp says what each does.
typedef struct VkgemmConfig {
  uint32_t struct_size;
  VkgemmPath path;
  VkgemmMainLoop main_loop;
  uint32_t tile_m;  // the part of D that one workgroup computes
  uint32_t tile_n;
  uint32_t tile_k;                     // the depth of K that it takes at a time
  uint32_t swizzle;                    // rows of tiles in a band
  uint32_t slices;                     // of K; 1: not divided
  VkgemmReductionMode reduction_mode;  // how they are added
  uint32_t workgroups;                 // how many are launched; 0: vkgemm counts them
  uint32_t spin_limit;                 // how often a workgroup polls for others before it gives up
  VkBool32 pack_a;                     // copies A into the workspace first
  VkBool32 pack_b;                     // copies B into the workspace first
  VkBool32 static_shape;               // N, K and leading dimensions are baked into the pipeline
  VkgemmSchedule schedule;             // of grouped products
  VkgemmRowStrategy rows;              // of row reductions
} VkgemmConfig;

// Reads a configuration; the error names the part that is wrong. Any thread.
VKGEMM_API VkgemmStatus vkgemm_config_parse(const char* config, VkgemmConfig* parsed,
                                            VkgemmError* error);

// Writes the configuration as vkgemm prints it: two of the same meaning give the same text.
// Any thread.
VKGEMM_API VkgemmStatus vkgemm_config_normalize(const char* config, char* text, size_t* size,
                                                VkgemmError* error);

// --- Device: what to enable, and what it can do --------------------------------------------------

// Asks a physical device what to enable on it for vkgemm: everything that it supports and vkgemm
// can use. The instance and the device must support Vulkan 1.3. VKGEMM_ERROR_MISSING_FEATURE if not
// even path fma can run. The handles are used during the call only. Any thread.
VKGEMM_API VkgemmStatus vkgemm_requirements_query(VkInstance instance,
                                                  VkPhysicalDevice physical_device,
                                                  PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                                  VkgemmRequirements** requirements,
                                                  VkgemmError* error);

// Destroys requirements, with the names, features and capabilities that were got from them. They
// may go once the context is made. One thread.
VKGEMM_API VkgemmStatus vkgemm_requirements_destroy(VkgemmRequirements* requirements);

// The extensions to enable: VkDeviceCreateInfo::ppEnabledExtensionNames. Valid as long as the
// requirements. Any thread.
VKGEMM_API VkgemmStatus vkgemm_requirements_extensions(const VkgemmRequirements* requirements,
                                                       uint32_t* count, const char* const** names);

// The features to enable: VkDeviceCreateInfo::pNext, with pEnabledFeatures null. Valid as long as
// the requirements. Any thread.
VKGEMM_API VkgemmStatus vkgemm_requirements_features(const VkgemmRequirements* requirements,
                                                     const VkPhysicalDeviceFeatures2** features);

// Adds the features to a chain of the application, whose other bits stay. Sets bits in structures
// that are in the chain, and appends structures of the requirements for the others. The
// structures of Vulkan 1.1 to 1.3 are recognised, and none is appended twice. Pass the merged chain
// to vkgemm_context_create(), too. The appended structures are valid until the requirements end or
// merge into another chain. One thread.
VKGEMM_API VkgemmStatus vkgemm_requirements_merge_into(VkgemmRequirements* requirements,
                                                       VkPhysicalDeviceFeatures2* chain);

// The capabilities of a device that is created with exactly these. Valid as long as the
// requirements. Any thread.
VKGEMM_API VkgemmStatus vkgemm_requirements_caps(const VkgemmRequirements* requirements,
                                                 const VkgemmCaps** caps);

// The properties that the choice of a kernel depends on. vkgemm/device.hpp says more.
typedef struct VkgemmDeviceCaps {
  uint32_t struct_size;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  VkDriverId driver_id;
  VkPhysicalDeviceType type;
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
  const char* name;
  const char* driver_name;
  const char* driver_info;
  const char* architecture;             // key of the tuning table: "nvidia_sm90", …, "generic"
  VkBool32 architecture_by_properties;  // the device's id is in no list
  VkBool32 bf16_matrices;               // VK_KHR_shader_bfloat16 with cooperative matrices
  VkBool32 int16_arithmetic;            // shaderInt16
  VkBool32 workgroups_make_progress;    // the driver is known to let those that started go on
  VkBool32 device_barrier;              // dispatches whose workgroups wait for one another
  uint32_t fragment_shape_count;        // of vkgemm_caps_fragment_shape()
  const char* device_barrier_reason;    // why not; empty if they may be asked for
  uint32_t flexible_shape_count;        // of vkgemm_caps_flexible_shape()
  uint32_t denial_count;                // of vkgemm_caps_denial()
  uint32_t kernel_kind_count;           // of vkgemm_caps_kernel_kind()
  // shaderInt8, storageBuffer8BitAccess and shaderIntegerDotProduct: 8-bit types.
  VkBool32 int8_arithmetic;
} VkgemmDeviceCaps;

// The limits that decide which configurations are legal, and how many workgroups are resident.
typedef struct VkgemmLimits {
  uint32_t struct_size;
  uint32_t max_shared_memory_bytes;  // per workgroup
  uint32_t max_invocations;          // per workgroup
  uint32_t max_push_constant_bytes;
  uint32_t max_workgroup_count[3];
  uint32_t min_subgroup_size;
  uint32_t max_subgroup_size;
  uint32_t max_subgroups_per_workgroup;
  VkBool32 subgroup_size_control;  // for compute, with full subgroups
  uint32_t compute_units;          // 0: unknown

  // VK_NV_cooperative_matrix2; zero where the extension is missing.
  uint32_t nv_max_dimension;                 // of flexible shapes of either scope
  uint32_t nv_max_invocations;               // of a workgroup that shares matrices
  uint32_t nv_reserved_shared_memory_bytes;  // by matrices of such a workgroup
  uint32_t reserved;

  VkBool32 subgroup_shuffles;  // required by main loop khr_direct
  VkBool32 subgroup_votes;     // required by f32 in parts
} VkgemmLimits;

// A shape that the device lists at subgroup scope: A and B of `input`, C and result of
// `accumulator` type (VK_KHR_cooperative_matrix).
typedef struct VkgemmFragmentShape {
  uint32_t struct_size;
  VkgemmDataType input;
  VkgemmDataType accumulator;
  uint32_t m;
  uint32_t n;
  uint32_t k;
} VkgemmFragmentShape;

// Any multiple of the granularity is a valid shape (VK_NV_cooperative_matrix2).
typedef struct VkgemmFlexibleShape {
  uint32_t struct_size;
  VkgemmDataType input;
  VkgemmDataType accumulator;
  VkgemmMatrixScope scope;
  uint32_t granularity_m;
  uint32_t granularity_n;
  uint32_t granularity_k;
  uint32_t invocations;  // the workgroup size that it is listed for; 0 at subgroup scope
} VkgemmFlexibleShape;

// An entry of the list of drivers that are known to be bad, and that is about this device.
typedef struct VkgemmDenial {
  uint32_t struct_size;
  VkgemmPath path;
  VkgemmDataType input;  // or any
  uint32_t m;            // of the fragment or the granularity; 0: any
  uint32_t n;
  uint32_t k;
  VkBool32 shapes_unknown;  // asking the driver for its shapes is what is bad: it was not
  uint32_t reserved;
  const char* reason;
} VkgemmDenial;

// Kernels that use the device in one way, accumulating in f32, of s8 in s32.
typedef struct VkgemmKernelKind {
  uint32_t struct_size;
  VkgemmMainLoop loop;   // khr speaks for khr_ring, too; default fma
  VkgemmDataType input;  // default f32
  uint32_t m;            // khr, khr_direct: the fragment; nv: the granularity of tiles; default 0
  uint32_t n;
  uint32_t k;
  uint32_t subgroup_size;  // khr, khr_direct; default 0
  uint32_t invocations;    // nv; default 0
  VkBool32 a_in_rows;      // khr_direct: A is not packed; default false
  uint32_t code_run;       // khr_direct: code_run of its loop if B is quantised; default 0
} VkgemmKernelKind;

// The device's properties in one structure. Any thread.
VKGEMM_API VkgemmStatus vkgemm_caps_device(const VkgemmCaps* caps, VkgemmDeviceCaps* device);

// Its limits. Any thread.
VKGEMM_API VkgemmStatus vkgemm_caps_limits(const VkgemmCaps* caps, VkgemmLimits* limits);

// Whether a path may be used, and if not, the first reason why: it names the extension, the feature
// bit or the shape that is missing. The text is valid as long as the capabilities. Any thread.
VKGEMM_API VkgemmStatus vkgemm_caps_path(const VkgemmCaps* caps, VkgemmPath path,
                                         VkBool32* available, const char** reason);

// An element of the lists that VkgemmDeviceCaps counts, VKGEMM_ERROR_INVALID_ARGUMENT beyond their
// end. Kinds are those that the self-test tries. Texts are valid as long as the capabilities.
// Any thread.
VKGEMM_API VkgemmStatus vkgemm_caps_fragment_shape(const VkgemmCaps* caps, uint32_t index,
                                                   VkgemmFragmentShape* shape);
VKGEMM_API VkgemmStatus vkgemm_caps_flexible_shape(const VkgemmCaps* caps, uint32_t index,
                                                   VkgemmFlexibleShape* shape);
VKGEMM_API VkgemmStatus vkgemm_caps_denial(const VkgemmCaps* caps, uint32_t index,
                                           VkgemmDenial* denial);
VKGEMM_API VkgemmStatus vkgemm_caps_kernel_kind(const VkgemmCaps* caps, uint32_t index,
                                                VkgemmKernelKind* kind);

// Sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_kernel_kind_init(VkgemmKernelKind* kind, size_t struct_size);

// Writes a kind as messages name it: "main loop khr, fragment 16x16x16 f16, subgroups of 32".
// Any thread.
VKGEMM_API VkgemmStatus vkgemm_kernel_kind_text(const VkgemmKernelKind* kind, char* text,
                                                size_t* size, VkgemmError* error);

// --- Self-test: whether a device computes what it advertises -------------------------------------
//
// It multiplies small matrices of integers, whose product is exact, once for each kind of kernel. A
// kind that fails is taken out of every choice. vkgemm/self_test.hpp says more.

// The self-test's verdict on a kind of kernel.
typedef struct VkgemmVerdict {
  uint32_t struct_size;
  VkgemmOutcome outcome;  // default untested
  VkBool32 failed;        // the driver is at fault; ignored in a verdict that you pass
  VkgemmMainLoop loop;    // loop to code_run: the kind of kernel, as in VkgemmKernelKind
  VkgemmDataType input;
  uint32_t m;
  uint32_t n;
  uint32_t k;
  uint32_t subgroup_size;
  uint32_t invocations;
  VkBool32 a_in_rows;
  uint32_t code_run;
  const char* detail;  // "expected 12, got 13 at (3, 4), …"; empty if passed; null: empty
  const char* config;  // what was run; null: empty
} VkgemmVerdict;

// Sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_verdict_init(VkgemmVerdict* verdict, size_t struct_size);

// Makes an empty list. Any thread.
VKGEMM_API VkgemmStatus vkgemm_verdicts_create(VkgemmVerdicts** verdicts);

// Reads a list from a file. The list is empty if there is no file. VKGEMM_ERROR_IO, with the
// reason, if the file cannot be read or belongs to another device, driver or build of vkgemm. Any
// thread.
VKGEMM_API VkgemmStatus vkgemm_verdicts_load(const VkgemmCaps* caps, const char* file,
                                             VkgemmVerdicts** verdicts, VkgemmError* error);

// Replaces the file at once: readers see the old one or the new. Makes its folder.
// VKGEMM_ERROR_INVALID_ARGUMENT if vkgemm_verdicts_load() would refuse the file. Any thread.
VKGEMM_API VkgemmStatus vkgemm_verdicts_save(const VkgemmVerdicts* verdicts, const VkgemmCaps* caps,
                                             const char* file, VkgemmError* error);

// Destroys a list, with the texts that were got from it. One thread.
VKGEMM_API VkgemmStatus vkgemm_verdicts_destroy(VkgemmVerdicts* verdicts);

// Adds a copy. Texts that were got from the list before are valid no more. One thread.
VKGEMM_API VkgemmStatus vkgemm_verdicts_add(VkgemmVerdicts* verdicts, const VkgemmVerdict* verdict,
                                            VkgemmError* error);

// How many there are. Any thread, while none adds.
VKGEMM_API VkgemmStatus vkgemm_verdicts_count(const VkgemmVerdicts* verdicts, uint32_t* count);

// One of them. Its texts are valid until one is added or the list is destroyed. Any thread, while
// none adds.
VKGEMM_API VkgemmStatus vkgemm_verdicts_get(const VkgemmVerdicts* verdicts, uint32_t index,
                                            VkgemmVerdict* verdict);

// Writes the file in which `vkgemm info --self-test` keeps the verdicts on this device, driver and
// build of vkgemm; empty if the environment names no folder for it. Any thread.
VKGEMM_API VkgemmStatus vkgemm_default_verdict_file(const VkgemmCaps* caps, char* text,
                                                    size_t* size);

// Part of VkgemmContextCreateInfo. By default a context reads vkgemm_default_verdict_file(),
// trusts drivers on which kinds always passed, and tests nothing. vkgemm/self_test.hpp describes
// the order of the sources.
typedef struct VkgemmSelfTest {
  uint32_t struct_size;

  // A queue of the device that can compute, and its family. These functions test on it the kinds of
  // kernel that they would use and that have no verdict: vkgemm_plan_create(), vkgemm_plan_pack()
  // and vkgemm_packed_layout(). vkgemm_context_create() tests those in `only`.
  // Apart from these, only vkgemm_tune() submits or waits. While one of these functions runs, no
  // other thread may use the queue outside of this context. Default null: nothing is tested.
  uint32_t queue_family;
  VkQueue queue;

  // How long a product may take. Default 10000.
  uint32_t timeout_ms;

  // Drivers that are known to be bad are refused. Default true.
  VkBool32 use_deny_list;

  // Verdicts are read from it, and those that tests find are added to it. Default null.
  const char* file;

  // Verdicts that the application kept itself; they come before the file's. Default null: none.
  const VkgemmVerdicts* verdicts;

  // If only_count is not 0, vkgemm_context_create() tests these kinds, denied ones, too.
  const VkgemmKernelKind* const* only;
  uint32_t only_count;

  // If `file` is null, verdicts are read from vkgemm_default_verdict_file(). Default true.
  VkBool32 read_default_file;

  // Kinds count as passed on drivers on which they passed in every run so far. Default true.
  VkBool32 use_trusted_list;
  uint32_t reserved;
} VkgemmSelfTest;

// Sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_self_test_init(VkgemmSelfTest* self_test, size_t struct_size);

// --- Context -------------------------------------------------------------------------------------

// Is handed a message that is valid during the call, and the context's log_user_data. Called from
// the thread that calls vkgemm, so possibly from several at once. Must not throw or jump.
typedef void(VKAPI_PTR* VkgemmLogCallback)(VkgemmLogLevel level, const char* message,
                                           void* user_data);

// The device that a context is made for, and the options it is made with.
typedef struct VkgemmContextCreateInfo {
  uint32_t struct_size;

  // The extensions and features that the device was created with: usually those of
  // VkgemmRequirements. A path whose extension or feature bit is not among them stays off.
  uint32_t enabled_extension_count;
  const char* const* enabled_extensions;
  const VkPhysicalDeviceFeatures2* enabled_features;

  // Owned by the application; they must outlive the context and every plan made from it.
  VkInstance instance;
  VkPhysicalDevice physical_device;
  VkDevice device;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr;

  // At most one of these two. The application's cache is used and never destroyed. A file is read
  // if it fits this device and driver, and replaced by vkgemm_context_save_pipeline_cache() and on
  // destruction. No other user may be able to write its folder. Null (the default) or empty: none.
  VkPipelineCache pipeline_cache;
  const char* pipeline_cache_file;

  // Default null: its defaults.
  const VkgemmSelfTest* self_test;

  // A tuning table, as `vkgemm tune` writes them. It comes before vkgemm_default_tuning_file() and
  // the built-in tables. A file that is not right fails vkgemm_context_create(), which names line
  // and field. Null (the default) or empty: none.
  const char* tuning_file;

  // Called for each message. Default null: silent, unless VKGEMM_LOG is set in the environment. It
  // and log_user_data must outlive the context and every plan made from it.
  VkgemmLogCallback log;
  void* log_user_data;

  // vkgemm_default_tuning_file() is read, too. Default true.
  VkBool32 read_default_tuning_file;
  uint32_t reserved;
} VkgemmContextCreateInfo;

// Sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_create_info_init(VkgemmContextCreateInfo* info,
                                                        size_t struct_size);

// Makes a context. Any thread, also for one device; the queue of a self-test is externally
// synchronised. Errors:
// - VKGEMM_ERROR_INVALID_ARGUMENT: a field is missing or contradicts another, or tuning_file is
//   malformed.
// - VKGEMM_ERROR_IO: tuning_file cannot be read.
// - VKGEMM_ERROR_MISSING_FEATURE: not even path fma can run with the enabled features.
// - the error of a driver's call.
VKGEMM_API VkgemmStatus vkgemm_context_create(const VkgemmContextCreateInfo* info,
                                              VkgemmContext** context, VkgemmError* error);

// Destroys a context and its capabilities. Its plans may go on, since they keep what they need of
// it alive. The last of context and plans must be gone before the VkDevice. One thread.
VKGEMM_API VkgemmStatus vkgemm_context_destroy(VkgemmContext* context);

// The device's capabilities, with what was enabled on it. Valid as long as the context. Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_caps(const VkgemmContext* context, const VkgemmCaps** caps);

// Makes a list of the self-test's verdicts on this device's kernels, which is the caller's to
// destroy. Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_verdicts(const VkgemmContext* context,
                                                VkgemmVerdicts** verdicts);

// Adds a function for steps of epilogues, and returns its number for VkgemmEpilogue::function in
// problems of this context. `name` stands in messages. `spirv` is a module of `words` 32-bit words
// with the function vkgemm_epilogue; EpilogueFunction in vkgemm/epilogue.hpp has the rules. Both
// are copied. `cost`, for estimates: the function's time for an element, divided by that of one
// more matrix as C; 0 if you don't know it. Any thread. Errors:
// - VKGEMM_ERROR_INVALID_ARGUMENT: the module has no function of the right name and type, or cost
//   is not a number of at least 0.
// - VKGEMM_ERROR_UNSUPPORTED: the function needs what kernels do not have.
VKGEMM_API VkgemmStatus vkgemm_context_add_function(const VkgemmContext* context, const char* name,
                                                    const uint32_t* spirv, size_t words,
                                                    double cost, uint32_t* function,
                                                    VkgemmError* error);

// How often workgroups gave up waiting for one another. The results are still correct. Later
// recordings avoid the barrier, which may make them slower. Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_barrier_aborts(const VkgemmContext* context,
                                                      uint32_t* count);

// Tells the context that the application saw VK_ERROR_DEVICE_LOST. From then on its calls return
// VKGEMM_ERROR_DEVICE_LOST; everything may still be destroyed. Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_notify_device_lost(const VkgemmContext* context);

// True after vkgemm_context_notify_device_lost(), or if the driver returned VK_ERROR_DEVICE_LOST.
// Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_device_lost(const VkgemmContext* context, VkBool32* lost);

// Writes the pipelines built so far to pipeline_cache_file, if there is one. Any thread.
VKGEMM_API VkgemmStatus vkgemm_context_save_pipeline_cache(const VkgemmContext* context,
                                                           VkgemmError* error);

// --- Plan ----------------------------------------------------------------------------------------

// Makes a list of every legal configuration of the tuning tables' rows for this problem, preferred
// ones first. An empty problem has none. If nothing computes the problem, the list is empty, and
// vkgemm_plan_create() gives the reasons. Any thread.
VKGEMM_API VkgemmStatus vkgemm_candidates_create(const VkgemmContext* context,
                                                 const VkgemmProblem* problem,
                                                 VkgemmCandidates** candidates, VkgemmError* error);

// Destroys a list, with the texts that were got from it. One thread.
VKGEMM_API VkgemmStatus vkgemm_candidates_destroy(VkgemmCandidates* candidates);

// How many there are. Any thread.
VKGEMM_API VkgemmStatus vkgemm_candidates_count(const VkgemmCandidates* candidates,
                                                uint32_t* count);

// One of them, and where its row in the tables comes from: "measured: NVIDIA H200 …". The texts are
// valid as long as the list. Any thread.
VKGEMM_API VkgemmStatus vkgemm_candidates_get(const VkgemmCandidates* candidates, uint32_t index,
                                              const char** config, const char** provenance);

// Validates the problem, takes the configuration `config`, or chooses one if that is null, and
// builds its pipelines. Building is the only slow step, and happens only the first time that a
// pipeline is needed. Several pipelines are built at the same time, on threads that end before the
// call returns; with pipeline_cache they are built one by one, on this thread.
// VKGEMM_ERROR_INVALID_ARGUMENT for a problem that contradicts itself, VKGEMM_ERROR_UNSUPPORTED if
// nothing computes it here, or the configuration doesn't. Any thread; if pipeline_cache is
// externally synchronised, plans are, too. With VkgemmSelfTest::queue, no thread outside this
// context may use that queue meanwhile.
VKGEMM_API VkgemmStatus vkgemm_plan_create(const VkgemmContext* context,
                                           const VkgemmProblem* problem, const char* config,
                                           VkgemmPlan** plan, VkgemmError* error);

// Destroys a plan. Pipelines live as long as the context or any of its plans. Keep one of these
// until command buffers with recorded plans have finished or were reset. One thread.
VKGEMM_API VkgemmStatus vkgemm_plan_destroy(VkgemmPlan* plan);

// The problem that was planned; the defaults if the plan is no product. Its parts are valid as long
// as the plan. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_problem(const VkgemmPlan* plan, VkgemmProblem* problem);

// The configuration, for vkgemm_config_parse(). Without meaning if the plan is no product. Valid as
// long as the plan. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_config(const VkgemmPlan* plan, const char** config);

// Bytes of scratch memory that vkgemm_plan_record() needs as VkgemmOperands::workspace, 256-byte
// aligned; 0: none. The first word of a grouped plan's workspace reports bad offsets: set it to
// UINT32_MAX before the plan runs. Afterwards it holds the index of the first group whose offsets,
// sizes or indices are bad, or still UINT32_MAX. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_workspace_bytes(const VkgemmPlan* plan, uint64_t* bytes);

// How many dispatches vkgemm_plan_record() records. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_dispatch_count(const VkgemmPlan* plan, uint32_t* count);

// The milliseconds that all of them are estimated to take, before VkgemmProblem::estimate_scale;
// NaN if there is no estimate. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_estimated_ms(const VkgemmPlan* plan, double* milliseconds);

// Writes why this kernel: for people; several lines. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_explain(const VkgemmPlan* plan, char* text, size_t* size);

// Writes the product as one `vkgemm run …` command line that repeats it; an empty text if the plan
// is no product. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_command_line(const VkgemmPlan* plan, char* text, size_t* size);

// Bytes on the device, [address, address + bytes). The buffer must be created with
// VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, and its memory allocated with
// VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT. A span may be larger than 4 GiB.
typedef struct VkgemmDeviceSpan {
  VkDeviceAddress address;
  VkDeviceSize bytes;
} VkgemmDeviceSpan;

// Identifies packed bytes: the device, the driver, the order and the matrix they were packed for.
// Opaque. Store it with the bytes.
typedef struct VkgemmFingerprint {
  uint8_t bytes[64];
} VkgemmFingerprint;

// The memory that one recording computes on. A span starts at element (0, 0) of batch 0 and must
// reach to the last element that the problem touches. Operands that the problem does not use are
// ignored. D may be the very same bytes as C; otherwise D, aux, stored tensors and row_values
// share no byte with each other or any other operand. By default all is zero.
typedef struct VkgemmOperands {
  uint32_t struct_size;
  uint32_t reserved;
  // Plain matrices are aligned as VkgemmMatrix::alignment promises, packed ones as
  // VkgemmPackedLayout::alignment says.
  VkgemmDeviceSpan a;
  VkgemmDeviceSpan b;
  VkgemmDeviceSpan b_right;  // VKGEMM_GATED_B_SEPARATE: the right half of B
  VkgemmDeviceSpan c;        // if beta is not 0
  VkgemmDeviceSpan d;
  VkgemmDeviceSpan bias;        // N values, or M; 2N of a gated product
  VkgemmDeviceSpan aux;         // as large as D; 2N columns of a gated product
  VkgemmDeviceSpan offsets;     // grouped: groups + 1 values, or groups starts
  VkgemmDeviceSpan gamma;       // VkgemmRowReduction::gamma: N factors
  VkgemmDeviceSpan beta;        // VkgemmRowReduction::beta: N summands
  VkgemmDeviceSpan row_values;  // one number for each row: M values for each matrix, written
  VkgemmDeviceSpan workspace;   // vkgemm_plan_workspace_bytes(), aligned to 256 bytes

  // VkgemmPackedLayout::fingerprint of each packed operand, b_right too (b_right_fingerprint, at
  // the end). Ignored for plain operands.
  VkgemmFingerprint a_fingerprint;
  VkgemmFingerprint b_fingerprint;

  VkgemmDeviceSpan row_scales;     // VkgemmEpilogue::row_scales: M factors, f32
  VkgemmDeviceSpan column_scales;  // VkgemmEpilogue::column_scales: N; 2N of a gated product

  VkgemmFingerprint b_right_fingerprint;  // VKGEMM_GATED_B_SEPARATE with a packed b

  // Plans that prepare operands use these: vkgemm_plan_pack(), vkgemm_plan_quantise_rows().
  VkgemmDeviceSpan source;  // elements to be packed or quantised
  VkgemmDeviceSpan codes;   // read by packing, written by the quantisation of rows
  VkgemmDeviceSpan scales;  // likewise
  VkgemmDeviceSpan zeros;   // zero points of codes
  VkgemmDeviceSpan packed;  // written: VkgemmPackedLayout::bytes

  // VkgemmEpilogue::tensors; written by the steps store and sum_columns. Vectors and scalars are
  // aligned to their elements.
  VkgemmDeviceSpan t0;
  VkgemmDeviceSpan t1;
  VkgemmDeviceSpan t2;
  VkgemmDeviceSpan t3;

  VkgemmDeviceSpan group_sizes;  // grouped: groups values, of the offsets' type
  VkgemmDeviceSpan row_index;    // VkgemmGrouping::a_rows, d_rows: M values, uint32_t
  VkgemmDeviceSpan row_weights;  // VkgemmGrouping::row_weights: d_rows * d_terms factors, f32
  VkgemmDeviceSpan b_index;      // VkgemmGrouping::b_matrices: groups values, uint32_t
} VkgemmOperands;

// Some of the dispatches of a plan, in the order in which they are recorded.
typedef struct VkgemmDispatchRange {
  uint32_t struct_size;
  uint32_t first;  // default 0
  uint32_t count;  // default UINT32_MAX: all that follow
  uint32_t reserved;
} VkgemmDispatchRange;

// Each sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_operands_init(VkgemmOperands* operands, size_t struct_size);
VKGEMM_API VkgemmStatus vkgemm_dispatch_range_init(VkgemmDispatchRange* range, size_t struct_size);

// The bytes that a recording touches of each operand, from its first element to its last, the
// workspace included. Addresses are 0. vkgemm_plan_record() ignores what it is given for an operand
// that needs 0 bytes. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_operands(const VkgemmPlan* plan, VkgemmOperands* operands);

// Records the plan into a command buffer in the recording state, outside a render pass. Checks
// every span first; on any error nothing is recorded. Never compiles, never submits, and allocates
// nothing on success. `range` may be null: all dispatches.
//
// Disturbs the compute bind point's pipeline and the push constants. Before, the caller makes
// operands available and visible to VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, with
// VK_ACCESS_2_SHADER_STORAGE_READ_BIT for those that the plan reads and
// VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT for those that it writes. After the plan, the caller records
// a barrier whose source is this stage with VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT, before a command
// uses operands that the plan writes. vkgemm records the barriers between the dispatches of a plan:
// Plan::record() in vkgemm/context.hpp lists them, and says how ranges of dispatches are recorded.
//
// A workspace belongs to one recording in flight; recordings that follow each other on one queue
// may share it. Any thread; the command buffer and its pool are externally synchronised.
VKGEMM_API VkgemmStatus vkgemm_plan_record(const VkgemmPlan* plan, VkCommandBuffer command_buffer,
                                           const VkgemmOperands* operands,
                                           const VkgemmDispatchRange* range, VkgemmError* error);

// vkgemm_plan_record() for code that keeps plans of several devices: VKGEMM_ERROR_WRONG_CONTEXT if
// the plan is not one of this context. Any thread, as there.
VKGEMM_API VkgemmStatus vkgemm_context_record(const VkgemmContext* context, const VkgemmPlan* plan,
                                              VkCommandBuffer command_buffer,
                                              const VkgemmOperands* operands,
                                              const VkgemmDispatchRange* range, VkgemmError* error);

// --- Tuning: the fastest configuration of a problem on this device -------------------------------
//
// vkgemm/tune.hpp and Context::tune() say more.

// The state of a tuning run. Times are medians in microseconds, 0 as long as there is none.
typedef struct VkgemmTuneProgress {
  uint32_t struct_size;
  uint32_t timed;       // configurations
  uint32_t candidates;  // the most that the run times, with the one that is chosen without it
  uint32_t reserved;
  double elapsed_ms;
  double best_us;    // of the fastest configuration so far
  double chosen_us;  // of the configuration that vkgemm_plan_create() takes without the run
} VkgemmTuneProgress;

// Is handed the state of a run after each timing, and the progress_user_data. Returns VK_FALSE to
// end the run: the fastest configuration so far is kept. Called from the thread that called
// vkgemm_tune(). Must not throw, jump, or use the context.
typedef VkBool32(VKAPI_PTR* VkgemmTuneCallback)(const VkgemmTuneProgress* progress,
                                                void* user_data);

// Options of vkgemm_tune().
typedef struct VkgemmTuneInfo {
  uint32_t struct_size;
  uint32_t queue_family;
  VkQueue queue;            // can compute and has timestamps; default null: VkgemmSelfTest::queue
  double budget_ms;         // for the whole run; default 1000
  uint32_t max_candidates;  // the most that are timed beside the one that is chosen; default 48
  uint32_t threads;         // that compile; default 0: one less than the processors
  VkBool32 warm_l2;         // default false: the L2 cache is flushed before each execution
  VkBool32 skip_timed;      // times nothing if a table has timed the problem here; default false
  const char* file;         // the table that gets the result; null (the default) or empty: none
  VkgemmTuneCallback progress;  // default null
  void* progress_user_data;
  const uint64_t* offsets;  // of a grouped problem: groups + 1 values; null: groups of equal size
  uint32_t offset_count;    // default 0
  uint32_t reserved;
} VkgemmTuneInfo;

// The result of vkgemm_tune().
typedef struct VkgemmTuneResult {
  uint32_t struct_size;
  uint32_t timed;        // configurations; 0: skip_timed
  uint32_t candidates;   // as VkgemmTuneProgress has them
  VkBool32 is_complete;  // all candidates were tried; those that fail are not timed
  const char* config;    // vkgemm_plan_create() takes it from now on
  const char* chosen;    // vkgemm_plan_create() took it before
  double microseconds;   // the median of `config`
  double chosen_us;      // the median of `chosen` in the same run
} VkgemmTuneResult;

// Sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_tune_info_init(VkgemmTuneInfo* info, size_t struct_size);

// Times configurations of the problem on the queue, and keeps the fastest: from then on
// vkgemm_plan_create() takes it for this problem. Plans that exist keep their configuration. `info`
// may be null: the defaults. `result` may be null. Its texts are valid as long as the context.
//
// Any thread. During the call no other thread may use the queue outside of this context; afterwards
// it is idle. Errors are those of Context::tune(). If `file` cannot be read or written, the context
// keeps the configuration.
VKGEMM_API VkgemmStatus vkgemm_tune(const VkgemmContext* context, const VkgemmProblem* problem,
                                    const VkgemmTuneInfo* info, VkgemmTuneResult* result,
                                    VkgemmError* error);

// Writes the table that every context reads by default: VkgemmContextCreateInfo. Empty if the
// environment names no folder for it. Any thread.
VKGEMM_API VkgemmStatus vkgemm_default_tuning_file(const VkgemmCaps* caps, char* text,
                                                   size_t* size);

// --- Packed operands -----------------------------------------------------------------------------

// The layout of a packed operand. Its matrices are contiguous.
typedef struct VkgemmPackedLayout {
  uint32_t struct_size;
  uint32_t reserved;
  VkDeviceSize bytes;  // of all matrices; 0: this device gains nothing, leave the operand plain
  VkDeviceSize matrix_bytes;  // from one matrix to the next
  VkDeviceSize alignment;     // of the address
  VkgemmFingerprint fingerprint;
} VkgemmPackedLayout;

// The layout of an operand of the problem when it is packed: in the order that
// VKGEMM_PACKING_PACKED_ROWS or _FRAGMENTS asks for, otherwise in the device's. The device's order
// depends on device, tuning tables, verdicts and type; the bytes also depend on the sizes.
// vkgemm_plan_explain() of the plan that packs gives the reason. Any thread, as for
// vkgemm_plan_create().
VKGEMM_API VkgemmStatus vkgemm_packed_layout(const VkgemmContext* context,
                                             const VkgemmProblem* problem,
                                             VkgemmPackedOperand operand,
                                             VkgemmPackedLayout* layout, VkgemmError* error);

// Plans the packing of an operand. The problem describes the source. Its packing is
// VKGEMM_PACKING_PLAIN for the device's order, or VKGEMM_PACKING_PACKED_ROWS or _FRAGMENTS;
// VKGEMM_PACKING_PACKED is VKGEMM_ERROR_INVALID_ARGUMENT. With VKGEMM_GATED_B_SEPARATE, pack b and
// b_right one by one with the same plan. If packing gains nothing (a layout of 0 bytes), the plan
// is valid and records nothing.
//
// Operands: reads `source`. For a quantised B reads `codes` and, if they are separate, `scales` and
// `zeros`. Writes `packed`: all matrices, with zeros for padding, but not the bytes after the last
// one. Kernels read codes, scales and zero points in four-byte words: up to three bytes before and
// after them. Records no barrier. Any thread, as vkgemm_plan_create().
VKGEMM_API VkgemmStatus vkgemm_plan_pack(const VkgemmContext* context, const VkgemmProblem* problem,
                                         VkgemmPackedOperand operand, VkgemmPlan** plan,
                                         VkgemmError* error);

// The layout of the operand that this plan packs. 0 bytes if the device gains nothing by packing
// it, or the plan packs nothing. Any thread.
VKGEMM_API VkgemmStatus vkgemm_plan_layout(const VkgemmPlan* plan, VkgemmPackedLayout* layout);

// Gives the packing of bytes with this fingerprint: rows or the order of a device. Bytes that were
// packed in rows stay usable with VKGEMM_PACKING_PACKED_ROWS when the device packs fragments today.
// The fingerprint must be one that a VkgemmPackedLayout gave. Any thread.
VKGEMM_API VkgemmStatus vkgemm_packing_of(const VkgemmFingerprint* fingerprint,
                                          VkgemmPacking* packing);

// Writes the first field in which two fingerprints differ, with both values: "driver_version is 2,
// wanted is 3". Empty if they are alike. Any thread.
VKGEMM_API VkgemmStatus vkgemm_fingerprint_difference(const VkgemmFingerprint* given,
                                                      const VkgemmFingerprint* wanted, char* text,
                                                      size_t* size);

// --- Rows of 8 bits ------------------------------------------------------------------------------

// Rows of a matrix as s8 codes, with a scale for each row. The codes are A of an s8 product, the
// scales its row_scales (VKGEMM_SCALES_PER_MATRIX).
//   scale = max|row| / 127      code = nearest integer, to even, of x * (127 / max|row|)
// in f32, with the same bits on every device. Zeros have scale and codes 0. A row with NaN has the
// scale NaN, one with Inf the scale +Inf, and both have codes 0. vkgemm/matrix.hpp says more about
// these. For B, pass the columns of a column-major matrix as the rows.
//
// Source and codes are rows × columns, row-major and plain. Padding is neither read nor written.
// rows, columns, batch and every leading dimension are at most 2^31 - 1.
typedef struct VkgemmRowQuantisation {
  uint32_t struct_size;
  uint32_t group_k;            // 32, 64, 128: columns that share a scale; default 0: a whole row
  uint64_t rows;               // default 0; 0: nothing is done
  uint64_t columns;            // default 0; 0: scales are 0
  uint64_t batch;              // default 1; 0: nothing is done
  const VkgemmMatrix* source;  // f16, bf16 or f32; its batch_stride may be 0. Null: f16
  const VkgemmMatrix* codes;   // its type must be set to s8. Null: s8
} VkgemmRowQuantisation;

// Sets the first struct_size bytes to the defaults. Any thread.
VKGEMM_API VkgemmStatus vkgemm_row_quantisation_init(VkgemmRowQuantisation* quantisation,
                                                     size_t struct_size);

// Plans the quantisation of rows. Operands: reads `source`, writes `codes` and `scales`. Source and
// codes are aligned as VkgemmMatrix::alignment promises. Scales are f32, `rows` for each matrix or,
// with group_k, rows · ceil(columns / group_k), contiguous, aligned to 4 bytes. No barrier is
// recorded.
//
// VKGEMM_ERROR_INVALID_ARGUMENT for what contradicts itself, VKGEMM_ERROR_UNSUPPORTED for another
// type, layout or packing than VkgemmRowQuantisation names, and on a device without
// VkgemmDeviceCaps::int8_arithmetic. Any thread, as vkgemm_plan_create().
VKGEMM_API VkgemmStatus vkgemm_plan_quantise_rows(const VkgemmContext* context,
                                                  const VkgemmRowQuantisation* quantisation,
                                                  VkgemmPlan** plan, VkgemmError* error);

#ifdef __cplusplus
}
#endif

#endif  // VKGEMM_VKGEMM_H
