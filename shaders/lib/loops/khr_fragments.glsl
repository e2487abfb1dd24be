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

// `stage`: where the stage begins in sh; `k`: in the stage.
void load_fragments(inout Fragments f, const uint stage, const uint k) {
    const uvec2 at = subgroup_position() * uvec2(SUBGROUP_M, SUBGROUP_N);
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
        const uint m = at.x + i * FRAGMENT_M;
        if (A_K_INNER)
            coopMatLoad(f.a[i], sh, stage + m * A_STRIDE + k / GROUP, A_STRIDE,
                        gl_CooperativeMatrixLayoutRowMajor);
        else
            coopMatLoad(f.a[i], sh, stage + k * A_STRIDE + m / GROUP, A_STRIDE,
                        gl_CooperativeMatrixLayoutColumnMajor);
    }
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
        const uint n = at.y + j * FRAGMENT_N;
        if (B_K_INNER)
            coopMatLoad(f.b[j], sh, stage + B_OFFSET + n * B_STRIDE + k / GROUP, B_STRIDE,
                        gl_CooperativeMatrixLayoutColumnMajor);
        else
            coopMatLoad(f.b[j], sh, stage + B_OFFSET + k * B_STRIDE + n / GROUP, B_STRIDE,
                        gl_CooperativeMatrixLayoutRowMajor);
    }
}

#include "khr_slices.glsl"
