// The matrix contract on VK_KHR_cooperative_matrix: subgroup-scope matrices, A and B staged in
// shared memory as they lie in global memory (transposes are a flag of the fragment load).
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
const bool SPREAD_LINES = true;
#include "stage.glsl"

// A slab stands in shared memory as a whole, or its two halves in two of the three stages of a ring
// (main_loop_ring.glsl).
const uint STAGE_DEPTH = STAGES == 1 ? TILE_K : TILE_K / 2;

// Rows of the staged operands in units of 16 bytes: shared memory is declared, and fragments are
// loaded, as uvec4, which NVIDIA's compiler turns into LDSM (27 % faster than 16-bit elements).
const uint A_STRIDE = ((A_K_INNER ? STAGE_DEPTH : TILE_M) + KHR_STAGE_PAD) / GROUP;
const uint B_STRIDE = ((B_K_INNER ? STAGE_DEPTH : TILE_N) + KHR_STAGE_PAD) / GROUP;
const uint B_OFFSET = (A_K_INNER ? TILE_M : STAGE_DEPTH) * A_STRIDE;
const uint STAGE_SIZE = B_OFFSET + (B_K_INNER ? TILE_N : STAGE_DEPTH) * B_STRIDE +
                        (STAGES == 1 ? 0 : KHR_RING_PAD / GROUP);

// The epilogue reuses the memory for slices of TILE_M / SUBTILES rows of f32 accumulators.
const uint SLICE_ROWS = TILE_M / SUBTILES;
const uint SLICE_STRIDE = (TILE_N + KHR_EPILOGUE_PAD) / 4;
const uint SLICE_SIZE = SLICE_ROWS * SLICE_STRIDE;
shared uvec4 sh[STAGES * STAGE_SIZE > SLICE_SIZE ? STAGES * STAGE_SIZE : SLICE_SIZE];

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

// Writes a group of stage_data, the lower half of the slab's depth to stage `low` (its offset in
// sh), the upper half to `high`.
void store_group(const uint i, const uint low, const uint high) {
    const uint line = group_line(i), column = group_column(i);
    const uint k = k_inner(i) ? column : line;
    const uint stage = STAGES == 1 || k < STAGE_DEPTH ? low : high;
    const uint at = (k_inner(i) ? line : line % STAGE_DEPTH) * (is_a(i) ? A_STRIDE : B_STRIDE) +
                    (k_inner(i) ? column % STAGE_DEPTH : column) / GROUP;
    sh[stage + (is_a(i) ? 0 : B_OFFSET) + at] = stage_data[i];
}
void store_group(const uint i) { store_group(i, 0, 0); }

// What a subgroup multiplies at once, FRAGMENT_K deep.
struct Fragments {
    coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA> a[ROWS];
    coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB> b[COLS];
};

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

void multiply(inout Acc acc) {
    [[unroll]] for (uint k = 0; k < TILE_K; k += FRAGMENT_K) {
        Fragments f;
        load_fragments(f, 0, k);
        multiply(acc, f);
    }
}

#include "main_loop.glsl"
#include "main_loop_ring.glsl"

void mma_tile(inout Acc acc, const Tile t) {
    if (STAGES == 1) mma_tile_one_stage(acc, t);
    else mma_tile_ring(acc, t);
}

// Four neighbours of a row of D are a quad; which one of a slice, from its number.
const uint QUADS_PER_ROW = TILE_COLUMNS / 4;
const uint SLICE_QUADS = SLICE_ROWS * QUADS_PER_ROW;
const uint SLICE_FRAGMENTS = ROWS / SUBTILES;
const uint SLICE_SUBGROUP_ROWS = SLICE_FRAGMENTS * FRAGMENT_M;  // of one subgroup
uvec2 quad_position(const Tile t, const uint slice, uint quad) {
    const uint line = quad / QUADS_PER_ROW;
    const uint row = line / SLICE_SUBGROUP_ROWS * SUBGROUP_M + slice * SLICE_SUBGROUP_ROWS +
                     line % SLICE_SUBGROUP_ROWS;
    return uvec2(t.row + row, t.col + quad % QUADS_PER_ROW * 4);
}

// All quads of an invocation have the same columns, and so the same bias along N, where rows divide
// evenly over the workgroup.
const bool SAME_COLUMNS = LOCAL_SIZE % QUADS_PER_ROW == 0;
const uint BIAS_OF_COLUMNS = SAME_COLUMNS ? BIAS_ALONG_N : BIAS_NONE;

// An invocation loads C of so many quads before it computes the first one: what a loop over single
// quads costs is the latency of these loads (H200, driver 580.159.04, residual of 8192x8192: 3.36
// instead of 3.50 ms). The array has a fixed size, because arrays whose size chooses between
// specialization constants are left in memory there.
const uint SLICE_TURNS = (SLICE_QUADS + LOCAL_SIZE - 1) / LOCAL_SIZE;
const uint MOST_AT_ONCE = SLICE_TURNS < KHR_EPILOGUE_LOADS ? SLICE_TURNS : KHR_EPILOGUE_LOADS;
const uint QUADS_AT_ONCE = C_VECTOR == 0 ? 1 : PEEL == 0 ? 1 : MOST_AT_ONCE;

// The quads of a slice that stands in shared memory, of a gated product. No C, so nothing to load.
void store_gated_slice(const Tile t, const uint slice, Pair4 bias) {
    for (uint quad = gl_LocalInvocationIndex; quad < SLICE_QUADS; quad += LOCAL_SIZE) {
        const uvec2 d = quad_position(t, slice, quad);
        const uint line = quad / QUADS_PER_ROW * SLICE_STRIDE, at = quad % QUADS_PER_ROW;
        const vec4 one = uintBitsToFloat(sh[line + (B_PAIRS != 0 ? 2 * at : at)]);
        const vec4 other =
            uintBitsToFloat(sh[line + (B_PAIRS != 0 ? 2 * at + 1 : at + HALF_N / 4)]);
        if (BIAS != BIAS_OF_COLUMNS) bias = tile_gated_bias4(t, d.x, d.y);
        tile_gated_store4(t, d.x, d.y, B_PAIRS != 0 ? paired(one, other) : Pair4(one, other), bias);
    }
}

// Copies a slice of the accumulators to shared memory. Between barriers.
void put_slice(const Acc acc, const uint slice) {
    const uvec2 at = subgroup_position();
    EACH_FRAGMENT(i, j) {
        if (i / SLICE_FRAGMENTS == slice)
            coopMatStore(acc.fragment[i][j], sh,
                         (at.x * SLICE_SUBGROUP_ROWS + i % SLICE_FRAGMENTS * FRAGMENT_M) *
                                 SLICE_STRIDE +
                             (at.y * SUBGROUP_N + j * FRAGMENT_N) / 4,
                         SLICE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    }
}

// Fragments hide the coordinates of their elements, so the epilogue runs on a copy in shared
// memory. A slice takes an equal number of fragment rows from every subgroup, which keeps all of
// them busy, and holds whole rows of the tile, so that global accesses are as wide as the tile.
// Slices share their code, which takes longer to compile than all the rest (H200, driver
// 580.159.04: 0.8 instead of 1.2 s).
void store_tile(const Acc acc, const Tile t) {
    const uint column = quad_position(t, 0, gl_LocalInvocationIndex).y;
    vec4 bias = vec4(0.0);
    Pair4 gated_bias = Pair4(bias, bias);
    if (BIAS == BIAS_OF_COLUMNS) {
        if (GATED) gated_bias = tile_gated_bias4(t, t.row, column);
        else bias = tile_bias4(t, t.row, column);
    }
    [[dont_unroll]] for (uint slice = 0; slice < SUBTILES; ++slice) {
        barrier();
        put_slice(acc, slice);
        barrier();
        if (GATED) {
            store_gated_slice(t, slice, gated_bias);
            continue;
        }
        for (uint first = gl_LocalInvocationIndex; first < SLICE_QUADS;
             first += LOCAL_SIZE * QUADS_AT_ONCE) {
            vec4 c[KHR_EPILOGUE_LOADS];
            [[unroll]] for (uint i = 0; i < QUADS_AT_ONCE; ++i) {
                // The first one once more instead of none: no branch around a load.
                const uint next = first + i * LOCAL_SIZE, quad = next < SLICE_QUADS ? next : first;
                const uvec2 d = quad_position(t, slice, quad);
                c[i] = tile_c4(t, d.x, d.y);
            }
            [[unroll]] for (uint i = 0; i < QUADS_AT_ONCE; ++i) {
                const uint quad = first + i * LOCAL_SIZE;
                const bool exists =
                    SLICE_QUADS % (LOCAL_SIZE * QUADS_AT_ONCE) == 0 || quad < SLICE_QUADS;
                if (exists) {
                    const uvec2 d = quad_position(t, slice, quad);
                    const uint from = quad / QUADS_PER_ROW * SLICE_STRIDE + quad % QUADS_PER_ROW;
                    if (BIAS != BIAS_OF_COLUMNS) bias = tile_bias4(t, d.x, d.y);
                    tile_store4(t, d.x, d.y, uintBitsToFloat(sh[from]), c[i], bias);
                }
            }
        }
    }
}
