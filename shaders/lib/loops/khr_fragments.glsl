// khr_fragments.glsl: the main loops on VK_KHR_cooperative_matrix that stage A and B in shared memory
// as they lie in global memory (transposes are a flag of the fragment load). A loop says how deep
// its stages are (STAGE_DEPTH) and how large all of them (STAGES_SIZE).
const bool SPREAD_LINES = true;
#include "khr_accumulators.glsl"
#include "staging.glsl"

// Distances are units of 16 bytes: shared memory is declared, and fragments are loaded, as uvec4,
// which NVIDIA's compiler turns into LDSM (27 % faster than 16-bit elements).
const uint A_STRIDE = KHR_LINE(A_K_INNER ? STAGE_DEPTH : TILE_M, IN_SIZE);
const uint B_STRIDE = KHR_LINE(B_K_INNER ? STAGE_DEPTH : TILE_N, IN_SIZE);
const uint B_OFFSET = KHR_OPERAND(A_K_INNER, TILE_M, STAGE_DEPTH, IN_SIZE);
shared uvec4 sh[FOOTPRINT_MAX(STAGES_SIZE, KHR_SLICE(TILE_M, TILE_N, SUBTILES))];

// Fragments of the subgroup, row `i` of A and column `j` of B. `stage`: where the stage begins in sh; `k`: in the stage.
void load_a_fragment(inout FRAGMENT_OF_A a, const uint i, const uint stage, const uint k) {
    const uint m = subgroup_position().x * SUBGROUP_M + i * FRAGMENT_M;
    if (A_K_INNER)
        coopMatLoad(a, sh, stage + m * A_STRIDE + k / GROUP, A_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    else
        coopMatLoad(a, sh, stage + k * A_STRIDE + m / GROUP, A_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
}
void load_b_fragment(inout FRAGMENT_OF_B b, const uint j, const uint stage, const uint k) {
    const uint n = subgroup_position().y * SUBGROUP_N + j * FRAGMENT_N;
    if (B_K_INNER)
        coopMatLoad(b, sh, stage + B_OFFSET + n * B_STRIDE + k / GROUP, B_STRIDE,
                    gl_CooperativeMatrixLayoutColumnMajor);
    else
        coopMatLoad(b, sh, stage + B_OFFSET + k * B_STRIDE + n / GROUP, B_STRIDE,
                    gl_CooperativeMatrixLayoutRowMajor);
}
void load_fragments(inout Fragments f, const uint stage, const uint k) {
    [[unroll]] for (uint i = 0; i < ROWS; ++i) load_a_fragment(f.a[i], i, stage, k);
    [[unroll]] for (uint j = 0; j < COLS; ++j) load_b_fragment(f.b[j], j, stage, k);
}

#include "khr_slices.glsl"
