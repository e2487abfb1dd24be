// Brings a quantised B to the order of lib/quantised.h. B_TYPE: the integers as which codes are multiplied, if they are.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS PackCodesParams
#include "lib/common.glsl"
#include "lib/types.glsl"
#include "lib/inputs/code_source.glsl"

// Bits that packing flips in a code: codes of s8 without zero points are signed (lib/quantised.h).
const uint SIGNED = B_TYPE == TYPE_NONE ? 0 : CODE_ZEROS != ZEROS_NONE ? 0 : 1;
const uint FACTOR = CODE_WIDTH == 8 ? 16 : S8_CODE_FACTOR(CODES, SCALE_TYPE, CODE_ZEROS);
const uint CODE_SIGN = SIGNED == 0 ? 0 : FACTOR == 1 ? 0 : CODE_ZERO(CODES);

uint code_shift(const uint e) {
    const uint apart = B_TYPE != TYPE_NONE ? e % 4 * 8 + e / 4 * 4 : e * 4;
    return CODE_WIDTH == 4 ? apart : e * CODE_WIDTH % 32;
}

void main() {
    const CodeTile t = code_tile();
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * (PACK_TILE / 8); i += LOCAL_SIZE) {
        const uint n = t.first_n + i % PACK_TILE, k = t.first_k + i / PACK_TILE * 8;
        uvec2 words = uvec2(0);
        [[unroll]] for (uint e = 0; e < 8; ++e)
            words[e * CODE_WIDTH / 32] |= (code_at(t, k + e, n) ^ CODE_SIGN) << code_shift(e);
        const uint64_t to = codes_address(t, k) + uint64_t(n) * CODE_WIDTH;
        if (CODE_WIDTH == 4) U32(to).x = words.x;
        else U32x2(to).x = words;
    }
    pack_scales(t);
}
