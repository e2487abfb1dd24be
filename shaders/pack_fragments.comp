// Copies an operand into the order in which the direct loop holds it (lib/inputs/fragment_words.glsl), with
// zeros where there was nothing. A workgroup copies PACK_TILE × PACK_TILE elements; workgroup y is a
// matrix of the batch. A_COL_MAJOR: K is the outer direction of the source. PACKS_B: it is B. GROUPED:
// by slots of groups. An f32 of the source may become several parts (lib/inputs/parts.glsl). If lines have
// scales, a workgroup copies all of K, which it reads twice.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#define PARAMS PackParams
#include "lib/common.glsl"
#include "lib/types.glsl"
#include "lib/input_contract.glsl"
#include "lib/inputs/pack_group.glsl"
#include "lib/inputs/fragment_words.glsl"
#include "lib/schedule/pack_slots.glsl"

const bool K_INNER = A_COL_MAJOR == 0;
const uint GROUPS = PACK_TILE / SOURCE_GROUP;  // of a line of a tile
// The tile as it lies in the source, one behind the other of all parts, by x8s: eight elements, of which
// fragments are multiples.
const uint X8_WORDS = 2 * IN_BYTES;
const uint LINE = PACK_TILE / 8 + 1;
const uint TILE_X8 = PACK_TILE * LINE;
shared X8 tile[IN_PARTS * TILE_X8];

// The line of the tile where line `line` of the source goes, and the place there of word `word`.
uint tile_line(const uint line) {
    return K_INNER ? line : word_place(line / WORD_ELEMENTS) * WORD_ELEMENTS + line % WORD_ELEMENTS;
}
uint tile_word(const uint word) { return K_INNER ? word_place(word) : word; }

void set_word(const uint part, const uint line, const uint word, const uint bits) {
    const uint place = tile_word(word);
    tile[part * TILE_X8 + tile_line(line) * LINE + place / X8_WORDS][place % X8_WORDS] = bits;
}

// Group i of a tile: its line and column there, and its elements.
uvec2 group_place(const uint i) { return uvec2(i / GROUPS, i % GROUPS * SOURCE_GROUP); }
// The row of the source that row `row` of A's copy holds: as in row_index.glsl.
uint gathered_row(const uint row) {
    return min(U32(p.row_index + uint64_t(row) * 4).x / GATHER, p.source_rows - 1);
}
uvec4 source_group(const PackTile t, const uvec2 at) {
    const uint line = at.x, column = at.y;
    const uvec2 mn =
        place_in_source(GROUPED_ALONG_M, t.first_mn + (K_INNER ? line : column), p.width);
    const uvec2 k = place_in_source(GROUPED_ALONG_K, t.first_k + (K_INNER ? column : line), p.depth);
    const uvec2 outer = K_INNER ? mn : k, inner = K_INNER ? k : mn;
    const bool exists = outer.x < outer.y && inner.x < inner.y;
    uint line_in_source = outer.x;
    if (GATHER != 0 && exists) line_in_source = gathered_row(outer.x);
    return load_source(t, line_in_source, inner.x, exists ? inner.y - inner.x : 0);
}

// SET_GROUP of whole elements: brings a group of the source to the tile.
void set_whole(const uvec2 at, const uvec4 words) {
    if (INTERLEAVE_K != 0 && K_INNER) {
        [[unroll]] for (uint w = 0; w < 4; ++w)
            set_word(0, at.x, at.y / WORD_ELEMENTS + w, words[w]);
        return;
    }
    const uint x8 = tile_line(at.x) * LINE + at.y / 8;
    SET_X8S(tile, x8, words)
}

// The bits of the largest finite magnitude of each of the tile's lines along M or N; then of its scale.
shared uint line_scales[PACK_TILE];

// The elements of a group are of one line, or of neighbouring ones.
uint line_of(const uvec2 at, const uint e) { return K_INNER ? at.x : at.y + e; }
float inverse_of(const float scale) {
    return uintBitsToFloat((254u << 23) - floatBitsToUint(scale));
}
float scaled_source(const uint bits, const uint line) {
    return uintBitsToFloat(bits) * inverse_of(uintBitsToFloat(line_scales[line]));
}

void find_scales(PackTile t) {
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE; i += LOCAL_SIZE) line_scales[i] = 0;
    if (GROUPED != GROUPED_NONE) find_slots(t.first_mn);  // along M: along K there are no scales
    // An invocation has groups of the same lines in each tile.
    const uint OWN = PACK_TILE * GROUPS / PACK_LOCAL_SIZE;
    uint largest[OWN][SOURCE_GROUP];
    [[unroll]] for (uint g = 0; g < OWN; ++g)
        [[unroll]] for (uint e = 0; e < SOURCE_GROUP; ++e) largest[g][e] = 0;
    for (t.first_k = 0; t.first_k < p.copy_depth; t.first_k += PACK_TILE) {
        uvec4 bits[OWN];
        [[unroll]] for (uint g = 0; g < OWN; ++g)
            bits[g] = source_group(t, group_place(gl_LocalInvocationIndex + g * PACK_LOCAL_SIZE));
        [[unroll]] for (uint g = 0; g < OWN; ++g)
            [[unroll]] for (uint e = 0; e < SOURCE_GROUP; ++e) {
                const uint magnitude = bits[g][e] & 0x7fffffffu;
                if (magnitude < 0x7f800000u) largest[g][e] = max(largest[g][e], magnitude);
            }
    }
    barrier();
    [[unroll]] for (uint g = 0; g < OWN; ++g)
        [[unroll]] for (uint e = 0; e < SOURCE_GROUP; ++e)
            atomicMax(line_scales[line_of(
                          group_place(gl_LocalInvocationIndex + g * PACK_LOCAL_SIZE), e)],
                      largest[g][e]);
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE; i += LOCAL_SIZE) {
        const uint scale = floatBitsToUint(scale_of_line(line_scales[i]));
        line_scales[i] = scale;
        if (t.first_mn + i < p.copy_ld) U32(t.copy + uint64_t(t.first_mn + i) * 4).x = scale;
    }
}

// SET_GROUP of parts.
void set_parts(const uvec2 at, const uvec4 bits) {
    uint words[IN_PARTS][2];
    [[unroll]] for (uint e = 0; e < SOURCE_GROUP; ++e) {
        const uint parts[IN_PARTS] = split(SOURCE_VALUE(bits[e], line_of(at, e)));
        [[unroll]] for (uint q = 0; q < IN_PARTS; ++q)
            words[q][e / 2] = e % 2 == 0 ? parts[q] : words[q][e / 2] | parts[q] << 16;
    }
    [[unroll]] for (uint q = 0; q < IN_PARTS; ++q)
        [[unroll]] for (uint w = 0; w < 2; ++w) set_word(q, at.x, at.y / 2 + w, words[q][w]);
}

const uint FRAGMENT_MN = PACKS_B != 0 ? FRAGMENT_N : FRAGMENT_M;
const uint ALONG = PACK_TILE / FRAGMENT_MN;  // fragments of a tile along M or N
const uint FRAGMENTS = ALONG * (PACK_TILE / FRAGMENT_K);

uvec4 words_of_a(const uint part, const uint m, const uint k) {
    FRAGMENT_A fragment;
    const uint first = part * TILE_X8;
    if (K_INNER)
        coopMatLoad(fragment, tile, first + m * LINE + k / 8, LINE,
                    gl_CooperativeMatrixLayoutRowMajor);
    else
        coopMatLoad(fragment, tile, first + k * LINE + m / 8, LINE,
                    gl_CooperativeMatrixLayoutColumnMajor);
    uvec4 words;
    [[unroll]] for (uint w = 0; w < 4; ++w) words[a_place(w)] = GET_WORD(fragment, w);
    return words;
}

uvec4 words_of_b(const uint part, const uint n, const uint k) {
    FRAGMENT_B fragment;
    const uint first = part * TILE_X8;
    if (K_INNER)
        coopMatLoad(fragment, tile, first + n * LINE + k / 8, LINE,
                    gl_CooperativeMatrixLayoutColumnMajor);
    else
        coopMatLoad(fragment, tile, first + k * LINE + n / 8, LINE,
                    gl_CooperativeMatrixLayoutRowMajor);
    uvec4 words;
    [[unroll]] for (uint w = 0; w < 4; ++w) words[w] = GET_WORD(fragment, w);
    return words;
}

void fill_tile(const PackTile t) {
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * GROUPS; i += LOCAL_SIZE) {
        const uvec2 at = group_place(i);
        SET_GROUP(at, source_group(t, at));
    }
    barrier();
}

void store_tile(const PackTile t, const uint64_t copy) {
    for (uint i = gl_SubgroupID; i < FRAGMENTS; i += gl_NumSubgroups) {
        const uint mn = i % ALONG * FRAGMENT_MN, k = i / ALONG * FRAGMENT_K;
        if (t.first_k + k >= p.copy_depth) continue;
        const uint divided = GROUPED == GROUPED_ALONG_M ? t.first_mn + mn : t.first_k + k;
        if (GROUPED != GROUPED_NONE && !is_written(divided)) continue;
        const uint64_t fragment = uint64_t((t.first_k + k) / FRAGMENT_K) * (p.copy_ld / FRAGMENT_MN) +
                                  (t.first_mn + mn) / FRAGMENT_MN;
        [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) {
            const uvec4 words = PACKS_B != 0 ? words_of_b(q, mn, k) : words_of_a(q, mn, k);
            const uint64_t lane = (fragment * IN_PARTS + q) * FRAGMENT_LANES + gl_SubgroupInvocationID;
            U32x4(copy + lane * 16).x = words;
        }
    }
}

// PACK, if lines have no scales: packs the tile.
void pack_alone(const PackTile t) {
    if (GROUPED != GROUPED_NONE) find_slots(GROUPED == GROUPED_ALONG_M ? t.first_mn : t.first_k);
    fill_tile(t);
    store_tile(t, t.copy);
}

// PACK, if lines have scales: packs all tiles along K.
void pack_scaled(const PackTile first) {
    find_scales(first);
    PackTile t = first;
    for (t.first_k = 0; t.first_k < p.copy_depth; t.first_k += PACK_TILE) {
        barrier();
        fill_tile(t);
        store_tile(t, t.copy + uint64_t(p.copy_ld) * LINE_SCALE_BYTES);
    }
}

void main() {
    const PackTile t = pack_tile();
    PACK(t);
}
