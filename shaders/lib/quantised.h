// quantised.h: the order of a packed quantised B, for C++ and GLSL. It is a sequence of blocks, each
// CODE_DEPTH of K deep and as wide as the matrix, its leading dimension, a multiple of 64:
//
//   scales   For each group of K in the block a row of entries, one a column: the scale (of mxfp4
//            as bf16; NaN where a code is one of e4m3). The zero point, if there
//            is one (ZEROS_*), follows in as many bits
//   codes    For each 8 of K a row of their codes, column by column: of 4 bits a word, the first
//            code lowest; of 8 bits two words. If codes of 4 bits are multiplied as s8, the lower
//            halves of a word's bytes have the first four. Or in fragment order (code_fragments.glsl), in as many
//            bytes
//
// Scales in two levels begin with a row of words, one a column. A word is an f32, which multiplies all
// scales of the block. With minima (ZEROS_MINIMA) it is two f16, and the second multiplies the minima.
// An entry then has 2 bytes, a signed scale and a minimum from 0 to 255. A column's entries of two
// groups that follow each other share a word.
//
// Codes are unsigned: those of integers begin at the lowest value.
#ifndef VKGEMM_QUANTISED_H
#define VKGEMM_QUANTISED_H

#include "types.h"

// CODES: the numbers that codes stand for, before zero point and scale.
#define CODES_NONE 0
#define CODES_INT8 1
#define CODES_INT4 2
#define CODES_E4M3 3
#define CODES_E5M2 4
#define CODES_E2M1 5

// X(name, NAME): the enumerators of CodeType and of VkgemmCodeType, in their order.
#define VKGEMM_CODE_TYPES(X) \
    X(int8, INT8)            \
    X(int4, INT4)            \
    X(e4m3, E4M3)            \
    X(e5m2, E5M2)            \
    X(mxfp4, MXFP4)          \
    X(nvfp4, NVFP4)          \
    X(q4_1, Q4_1)            \
    X(q5_0, Q5_0)            \
    X(q5_1, Q5_1)            \
    X(q2_k, Q2_K)            \
    X(q3_k, Q3_K)            \
    X(q4_k, Q4_K)            \
    X(q5_k, Q5_K)            \
    X(q6_k, Q6_K)            \
    X(iq4_nl, IQ4_NL)        \
    X(iq4_xs, IQ4_XS)        \
    X(q1_0, Q1_0)            \
    X(q2_0, Q2_0)            \
    X(tq2_0, TQ2_0)

#define CODE_BITS(codes) ((codes) == CODES_INT4 || (codes) == CODES_E2M1 ? 4 : 8)

// CODE_ZEROS: the number that follows the scale of an entry.
#define ZEROS_NONE 0      // scale * (code - CODE_ZERO)
#define ZEROS_INTEGERS 1  // scale * (code - zero)
#define ZEROS_FLOATS 2    // the same, zero is of the type of scales
#define ZEROS_MINIMA 3    // scale * code + minimum

// The code of 0, where there are no zero points.
#define CODE_ZERO(codes) ((codes) == CODES_INT8 ? 128 : (codes) == CODES_INT4 ? 8 : 0)
// Codes that are multiplied as s8 without zero points lie minus CODE_ZERO, in two's complement. A code of 4 bits fills the
// upper half of its byte, so that one mask makes 16 times four codes. 1: codes lie as they are. A 16th of an f32 or bf16
// scale may be subnormal.
#define S8_CODE_FACTOR(codes, scale_type, zeros) \
    ((zeros) != ZEROS_NONE ? 1 : (codes) != CODES_INT4 ? 1 : (scale_type) == TYPE_F32 ? 1 : (scale_type) == TYPE_BF16 ? 1 : 16)

// Avoids a division by 0 in branches that are not taken.
#define CODE_DIVISOR(group) ((group) == 0 ? 1 : (group))

// SCALE_TYPE of scales in two levels, in place of a TYPE_*, and the codes of a block that has them.
#define SCALE_LEVELS 15
#define HAS_LEVELS(scale_type) ((scale_type) == SCALE_LEVELS)
#define LEVELS_DEPTH 256

// Bytes of a scale, and of an entry.
#define SCALE_SIZE(scale_type) ((scale_type) == TYPE_F32 ? 4 : HAS_LEVELS(scale_type) ? 1 : 2)
#define CODE_ENTRY(scale_type, zeros) \
    (HAS_LEVELS(scale_type) || (zeros) != ZEROS_NONE ? 2 * SCALE_SIZE(scale_type) : SCALE_SIZE(scale_type))

// A block has whole groups, and whole pieces of what is loaded at once. `group` is 0 where all of K
// is one, and then all of K is one block.
#define CODE_PIECE 64
#define CODE_DEPTH(group, scale_type)                    \
    (HAS_LEVELS(scale_type)  ? LEVELS_DEPTH               \
     : (group) > CODE_PIECE ? (group)                     \
                             : CODE_PIECE)

// Bytes of the scales of a block and of its codes, for each column.
#define LEVELS_SIZE(scale_type) (HAS_LEVELS(scale_type) ? 4 : 0)
#define CODE_SCALES(group, scale_type, zeros)                                       \
    ((group) == 0 ? CODE_ENTRY(scale_type, zeros)                                    \
                  : LEVELS_SIZE(scale_type) + CODE_DEPTH(group, scale_type) /         \
                        CODE_DIVISOR(group) * CODE_ENTRY(scale_type, zeros))
#define CODE_BYTES(depth, codes) ((depth) / 8 * CODE_BITS(codes))

// SCALES_OF: scales multiply each code in the direct loop, the sum over a group of K, or over all of K.
#define SCALES_OF_CODES 0
#define SCALES_OF_GROUPS 1
#define SCALES_OF_ALL 2

// CODE_SOURCE: what codes are packed from: arrays and orders of words (CodeLayout), or blocks of ggml
// files, by their type.
#define SOURCE_ARRAYS 0
#define SOURCE_GPTQ 1     // zero points one less
#define SOURCE_GPTQ_V2 2  // zero points themselves
#define SOURCE_AWQ 3
#define SOURCE_Q4_0 4
#define SOURCE_Q8_0 5
#define SOURCE_MXFP4 6
#define SOURCE_Q4_1 7
#define SOURCE_Q5_0 8
#define SOURCE_Q5_1 9
#define SOURCE_IQ4_NL 10
#define SOURCE_Q2_0 11
#define SOURCE_NVFP4 12
#define SOURCE_Q1_0 13
#define SOURCE_TQ2_0 14
#define SOURCE_Q2_K 15
#define SOURCE_Q3_K 16
#define SOURCE_Q4_K 17
#define SOURCE_Q5_K 18
#define SOURCE_Q6_K 19
#define SOURCE_IQ4_XS 20
#define IS_BLOCKS(source) ((source) >= SOURCE_Q4_0)

// Codes of a block, and its bytes.
#define BLOCK_CODES(source)             \
    ((source) >= SOURCE_TQ2_0  ? 256    \
     : (source) >= SOURCE_Q1_0 ? 128    \
     : (source) >= SOURCE_Q2_0 ? 64     \
                               : 32)
#define BLOCK_SIZE(source)                                                                     \
    ((source) == SOURCE_Q4_0 || (source) == SOURCE_IQ4_NL || (source) == SOURCE_Q2_0 ||        \
             (source) == SOURCE_Q1_0                                                           \
         ? 18                                                                                  \
     : (source) == SOURCE_Q8_0  ? 34                                                           \
     : (source) == SOURCE_MXFP4 ? 17                                                           \
     : (source) == SOURCE_Q4_1  ? 20                                                           \
     : (source) == SOURCE_Q5_0  ? 22                                                           \
     : (source) == SOURCE_Q5_1  ? 24                                                           \
     : (source) == SOURCE_NVFP4 ? 36                                                           \
     : (source) == SOURCE_TQ2_0 ? 66                                                           \
     : (source) == SOURCE_Q2_K  ? 84                                                           \
     : (source) == SOURCE_Q3_K  ? 110                                                          \
     : (source) == SOURCE_Q4_K  ? 144                                                          \
     : (source) == SOURCE_Q5_K  ? 176                                                          \
     : (source) == SOURCE_Q6_K  ? 210                                                          \
                                : 136)

#endif
