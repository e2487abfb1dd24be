// The matrix contract on VK_KHR_cooperative_matrix: subgroup-scope matrices, A and B staged in
// shared memory as they lie in global memory (transposes are a flag of the fragment load).
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#include "stage.glsl"

// Rows of the staged slabs in units of 16 bytes: shared memory is declared, and fragments are
// loaded, as uvec4, which NVIDIA's compiler turns into LDSM (27 % faster than 16-bit elements).
const uint A_STRIDE = (A_INNER + KHR_STAGE_PAD) / GROUP;
const uint B_STRIDE = (B_INNER + KHR_STAGE_PAD) / GROUP;
const uint B_OFFSET = A_OUTER * A_STRIDE;
const uint STAGE_SIZE = B_OFFSET + B_OUTER * B_STRIDE;

// The epilogue reuses the memory for slices of TILE_M / SUBTILES rows of f32 accumulators.
const uint SLICE_ROWS = TILE_M / SUBTILES;
const uint SLICE_STRIDE = (TILE_N + KHR_EPILOGUE_PAD) / 4;
const uint SLICE_SIZE = SLICE_ROWS * SLICE_STRIDE;
shared uvec4 sh[STAGE_SIZE > SLICE_SIZE ? STAGE_SIZE : SLICE_SIZE];

// A subgroup's part of the tile, and the fragments that it holds.
const uint SUBGROUP_M = TILE_M / SUBGROUPS_M;
const uint SUBGROUP_N = TILE_N / SUBGROUPS_N;
const uint ROWS = SUBGROUP_M / FRAGMENT_M;
const uint COLS = SUBGROUP_N / FRAGMENT_N;

#define ACC_FRAGMENT \
    coopmat<float, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_N, gl_MatrixUseAccumulator>
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

void store_group(const uint i) {
    const uint at = is_a(i) ? group_line(i) * A_STRIDE : B_OFFSET + group_line(i) * B_STRIDE;
    sh[at + group_column(i) / GROUP] = stage_data[i];
}

void multiply(inout Acc acc) {
    const uvec2 at = subgroup_position() * uvec2(SUBGROUP_M, SUBGROUP_N);
    [[unroll]] for (uint k = 0; k < TILE_K; k += FRAGMENT_K) {
        coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA> a[ROWS];
        coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB> b[COLS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
            const uint m = at.x + i * FRAGMENT_M;
            if (A_K_INNER)
                coopMatLoad(a[i], sh, m * A_STRIDE + k / GROUP, A_STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
            else
                coopMatLoad(a[i], sh, k * A_STRIDE + m / GROUP, A_STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
        }
        [[unroll]] for (uint j = 0; j < COLS; ++j) {
            const uint n = at.y + j * FRAGMENT_N;
            if (B_K_INNER)
                coopMatLoad(b[j], sh, B_OFFSET + n * B_STRIDE + k / GROUP, B_STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
            else
                coopMatLoad(b[j], sh, B_OFFSET + k * B_STRIDE + n / GROUP, B_STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint j = 0; j < COLS; ++j)
            [[unroll]] for (uint i = 0; i < ROWS; ++i)
                acc.fragment[i][j] = coopMatMulAdd(a[i], b[j], acc.fragment[i][j]);
    }
}

#include "main_loop.glsl"

// Fragments hide the coordinates of their elements, so the epilogue runs on a copy in shared
// memory. A slice takes an equal number of fragment rows from every subgroup, which keeps all of
// them busy, and holds whole rows of the tile, so that global accesses are as wide as the tile.
void store_tile(const Acc acc, const Tile t) {
    const uint slice_fragments = ROWS / SUBTILES;
    const uint subgroup_rows = slice_fragments * FRAGMENT_M;  // of one subgroup in one slice
    const uint quads_per_row = TILE_N / 4;
    const uvec2 at = subgroup_position();
    [[unroll]] for (uint slice = 0; slice < SUBTILES; ++slice) {
        barrier();
        [[unroll]] for (uint i = 0; i < slice_fragments; ++i)
            [[unroll]] for (uint j = 0; j < COLS; ++j)
                coopMatStore(acc.fragment[slice * slice_fragments + i][j], sh,
                             (at.x * subgroup_rows + i * FRAGMENT_M) * SLICE_STRIDE +
                                 (at.y * SUBGROUP_N + j * FRAGMENT_N) / 4,
                             SLICE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint q = gl_LocalInvocationIndex; q < SLICE_ROWS * quads_per_row; q += LOCAL_SIZE) {
            const uint line = q / quads_per_row, quad = q % quads_per_row;
            const uint row = line / subgroup_rows * SUBGROUP_M + slice * subgroup_rows +
                             line % subgroup_rows;
            epilogue_store4(t, t.row + row, t.col + quad * 4,
                            uintBitsToFloat(sh[line * SLICE_STRIDE + quad]));
        }
    }
}
