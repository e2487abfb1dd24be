// quantised.h: the order of a packed quantised B, for C++ and GLSL. It is a sequence of blocks, each
// CODE_DEPTH of K deep and as wide as the matrix, its leading dimension, a multiple of 64:
//
//   scales   for each group of K in the block a row of entries, one a column: the scale (of mxfp4
//            as bf16; NaN where a code is one of e4m3), behind it, if there are, the zero point, an
//            integer of as many bits
//   codes    for each 8 of K a row of their codes, column by column: of 4 bits a word, the first
//            code lowest; of 8 bits two words. Or in fragment order (code_fragments.glsl), in as many
//            bytes
//
// Codes are unsigned: those of integers begin at the lowest value.
#ifndef VKGEMM_QUANTISED_H
#define VKGEMM_QUANTISED_H

#define CODES_NONE 0
#define CODES_INT8 1
#define CODES_INT4 2
#define CODES_E4M3 3
#define CODES_E5M2 4
#define CODES_MXFP4 5

// X(name, NAME): the enumerators of CodeType and of VkgemmCodeType, in the order of the values above.
#define VKGEMM_CODE_TYPES(X) \
    X(int8, INT8)            \
    X(int4, INT4)            \
    X(e4m3, E4M3)            \
    X(e5m2, E5M2)            \
    X(mxfp4, MXFP4)

#define CODE_BITS(codes) ((codes) == CODES_INT4 || (codes) == CODES_MXFP4 ? 4 : 8)

// The code of 0, where there are no zero points.
#define CODE_ZERO(codes) ((codes) == CODES_INT8 ? 128 : (codes) == CODES_INT4 ? 8 : 0)

// Bytes of an entry.
#define CODE_ENTRY(scale_bytes, zeros) ((zeros) != 0 ? 2 * (scale_bytes) : (scale_bytes))

// Nobody divides by 0, not even for what is not taken.
#define CODE_DIVISOR(group) ((group) == 0 ? 1 : (group))

// A block has whole groups, and whole pieces of what is loaded at once. `group` is 0 where all of K
// is one, and then all of K is one block.
#define CODE_PIECE 64
#define CODE_DEPTH(group) ((group) > CODE_PIECE ? (group) : CODE_PIECE)

// Bytes of the scales of a block and of its codes, for each column.
#define CODE_SCALES(group, entry) \
    ((group) == 0 ? (entry) : CODE_DEPTH(group) / CODE_DIVISOR(group) * (entry))
#define CODE_BYTES(depth, codes) ((depth) / 8 * CODE_BITS(codes))

// SCALES_OF: scales multiply each code in the direct loop, the sum over a group of K, or over all of K.
#define SCALES_OF_CODES 0
#define SCALES_OF_GROUPS 1
#define SCALES_OF_ALL 2

// Where codes come from: CodeLayout.
#define CODES_SEPARATE 0
#define CODES_GGML 1
#define GGML_BLOCK 32  // codes
#define GGML_SCALE(codes) ((codes) == CODES_MXFP4 ? 1 : 2)  // bytes in front of them
#define GGML_BYTES(codes) (GGML_BLOCK * CODE_BITS(codes) / 8 + GGML_SCALE(codes))

#endif
