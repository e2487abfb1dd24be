// Copies an operand into the order in which the direct loop holds it (lib/fragment_words.glsl), with
// zeros where there was nothing. A workgroup copies PACK_TILE × PACK_TILE elements; workgroup y is a
// matrix of the batch. A_COL_MAJOR: K is the outer direction of the source. PACKS_B: it is B. GROUPED:
// by slots of groups.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#define PARAMS PackParams
#include "lib/common.glsl"
#include "lib/types.glsl"
#include "lib/pack_group.glsl"
#include "lib/fragment_words.glsl"
#include "lib/pack_slots.glsl"

const bool K_INNER = A_COL_MAJOR == 0;
const uint GROUPS = PACK_TILE / GROUP;  // of a line of a tile
// The tile as it lies in the source, by x8s: eight elements, of which fragments are multiples.
#if IN_BYTES == 1
#define X8 uvec2
#else
#define X8 uvec4
#endif
const uint X8_WORDS = 2 * IN_BYTES;
const uint LINE = PACK_TILE / 8 + 1;
shared X8 tile[PACK_TILE * LINE];

void set_group(const uint line, const uint column, const uvec4 words) {
    const uint at = line * LINE + column / 8;
#if IN_BYTES == 1
    tile[at] = words.xy;
    tile[at + 1] = words.zw;
#else
    tile[at] = words;
#endif
}

const uint FRAGMENT_MN = PACKS_B != 0 ? FRAGMENT_N : FRAGMENT_M;
const uint ALONG = PACK_TILE / FRAGMENT_MN;  // fragments of a tile along M or N
const uint FRAGMENTS = ALONG * (PACK_TILE / FRAGMENT_K);

uvec4 words_of_a(const uint m, const uint k) {
    FRAGMENT_A fragment;
    if (K_INNER)
        coopMatLoad(fragment, tile, m * LINE + k / 8, LINE, gl_CooperativeMatrixLayoutRowMajor);
    else
        coopMatLoad(fragment, tile, k * LINE + m / 8, LINE,
                    gl_CooperativeMatrixLayoutColumnMajor);
    uvec4 words;
    [[unroll]] for (uint w = 0; w < 4; ++w) words[a_place(w)] = GET_WORD(fragment, w);
    return words;
}

uvec4 words_of_b(const uint n, const uint k) {
    FRAGMENT_B fragment;
    if (K_INNER)
        coopMatLoad(fragment, tile, n * LINE + k / 8, LINE,
                    gl_CooperativeMatrixLayoutColumnMajor);
    else
        coopMatLoad(fragment, tile, k * LINE + n / 8, LINE, gl_CooperativeMatrixLayoutRowMajor);
    uvec4 words;
    [[unroll]] for (uint w = 0; w < 4; ++w) words[w] = GET_WORD(fragment, w);
    return words;
}

void main() {
    const PackTile t = pack_tile();

    if (GROUPED != GROUPED_NONE) find_slots(GROUPED == GROUPED_ALONG_M ? t.first_mn : t.first_k);
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * GROUPS; i += LOCAL_SIZE) {
        const uint line = i / GROUPS, column = i % GROUPS * GROUP;
        const uvec2 mn =
            place_in_source(GROUPED_ALONG_M, t.first_mn + (K_INNER ? line : column), p.width);
        const uvec2 k =
            place_in_source(GROUPED_ALONG_K, t.first_k + (K_INNER ? column : line), p.depth);
        const uvec2 outer = K_INNER ? mn : k, inner = K_INNER ? k : mn;
        const bool exists = outer.x < outer.y && inner.x < inner.y;
        const uvec4 words = load_source(t, outer.x, inner.x, exists ? inner.y - inner.x : 0);
        if (K_INNER && INTERLEAVE_K != 0) {
            [[unroll]] for (uint w = 0; w < 4; ++w) {
                const uint place = word_place(column / WORD_ELEMENTS + w);
                tile[line * LINE + place / X8_WORDS][place % X8_WORDS] = words[w];
            }
        } else {
            const uint place = K_INNER ? line
                                       : word_place(line / WORD_ELEMENTS) * WORD_ELEMENTS +
                                             line % WORD_ELEMENTS;
            set_group(place, column, words);
        }
    }
    barrier();
    for (uint i = gl_SubgroupID; i < FRAGMENTS; i += gl_NumSubgroups) {
        const uint mn = i % ALONG * FRAGMENT_MN, k = i / ALONG * FRAGMENT_K;
        if (t.first_k + k >= p.copy_depth) continue;
        const uint divided = GROUPED == GROUPED_ALONG_M ? t.first_mn + mn : t.first_k + k;
        if (GROUPED != GROUPED_NONE && !is_written(divided)) continue;
        const uvec4 words = PACKS_B != 0 ? words_of_b(mn, k) : words_of_a(mn, k);
        const uint64_t fragment = uint64_t((t.first_k + k) / FRAGMENT_K) * (p.copy_ld / FRAGMENT_MN) +
                                  (t.first_mn + mn) / FRAGMENT_MN;
        U32x4(t.copy + (fragment * FRAGMENT_LANES + gl_SubgroupInvocationID) * 16).x = words;
    }
}
