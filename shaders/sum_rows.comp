// Rows of D, each the sum of rows of a product, its terms, which may have weights:
//   D[i] = w[i · terms] · v[row of term 0] + w[i · terms + 1] · v[row of term 1] + …
// from left to right, by multiply-adds. A term that no row has is left out. grouped.comp stores the rows of
// terms (SCATTER_TERMS). A workgroup computes SUM_ROWS_LOCAL_SIZE x4s of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS SumRowsParams
#include "lib/common.glsl"
#include "lib/elements.glsl"
#include "lib/epilogue/store_d.glsl"

void main() {
    const uint pieces = (size_n() + 4 * LOCAL_SIZE - 1) / (4 * LOCAL_SIZE);
    const uint id = first_tile() + gl_WorkGroupID.x;
    const uint row = id / pieces;
    const uint col = (id % pieces * LOCAL_SIZE + gl_LocalInvocationIndex) * 4;
    if (col >= size_n()) return;
    const uint64_t first_term = uint64_t(row) * p.terms;
    // A CPU's driver loads weights even if there are none, so their address must be valid.
    const bool has_weights = p.row_weights != 0;
    const uint64_t given_weights = has_weights ? p.row_weights : p.partial;
    vec4 sum = vec4(0.0);
    [[dont_unroll]] for (uint first = 0; first < p.terms; first += SUM_ROWS_UNROLL) {
        uint rows[SUM_ROWS_UNROLL];
        float weights[SUM_ROWS_UNROLL];
        vec4 values[SUM_ROWS_UNROLL];
        // Loads the first term, or row 0, in place of a missing one: no branch around a load.
        [[unroll]] for (uint i = 0; i < SUM_ROWS_UNROLL; ++i) {
            const uint64_t at = (first_term + (first + i < p.terms ? first + i : 0)) * 4;
            rows[i] = U32(p.partial + at).x;
            const float weight = F32(given_weights + at).x;
            weights[i] = has_weights ? weight : 1.0;
        }
        [[unroll]] for (uint i = 0; i < SUM_ROWS_UNROLL; ++i) {
            const uint from = rows[i] != NO_ROW ? rows[i] : 0;
            values[i] = F32x4(element(p.values, TYPE_F32, from, p.values_ld, col)).x;
        }
        [[unroll]] for (uint i = 0; i < SUM_ROWS_UNROLL; ++i)
            if (first + i < p.terms && rows[i] != NO_ROW)
                sum = fma(vec4(weights[i]), values[i], sum);
    }
    store_d4(p.d, row, col, sum);
}
