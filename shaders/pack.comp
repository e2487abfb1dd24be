// Copies an operand to 16-bit elements. K is the copy's outer direction, rows begin at multiples of 16 bytes,
// and zeros fill what was not there: src/kernels/parts/pack.hpp. A workgroup copies PACK_TILE ×
// PACK_TILE elements; workgroup y is a matrix of the batch. A_COL_MAJOR: K is the outer direction
// of the source, too.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS PackParams
#include "lib/common.glsl"
#include "lib/types.glsl"
#include "lib/input_contract.glsl"
#include "lib/inputs/pack_group.glsl"

const uint GROUPS = PACK_TILE / GROUP;          // of a row of a tile
shared uint pairs[PACK_TILE][PACK_LINE_WORDS];  // [k][m / 2]

uint left(const uint size, const uint begin) { return begin < size ? size - begin : 0; }

void main() {
    const PackTile t = pack_tile();

    if (A_COL_MAJOR == 0) {
        // Groups along K of two neighbours along M, taken apart and put together the other way.
        for (uint i = gl_LocalInvocationIndex; i < PACK_TILE / 2 * GROUPS; i += LOCAL_SIZE) {
            const uint pair = i / GROUPS, k = i % GROUPS * GROUP;
            uvec4 line[2];
            [[unroll]] for (uint l = 0; l < 2; ++l) {
                const uint m = t.first_mn + 2 * pair + l;
                line[l] = load_source(t, m, t.first_k + k,
                                      m < p.width ? left(p.depth, t.first_k + k) : 0);
            }
            [[unroll]] for (uint e = 0; e < GROUP; ++e) {
                const uint low = line[0][e / 2] >> (e % 2 * 16);
                const uint high = line[1][e / 2] >> (e % 2 * 16);
                pairs[k + e][pair] = (low & 0xffffu) | high << 16;
            }
        }
        barrier();
    }
    for (uint i = gl_LocalInvocationIndex; i < PACK_TILE * GROUPS; i += LOCAL_SIZE) {
        const uint line = i / GROUPS, column = i % GROUPS * GROUP;
        const uint k = t.first_k + line, m = t.first_mn + column;
        if (k >= p.copy_depth || m >= p.copy_ld) continue;
        uvec4 data;
        if (A_COL_MAJOR == 0) {
            [[unroll]] for (uint w = 0; w < 4; ++w) data[w] = pairs[line][column / 2 + w];
        } else {
            data = load_source(t, k, m, k < p.depth ? left(p.width, m) : 0);
        }
        U32x4(t.copy + (uint64_t(k) * p.copy_ld + m) * 2).x = data;
    }
}
