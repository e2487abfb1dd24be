// Brings a quantised B to the order of lib/quantised.h, from arrays or from blocks of ggml files
// (Quantisation in include/vkgemm/problem.hpp). A workgroup brings PACK_TILE × PACK_TILE codes, and
// the scales of the groups that begin there; workgroup y is a matrix of the batch. A_COL_MAJOR: K is
// the outer direction of the source.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS PackCodesParams
#include "lib/common.glsl"
#include "lib/types.glsl"

const uint BITS = CODE_BITS(CODES);
const uint PER_BYTE = 8 / BITS;
const bool IN_BLOCKS = CODE_SOURCE == CODES_GGML;
const uint BLOCK_SCALE = CODES == CODES_MXFP4 ? 1 : 2;  // bytes
const uint BLOCK_BYTES = GGML_BLOCK * BITS / 8 + BLOCK_SCALE;
const uint SCALE_BYTES = SCALE_TYPE == TYPE_F32 ? 4 : 2;
const uint ENTRY_BYTES = CODE_ENTRY(SCALE_BYTES, CODE_ZEROS);

// Of the word that has it, which is as readable.
uint load_byte(uint64_t at) { return (U32(at & ~uint64_t(3)).x >> (uint(at & 3) * 8)) & 0xffu; }

uint source_code(uint64_t source, uint k, uint column) {
    uint64_t at;
    bool upper = PER_BYTE == 2 && k % 2 != 0;
    if (IN_BLOCKS) {
        const uint within = k % GGML_BLOCK;
        upper = PER_BYTE == 2 && within >= GGML_BLOCK / 2;
        at = source + uint64_t(column) * p.source_ld + k / GGML_BLOCK * BLOCK_BYTES + BLOCK_SCALE +
             (upper ? within - GGML_BLOCK / 2 : within);
    } else if (A_COL_MAJOR != 0) {
        at = source + uint64_t(k / PER_BYTE) * p.source_ld + column;
    } else {
        at = source + uint64_t(column) * p.source_ld + k / PER_BYTE;
    }
    const uint byte = load_byte(at);
    const uint code = upper ? byte >> 4 : byte & ((1u << BITS) - 1);
    // From two's complement: those of q4_0 begin at the lowest value, and so do those with zeros.
    if (CODES == CODES_INT8) return code ^ 0x80u;
    if (CODES == CODES_INT4 && CODE_ZEROS == 0 && !IN_BLOCKS) return code ^ 8u;
    return code;
}

// The exponent alone, as bf16.
uint e8m0_to_bf16(uint e) { return e == 0 ? 0x0040u : e == 255 ? 0x7fc0u : e << 7; }

uint scale_bits(uint64_t source, uint64_t scales, uint k, uint column) {
    if (IN_BLOCKS) {
        const uint64_t at = source + uint64_t(column) * p.source_ld + k / GGML_BLOCK * BLOCK_BYTES;
        return CODES == CODES_MXFP4 ? e8m0_to_bf16(load_byte(at)) : uint(U16(at).x);
    }
    if (CODES == CODES_MXFP4) return e8m0_to_bf16(load_byte(scales));
    return SCALE_BYTES == 4 ? U32(scales).x : uint(U16(scales).x);
}

// The place of the group's number in arrays.
uint group_place(uint k, uint column) {
    const uint along_k = CODE_GROUP == 0 ? 0 : k / max(CODE_GROUP, 1);
    const uint along_n = CODE_COLUMNS == 0 ? 0 : column / max(CODE_COLUMNS, 1);
    return A_COL_MAJOR != 0 ? along_k * p.scales_ld + along_n : along_n * p.scales_ld + along_k;
}

void main() {
    const uint columns = (p.copy_ld + PACK_TILE - 1) / PACK_TILE;
    const uint all = PACK_HALVES != 0 ? 2 * columns : columns;
    const uint id = p.first_tile + gl_WorkGroupID.x;
    const uint64_t batch = p.first_batch + gl_WorkGroupID.y;
    const uint right = id % all / columns;
    const uint first_n = id % columns * PACK_TILE, first_k = id / all * PACK_TILE;
    const uint64_t source = p.source + batch * p.source_batch;
    const uint64_t scales = p.scales + batch * p.scales_batch;
    const uint64_t zeros = p.zeros + batch * p.zeros_batch;

    const uint depth = CODE_GROUP == 0 ? p.copy_depth : CODE_DEPTH(CODE_GROUP);
    const uint block_scales = CODE_SCALES(CODE_GROUP, ENTRY_BYTES);
    const uint block_bytes = block_scales + CODE_BYTES(depth, CODES);
    const uint64_t half_bytes = uint64_t(p.copy_depth / depth) * p.copy_ld * block_bytes;
    const uint64_t copy = p.copy + batch * p.copy_batch + right * half_bytes;

    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * (PACK_TILE / 8); i += LOCAL_SIZE) {
        const uint n = first_n + i % PACK_TILE, first = first_k + i / PACK_TILE * 8;
        const uint column = GATE_INTERLEAVED != 0 ? 2 * n + right : right * p.width + n;
        uvec2 words = uvec2(0);
        [[unroll]] for (uint e = 0; e < 8; ++e) {
            uint code = CODE_ZERO(CODES);
            if (first + e < p.depth && n < p.width) code = source_code(source, first + e, column);
            words[e * BITS / 32] |= code << (e * BITS % 32);
        }
        const uint64_t to = copy + uint64_t(first / depth) * p.copy_ld * block_bytes +
                            uint64_t(p.copy_ld) * block_scales +
                            (uint64_t(first % depth / 8) * p.copy_ld + n) * BITS;
        if (BITS == 4) U32(to).x = words.x;
        else U32x2(to).x = words;
    }

    // All of K, or 64 of it, are whole groups, or a group is several tiles.
    const uint group = CODE_GROUP == 0 ? p.copy_depth : CODE_GROUP;
    if (first_k % min(group, PACK_TILE) != 0 || (group > PACK_TILE && first_k % group != 0)) return;
    const uint groups = max(PACK_TILE / group, 1);
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * groups; i += LOCAL_SIZE) {
        const uint n = first_n + i % PACK_TILE, k = first_k + i / PACK_TILE * group;
        const uint column = GATE_INTERLEAVED != 0 ? 2 * n + right : right * p.width + n;
        uint scale = 0, zero = 0;
        if (k < p.depth && n < p.width) {
            const uint place = group_place(k, column);
            const uint bytes = CODES == CODES_MXFP4 ? 1 : SCALE_BYTES;
            scale = scale_bits(source, scales + uint64_t(place) * bytes, k, column);
            if (CODE_ZEROS != 0) zero = load_byte(zeros + place);
        }
        const uint64_t to = copy + uint64_t(k / depth) * p.copy_ld * block_bytes +
                            (uint64_t(k % depth / group) * p.copy_ld + n) * ENTRY_BYTES;
        if (SCALE_BYTES == 4) {
            U32(to).x = scale;
            if (CODE_ZEROS != 0) U32(to + 4).x = zero;
        } else {
            U16(to).x = uint16_t(scale);
            if (CODE_ZEROS != 0) U16(to + 2).x = uint16_t(zero);
        }
    }
}
