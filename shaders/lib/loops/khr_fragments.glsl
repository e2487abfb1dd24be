// khr_fragments.glsl: the main loops on VK_KHR_cooperative_matrix: subgroup-scope matrices, A and B
// staged in shared memory as they lie in global memory (transposes are a flag of the fragment
// load). A loop says how deep its stages are (STAGE_DEPTH) and how large all of them (STAGES_SIZE).
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
const bool SPREAD_LINES = true;
#include "staging.glsl"

// Distances are units of 16 bytes: shared memory is declared, and fragments are loaded, as uvec4,
// which NVIDIA's compiler turns into LDSM (27 % faster than 16-bit elements).
const uint A_STRIDE = KHR_LINE(A_K_INNER ? STAGE_DEPTH : TILE_M, IN_SIZE);
const uint B_STRIDE = KHR_LINE(B_K_INNER ? STAGE_DEPTH : TILE_N, IN_SIZE);
const uint B_OFFSET = KHR_OPERAND(A_K_INNER, TILE_M, STAGE_DEPTH, IN_SIZE);
shared uvec4 sh[FOOTPRINT_MAX(STAGES_SIZE, KHR_SLICE(TILE_M, TILE_N, SUBTILES))];

// A subgroup's part of the tile, and the fragments that it holds.
const uint SUBGROUP_M = TILE_M / SUBGROUPS_M;
const uint SUBGROUP_N = TILE_N / SUBGROUPS_N;
const uint ROWS = SUBGROUP_M / FRAGMENT_M;
const uint COLS = SUBGROUP_N / FRAGMENT_N;

#define ACC_FRAGMENT \
    coopmat<ACC_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_N, gl_MatrixUseAccumulator>
#define EACH_FRAGMENT(i, j) \
    [[unroll]] for (uint i = 0; i < ROWS; ++i) [[unroll]] for (uint j = 0; j < COLS; ++j)

struct Acc {
    ACC_FRAGMENT fragment[ROWS][COLS];
};

void acc_clear(out Acc acc) {
    EACH_FRAGMENT(i, j) acc.fragment[i][j] = ACC_FRAGMENT(0.0);
}

uvec2 subgroup_position() {
    return uvec2(gl_SubgroupID / SUBGROUPS_N, gl_SubgroupID % SUBGROUPS_N);
}

// The operands that a subgroup multiplies at once, FRAGMENT_K deep.
struct Fragments {
    coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA> a[ROWS];
    coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB> b[COLS];
};

// `stage`: where the stage begins in sh; `k`: in the stage.
void load_fragments(out Fragments f, const uint stage, const uint k) {
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

void multiply(inout Acc acc, const Fragments f) {
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        [[unroll]] for (uint i = 0; i < ROWS; ++i)
            acc.fragment[i][j] = coopMatMulAdd(f.a[i], f.b[j], acc.fragment[i][j]);
}

#include "khr_slices.glsl"
