// pack_group.glsl: which tile of an operand a workgroup packs, and the loads from the source, a group (16
// bytes) at a time.
// Two halves of a gated product's B (PACK_HALVES) are packed one behind the other; neighbouring
// columns of a source whose outer direction is K may be of both (GATE_INTERLEAVED).

#include "converted.glsl"

const uint SOURCE_GROUP = 16 / SOURCE_BYTES;
const uint SOURCE_WORD = 4 / SOURCE_BYTES;  // elements of a word
const bool SOURCE_CONVERTED = A_CONVERTED && IN_PARTS == 1;
const uint SOURCE_SIZE = SOURCE_CONVERTED ? A_SIZE : SOURCE_BYTES;

struct PackTile {
    uint first_mn, first_k;
    uint right;  // 1: of the right half
    uint64_t source, copy;
};

PackTile pack_tile() {
    const uint columns = (p.copy_ld + PACK_TILE - 1) / PACK_TILE;
    const uint all = PACK_HALVES != 0 ? 2 * columns : columns;
    const uint id = first_tile() + gl_WorkGroupID.x;
    const uint64_t batch = first_batch() + gl_WorkGroupID.y;
    PackTile t;
    t.right = PACK_HALVES != 0 ? id % all / columns : 0;
    t.first_mn = (id % all - t.right * columns) * PACK_TILE;
    t.first_k = id / all * PACK_TILE;
    t.source = p.source + batch * p.source_batch;
    t.copy = p.copy + batch * p.copy_batch;
    if (t.right != 0) {
        if (GATE_INTERLEAVED == 0) t.source += p.b_right;
        t.copy += uint64_t(p.copy_ld) * (uint64_t(p.copy_depth) * IN_SIZE + LINE_SCALE_BYTES);
    }
    return t;
}

// The first `valid` elements of a group, then zeros.
uvec4 load_group(uint64_t at, uint valid) {
    if (SOURCE_CONVERTED) {
        if (valid == 0) return uvec4(0);
        if (A_VECTOR != 0 && valid >= GROUP) return load_converted(at, A_TYPE, true, GROUP);
        return keep_elements(load_converted(at, A_TYPE, false, valid), valid);
    }
    if (A_VECTOR != 0 && valid >= SOURCE_GROUP) return U32x4(at).x;
    uvec4 data = uvec4(0);
    [[unroll]] for (uint e = 0; e < SOURCE_GROUP; ++e)
        if (e < valid)
            data[e / SOURCE_WORD] |= load_source_bits(at + e * SOURCE_BYTES)
                                     << (e % SOURCE_WORD * 8 * SOURCE_BYTES);
    return data;
}

// The first elements (side 0) of the pairs of each word, or the second ones: 16 bits.
uvec4 other_elements(const uvec4 words, const uint side) {
    const uvec4 chosen = words >> (side * 8 * SOURCE_BYTES);
    return SOURCE_BYTES == 1 ? (chosen & 0xffu) | ((chosen >> 8) & 0xff00u) : chosen & 0xffffu;
}

// A group of the source from element `inner` of line `outer` on, of which `valid` exist.
uvec4 load_source(const PackTile t, uint outer, uint inner, uint valid) {
    const uint64_t line = t.source + uint64_t(outer) * p.source_ld * SOURCE_SIZE;
    if (GATE_INTERLEAVED == 0) return load_group(line + uint64_t(inner) * SOURCE_SIZE, valid);
    // Every other element of two groups.
    const uint64_t at = line + uint64_t(inner) * 2 * SOURCE_SIZE;
    const uvec4 low = load_group(at, 2 * valid);
    const uvec4 high = load_group(at + SOURCE_GROUP * SOURCE_SIZE,
                                  valid > SOURCE_GROUP / 2 ? 2 * valid - SOURCE_GROUP : 0);
    if (SOURCE_BYTES == 4) return t.right == 0 ? uvec4(low.xz, high.xz) : uvec4(low.yw, high.yw);
    const uvec4 even = uvec4(low.xz, high.xz), odd = uvec4(low.yw, high.yw);
    return other_elements(even, t.right) | other_elements(odd, t.right) << 16;
}
