// code_source.glsl: codes before they are packed (Quantisation in include/vkgemm/matrix.hpp): from arrays, from
// the words of GPTQ and AWQ, or from blocks of ggml files. A_COL_MAJOR: K is the outer direction of the source. A
// workgroup packs PACK_TILE × PACK_TILE codes, and the scales of the groups that begin there; workgroup y is a
// matrix of the batch.
#include "code_sizes.glsl"

const uint PER_BYTE = 8 / CODE_WIDTH;
const bool IN_BLOCKS = IS_BLOCKS(CODE_SOURCE);
const bool IN_WORDS = CODE_SOURCE == SOURCE_GPTQ || CODE_SOURCE == SOURCE_GPTQ_V2 || CODE_SOURCE == SOURCE_AWQ;

uint block_depth() { return CODE_GROUP_K == 0 ? p.copy_depth : CODE_DEPTH(CODE_GROUP_K, SCALE_TYPE); }
uint block_bytes() { return BLOCK_SCALES + CODE_BYTES(block_depth(), CODES); }  // of a column

// A byte is taken out of its word, which is as readable.
uint load_byte(uint64_t at) { return (U32(at & ~uint64_t(3)).x >> (uint(at & 3) * 8)) & 0xffu; }

// The exponent alone, as bf16.
uint e8m0_to_bf16(uint e) { return e == 0 ? 0x0040u : e == 255 ? 0x7fc0u : e << 7; }

// The number of a byte of E4M3, 0x7f is 480. No subnormal takes part.
float e4m3_value(const uint byte) {
    return byte < 8 ? float(byte) / 512.0 : uintBitsToFloat((byte >> 3) + 120 << 23 | (byte & 7) << 20);
}

#include "ggml_blocks.glsl"

// The block of element k.
uint64_t source_block(uint64_t source, uint k, uint column) {
    return source + uint64_t(column) * p.source_ld +
        k / BLOCK_CODES(CODE_SOURCE) * BLOCK_SIZE(CODE_SOURCE);
}

// The place of one of eight columns in a word of AWQ.
uint awq_place(const uint column) { return column % 2 * 4 + column % 8 / 2; }

uint source_code(uint64_t source, uint k, uint column) {
    if (IN_BLOCKS) return block_code(source_block(source, k, column), k % BLOCK_CODES(CODE_SOURCE));
    if (CODE_SOURCE == SOURCE_AWQ) {
        const uint place = awq_place(column);
        return nibble(source + uint64_t(k) * p.source_ld + column / 8 * 4 + place / 2, place % 2 != 0);
    }
    if (IN_WORDS)
        return nibble(source + uint64_t(k / 8) * p.source_ld + uint64_t(column) * 4 + k % 8 / 2, k % 2 != 0);
    const uint64_t at = A_COL_MAJOR != 0 ? source + uint64_t(k / PER_BYTE) * p.source_ld + column
                                         : source + uint64_t(column) * p.source_ld + k / PER_BYTE;
    const uint byte = load_byte(at);
    const uint code = PER_BYTE == 2 ? (k % 2 != 0 ? byte >> 4 : byte & 15) : byte;
    // Codes in two's complement become unsigned. Codes with zero points are unsigned.
    if (CODE_ZEROS != ZEROS_NONE) return code;
    if (CODES == CODES_INT8) return code ^ 0x80u;
    return CODES == CODES_INT4 ? code ^ 8u : code;
}

// The place of the group's number in arrays.
uint64_t group_place(uint k, uint column) {
    const uint along_k = CODE_GROUP_K == 0 ? 0 : k / CODE_DIVISOR(CODE_GROUP_K);
    const uint along_n = CODE_GROUP_N == 0 ? 0 : column / CODE_DIVISOR(CODE_GROUP_N);
    return A_COL_MAJOR != 0 ? uint64_t(along_k) * p.scales_ld + along_n
                            : uint64_t(along_n) * p.scales_ld + along_k;
}

uint load_number(uint64_t at, const uint bytes) {
    return bytes == 4 ? U32(at).x : bytes == 2 ? uint(U16(at).x) : load_byte(at);
}

uint source_scale(uint64_t scales, uint64_t place) {
    if (CODES != CODES_E2M1) return load_number(scales + place * SCALE_BYTES, SCALE_BYTES);
    const uint byte = load_byte(scales + place);
    if (SCALE_TYPE == TYPE_BF16) return e8m0_to_bf16(byte);
    // E4M3 of nvfp4, as f16.
    const uint magnitude = byte & 0x7fu;
    if (magnitude == 0x7fu) return 0x7e00u;
    return packHalf2x16(vec2(e4m3_value(magnitude), 0.0)) | (byte & 0x80u) << 8;
}

// The zero point of a group.
uint source_zero(uint64_t zeros, uint k, uint column) {
    const uint64_t place = group_place(k, column);
    if (CODE_ZEROS == ZEROS_FLOATS) return load_number(zeros + place * SCALE_BYTES, SCALE_BYTES);
    if (!IN_WORDS) return load_byte(zeros + place);
    const uint in_word = CODE_SOURCE == SOURCE_AWQ ? awq_place(column) : column % 8;
    const uint64_t word = zeros + (place - column % 8) / 2;
    return nibble(word + in_word / 2, in_word % 2 != 0) + (CODE_SOURCE == SOURCE_GPTQ ? 1 : 0);
}

// The scale of the group of element (k, column), and its zero point or minimum.
uvec2 source_entry(uint64_t source, uint64_t scales, uint64_t zeros, uint k, uint column) {
    if (IN_BLOCKS)
        return block_entry(source_block(source, k, column),
                           k % BLOCK_CODES(CODE_SOURCE) / CODE_DIVISOR(CODE_GROUP_K));
    return uvec2(source_scale(scales, group_place(k, column)),
                 CODE_ZEROS != ZEROS_NONE ? source_zero(zeros, k, column) : 0);
}

struct CodeTile {
    uint first_n, first_k;
    uint right;  // 1: of the right half
    uint64_t source, scales, zeros, copy;
};

CodeTile code_tile() {
    const uint columns = (p.copy_ld + PACK_TILE - 1) / PACK_TILE;
    const uint all = PACK_HALVES != 0 ? 2 * columns : columns;
    const uint id = first_tile() + gl_WorkGroupID.x;
    const uint64_t batch = first_batch() + gl_WorkGroupID.y;
    CodeTile t;
    t.right = id % all / columns;
    t.first_n = id % columns * PACK_TILE;
    t.first_k = id / all * PACK_TILE;
    t.source = p.source + batch * p.source_batch;
    t.scales = p.scales + batch * p.scales_batch;
    t.zeros = p.zeros + batch * p.zeros_batch;
    t.copy = p.copy + batch * p.copy_batch;
    if (t.right != 0)
        t.copy += uint64_t(p.copy_depth / block_depth()) * p.copy_ld * block_bytes();
    return t;
}

// Column n of a half, in the source.
uint source_column(const CodeTile t, uint n) {
    return GATE_INTERLEAVED != 0 ? 2 * n + t.right : t.right * p.width + n;
}

// Element (k, n) of a half. Beyond K it is 0. With zero points of floats it repeats the last element: A is 0 there, and
// the product with any finite element is 0. Groups that are all padding have scale 0.
uint code_at(const CodeTile t, uint k, uint n) {
    if (n >= p.width) return 0;
    const uint column = source_column(t, n);
    if (k < p.depth || CODE_ZEROS == ZEROS_FLOATS) return source_code(t.source, min(k, p.depth - 1), column);
    if (CODE_ZEROS == ZEROS_MINIMA) return 0;
    return CODE_ZEROS == ZEROS_INTEGERS ? min(source_zero(t.zeros, p.depth - 1, column), 15) : CODE_ZERO(CODES);
}

// Where in the copy the scales of k's block stand, and its codes of k and all columns.
uint64_t block_address(const CodeTile t, uint k) {
    return t.copy + uint64_t(k / block_depth()) * p.copy_ld * block_bytes();
}
uint64_t codes_address(const CodeTile t, uint k) {
    return block_address(t, k) + uint64_t(p.copy_ld) * BLOCK_SCALES +
        uint64_t(k % block_depth()) * p.copy_ld * CODE_WIDTH / 8;
}

// True if one of the `depth` codes of column `n` from k on is a NaN of e4m3.
bool has_nan(const CodeTile t, uint k, uint depth, uint n) {
    const uint end = min(k + depth, p.depth);
    for (uint each = k; each < end; ++each)
        if ((source_code(t.source, each, source_column(t, n)) & 0x7fu) == 0x7fu) return true;
    return false;
}

// The words of a block of scales in two levels, one a column.
void pack_levels(const CodeTile t) {
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE; i += LOCAL_SIZE) {
        const uint n = t.first_n + i;
        uint levels = 0;
        if (t.first_k < p.depth && n < p.width)
            levels = block_levels(source_block(t.source, t.first_k, source_column(t, n)));
        U32(block_address(t, t.first_k) + uint64_t(n) * 4).x = levels;
    }
}

// All of K, or 64 of it, are whole groups, or a group is several tiles. A NaN among the codes makes a
// NaN of their scale: either makes one of all that the column of B is multiplied to, and products
// needn't look for that code.
void pack_scales(const CodeTile t) {
    const uint group = CODE_GROUP_K == 0 ? p.copy_depth : CODE_GROUP_K;
    if (TWO_LEVELS && t.first_k % LEVELS_DEPTH == 0) pack_levels(t);
    if (group > PACK_TILE && t.first_k % group != 0) return;
    const uint groups = max(PACK_TILE / group, 1);
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * groups; i += LOCAL_SIZE) {
        const uint n = t.first_n + i % PACK_TILE, k = t.first_k + i / PACK_TILE * group;
        uvec2 entry = uvec2(0);
        if (k < p.depth && n < p.width) {
            entry = source_entry(t.source, t.scales, t.zeros, k, source_column(t, n));
            if (CODES == CODES_E4M3 && has_nan(t, k, group, n))
                entry.x = SCALE_TYPE == TYPE_F32  ? 0x7fc00000u
                        : SCALE_TYPE == TYPE_BF16 ? 0x7fc0u
                                                  : 0x7e00u;
        }
        const uint64_t to = block_address(t, k) +
            entry_offset(k % block_depth() / group, p.copy_ld, n);
        if (TWO_LEVELS) {
            U16(to).x = uint16_t((entry.x & 0xffu) | entry.y << 8);
        } else if (SCALE_BYTES == 4) {
            U32(to).x = entry.x;
            if (CODE_ZEROS != ZEROS_NONE) U32(to + 4).x = entry.y;
        } else {
            U16(to).x = uint16_t(entry.x);
            if (CODE_ZEROS != ZEROS_NONE) U16(to + 2).x = uint16_t(entry.y);
        }
    }
}
