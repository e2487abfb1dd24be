// code_source.glsl: codes before they are packed (Quantisation in include/vkgemm/matrix.hpp): from
// arrays, or from blocks of ggml files. A_COL_MAJOR: K is the outer direction of the source. A
// workgroup packs PACK_TILE × PACK_TILE codes, and the scales of the groups that begin there;
// workgroup y is a matrix of the batch.
#include "code_sizes.glsl"

const uint PER_BYTE = 8 / CODE_WIDTH;
const bool IN_BLOCKS = CODE_LAYOUT == CODES_GGML;
const uint SOURCE_SCALE = GGML_SCALE(CODES);
const uint SOURCE_BLOCK = GGML_BYTES(CODES);

uint block_depth() { return CODE_GROUP_K == 0 ? p.copy_depth : CODE_DEPTH(CODE_GROUP_K); }
uint block_bytes() { return BLOCK_SCALES + CODE_BYTES(block_depth(), CODES); }  // of a column

// A byte is taken out of its word, which is as readable.
uint load_byte(uint64_t at) { return (U32(at & ~uint64_t(3)).x >> (uint(at & 3) * 8)) & 0xffu; }

uint source_code(uint64_t source, uint k, uint column) {
    uint64_t at;
    bool upper = PER_BYTE == 2 && k % 2 != 0;
    if (IN_BLOCKS) {
        const uint within = k % GGML_BLOCK;
        upper = PER_BYTE == 2 && within >= GGML_BLOCK / 2;
        at = source + uint64_t(column) * p.source_ld + k / GGML_BLOCK * SOURCE_BLOCK + SOURCE_SCALE +
            (upper ? within - GGML_BLOCK / 2 : within);
    } else if (A_COL_MAJOR != 0) {
        at = source + uint64_t(k / PER_BYTE) * p.source_ld + column;
    } else {
        at = source + uint64_t(column) * p.source_ld + k / PER_BYTE;
    }
    const uint byte = load_byte(at);
    const uint code = upper ? byte >> 4 : byte & ((1u << CODE_WIDTH) - 1);
    // From two's complement: those of q4_0 begin at the lowest value, and so do those with zeros.
    if (CODES == CODES_INT8) return code ^ 0x80u;
    if (CODES == CODES_INT4 && CODE_ZEROS == 0 && !IN_BLOCKS) return code ^ 8u;
    return code;
}

// The exponent alone, as bf16.
uint e8m0_to_bf16(uint e) { return e == 0 ? 0x0040u : e == 255 ? 0x7fc0u : e << 7; }

uint scale_bits(uint64_t source, uint64_t scales, uint k, uint column) {
    if (IN_BLOCKS) {
        const uint64_t at = source + uint64_t(column) * p.source_ld + k / GGML_BLOCK * SOURCE_BLOCK;
        return CODES == CODES_MXFP4 ? e8m0_to_bf16(load_byte(at)) : uint(U16(at).x);
    }
    if (CODES == CODES_MXFP4) return e8m0_to_bf16(load_byte(scales));
    return SCALE_BYTES == 4 ? U32(scales).x : uint(U16(scales).x);
}

// The place of the group's number in arrays.
uint64_t group_place(uint k, uint column) {
    const uint along_k = CODE_GROUP_K == 0 ? 0 : k / CODE_DIVISOR(CODE_GROUP_K);
    const uint along_n = CODE_GROUP_N == 0 ? 0 : column / CODE_DIVISOR(CODE_GROUP_N);
    return A_COL_MAJOR != 0 ? uint64_t(along_k) * p.scales_ld + along_n
                            : uint64_t(along_n) * p.scales_ld + along_k;
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

// Element (k, n) of a half; in the padding the code of 0. Groups that are all padding have scale 0.
uint code_at(const CodeTile t, uint k, uint n) {
    if (n >= p.width) return 0;
    const uint column = source_column(t, n);
    if (k < p.depth) return source_code(t.source, k, column);
    return CODE_ZEROS != 0 ? load_byte(t.zeros + group_place(p.depth - 1, column)) & 15
                           : CODE_ZERO(CODES);
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

// All of K, or 64 of it, are whole groups, or a group is several tiles. A NaN among the codes makes a
// NaN of their scale: either makes one of all that the column of B is multiplied to, and products
// needn't look for that code.
void pack_scales(const CodeTile t) {
    const uint group = CODE_GROUP_K == 0 ? p.copy_depth : CODE_GROUP_K;
    if (group > PACK_TILE && t.first_k % group != 0) return;
    const uint groups = max(PACK_TILE / group, 1);
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * groups; i += LOCAL_SIZE) {
        const uint n = t.first_n + i % PACK_TILE, k = t.first_k + i / PACK_TILE * group;
        uint scale = 0, zero = 0;
        if (k < p.depth && n < p.width) {
            const uint column = source_column(t, n);
            const uint64_t place = group_place(k, column);
            const uint bytes = CODES == CODES_MXFP4 ? 1 : SCALE_BYTES;
            scale = scale_bits(t.source, t.scales + place * bytes, k, column);
            if (CODES == CODES_E4M3 && has_nan(t, k, group, n))
                scale = SCALE_TYPE == TYPE_F32    ? 0x7fc00000u
                    : SCALE_TYPE == TYPE_BF16 ? 0x7fc0u
                                              : 0x7e00u;
            if (CODE_ZEROS != 0) zero = load_byte(t.zeros + place);
        }
        const uint64_t to = block_address(t, k) +
            (uint64_t(k % block_depth() / group) * p.copy_ld + n) * ENTRY_BYTES;
        if (SCALE_BYTES == 4) {
            U32(to).x = scale;
            if (CODE_ZEROS != 0) U32(to + 4).x = zero;
        } else {
            U16(to).x = uint16_t(scale);
            if (CODE_ZEROS != 0) U16(to + 2).x = uint16_t(zero);
        }
    }
}
