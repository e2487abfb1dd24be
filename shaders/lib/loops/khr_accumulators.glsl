// khr_accumulators.glsl: what all loops on VK_KHR_cooperative_matrix share: subgroup-scope matrices,
// the part of the tile that a subgroup computes, its accumulators and their products.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require

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

void acc_clear(inout Acc acc) {
    EACH_FRAGMENT(i, j) acc.fragment[i][j] = ACC_FRAGMENT(ACC_SCALAR(0));
}

// Where this subgroup's part stands in the tile, and which part of K it takes (SUBGROUPS_K).
const uint SUBGROUPS_MN = SUBGROUPS_M * SUBGROUPS_N;
uvec2 subgroup_position() {
    const uint id = SUBGROUPS_K == 1 ? gl_SubgroupID : gl_SubgroupID % SUBGROUPS_MN;
    return uvec2(id / SUBGROUPS_N, id % SUBGROUPS_N);
}
uint subgroup_k() { return SUBGROUPS_K == 1 ? 0 : gl_SubgroupID / SUBGROUPS_MN; }

// The operands that a subgroup multiplies at once, FRAGMENT_K deep.
#define FRAGMENT_OF_A coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA>
#define FRAGMENT_OF_B coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB>
struct Fragments {
    FRAGMENT_OF_A a[ROWS * IN_PARTS];
    FRAGMENT_OF_B b[COLS * IN_PARTS];
};

#ifndef HAS_SCALED_SUMS
void multiply(inout Acc acc, const Fragments f) {
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        [[unroll]] for (uint i = 0; i < ROWS; ++i)
            acc.fragment[i][j] = coopMatMulAdd(f.a[i], f.b[j], acc.fragment[i][j]);
}
#endif
