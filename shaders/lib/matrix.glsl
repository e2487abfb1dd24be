// The contract that every kernel is written against, once for all paths:
//
//   Acc                         f32 accumulators of one tile; declare, then acc_clear
//   acc_clear(out Acc)
//   mma_tile(inout Acc, Tile)   Acc += A[tile rows, k_begin…k_end) · B[k_begin…k_end, tile columns)
//   store_tile(Acc, Tile)       D and aux through the epilogue, inside the matrix only
//
// MATRIX_PATH and IN_TYPE are set by the module list; everything else is a specialization
// constant. (A type with arrays sized by specialization constants can be neither returned nor an
// initialiser in glslang, hence acc_clear.)
#include "common.glsl"
#include "tile.glsl"
#include "epilogue.glsl"

#if IN_TYPE == TYPE_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : enable
#define IN_SCALAR float16_t
#elif IN_TYPE == TYPE_BF16 && MATRIX_PATH < PATH_FMA
#extension GL_EXT_bfloat16 : require
#define IN_SCALAR bfloat16_t
#else
#define IN_SCALAR float
#endif

#if MATRIX_PATH == PATH_NV
#include "matrix_nv.glsl"
#elif MATRIX_PATH == PATH_KHR
#include "matrix_khr.glsl"
#elif MATRIX_PATH == PATH_THIN
#include "matrix_thin.glsl"
#else
#include "matrix_fma.glsl"
#endif
