// Brings a quantised B to the order in which the direct loop holds it (lib/quantised.h,
// lib/inputs/code_fragments.glsl). Which elements an invocation has, the driver alone knows: so the codes are
// loaded as a matrix of numbers, which both input types hold exactly.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#define PARAMS PackCodesParams
#include "lib/common.glsl"
#include "lib/types.glsl"
#include "lib/input_contract.glsl"
#include "lib/inputs/code_source.glsl"
#include "lib/inputs/fragment_words.glsl"
#include "lib/inputs/code_fragments.glsl"

// The tile, column by column.
const uint LINE = KHR_LINE(PACK_TILE, IN_SIZE);
shared uvec4 tile[PACK_TILE * LINE];

const uint ALONG = PACK_TILE / FRAGMENT_N;  // fragments of a tile

void main() {
    const CodeTile t = code_tile();
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * (PACK_TILE / 2); i += LOCAL_SIZE) {
        const uint n = i % PACK_TILE, pair = i / PACK_TILE, k = t.first_k + 2 * pair;
        const vec2 numbers = vec2(code_at(t, k, t.first_n + n), code_at(t, k + 1, t.first_n + n));
        const uint place = word_place(pair);
        tile[n * LINE + place / 4][place % 4] = bits_of(WORD(numbers));
    }
    barrier();
    for (uint i = gl_SubgroupID; i < ALONG * (PACK_TILE / UNIT_DEPTH); i += gl_NumSubgroups) {
        const uint n = i % ALONG * FRAGMENT_N, k = i / ALONG * UNIT_DEPTH;
        uvec4 words = uvec4(0);
        [[unroll]] for (uint s = 0; s < UNIT_STEPS; ++s) {
            FRAGMENT_B fragment;
            coopMatLoad(fragment, tile, n * LINE + (k + s * FRAGMENT_K) / GROUP, LINE,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint w = 0; w < 4; ++w) {
                const uint low = uint(float(fragment[2 * w]));
                const uint high = uint(float(fragment[2 * w + 1]));
                words[pair_word(s, w)] |= (low | high << 16) << pair_shift(w);
            }
        }
        const uint place = (t.first_n + n) / FRAGMENT_N * FRAGMENT_LANES + gl_SubgroupInvocationID;
        U32x4(codes_address(t, t.first_k + k) + uint64_t(place) * 16).x = words;
    }
    pack_scales(t);
}
