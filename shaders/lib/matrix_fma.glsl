// The matrix contract on plain multiply-adds, true f32 arithmetic for every input type. A and B are
// staged in shared memory as f32 with K as the outer direction, so that an invocation reads
// neighbours along M and N as vec4.
const bool SPREAD_LINES = false;
#include "stage.glsl"

const uint A_STRIDE = (TILE_M + FMA_STAGE_PAD) / 4;  // in vec4
const uint B_STRIDE = (TILE_N + FMA_STAGE_PAD) / 4;
const uint B_OFFSET = TILE_K * A_STRIDE;
const uint STAGE_SIZE = B_OFFSET + TILE_K * B_STRIDE;
// Row reductions reuse the memory for four rows of every invocation, a quad's state in each place.
const uint VALUE_STRIDE = TILE_N / 4 + 1;
const uint ROWS_SIZE = ROW_OP == ROW_OP_NONE ? 1 : 4 * (TILE_M / FRAGMENT_M) * VALUE_STRIDE;
shared vec4 sh[STAGE_SIZE > ROWS_SIZE ? STAGE_SIZE : ROWS_SIZE];

// An invocation holds QUADS_M × QUADS_N blocks of 4 × 4, spread over the tile so that neighbouring
// invocations read neighbouring vec4s (no bank conflicts) and store neighbouring parts of a row.
const uint QUADS_M = FRAGMENT_M / 4;
const uint QUADS_N = FRAGMENT_N / 4;
const uint LANES_M = TILE_M / FRAGMENT_M;
const uint LANES_N = TILE_N / FRAGMENT_N;

struct Acc {
    vec4 quad[FRAGMENT_M][QUADS_N];
};

void acc_clear(out Acc acc) {
    [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
        [[unroll]] for (uint j = 0; j < QUADS_N; ++j) acc.quad[i][j] = vec4(0.0);
}

uvec2 lane_position() {
    return uvec2(gl_LocalInvocationIndex / LANES_N, gl_LocalInvocationIndex % LANES_N);
}

// A group of a row of B that holds l and r by turns: their halves stand side by side here, so that an
// invocation has what belongs together in the same blocks as if they did in memory.
void store_pairs(const uint i) {
    const uint at = B_OFFSET + group_line(i) * B_STRIDE, column = group_column(i) / 2;
    [[unroll]] for (uint e = 0; e < GROUP; ++e) {
        const uint to = column + e / 2 + e % 2 * HALF_N;
        sh[at + to / 4][to % 4] = group_element(stage_data[i], e);
    }
}

void store_group(const uint i) {
    if (B_PAIRS != 0 && !is_a(i)) {
        store_pairs(i);
        return;
    }
    const uint stride = is_a(i) ? A_STRIDE : B_STRIDE;
    const uint offset = is_a(i) ? 0 : B_OFFSET;
    const uint line = group_line(i), column = group_column(i);
    if (k_inner(i)) {
        [[unroll]] for (uint e = 0; e < GROUP; ++e)
            sh[offset + (column + e) * stride + line / 4][line % 4] =
                group_element(stage_data[i], e);
    } else {
        [[unroll]] for (uint e = 0; e < GROUP; e += 4)
            sh[offset + line * stride + (column + e) / 4] =
                vec4(group_element(stage_data[i], e), group_element(stage_data[i], e + 1),
                     group_element(stage_data[i], e + 2), group_element(stage_data[i], e + 3));
    }
}

// So many steps of K in a row without a branch. More would be faster by the loop's overhead, and
// with large fragments slower by what the code takes in the instruction cache, and to compile (H200,
// driver 580.159.04, 128x128x16 with 16x8: 0.5 instead of 0.9 s, 61 instead of 97 us at 512x512x512).
const uint UNROLLED_K = FRAGMENT_M * FRAGMENT_N > 64 ? 8 : TILE_K;

void multiply_step(inout Acc acc, const uvec2 lane, const uint k) {
    vec4 a[QUADS_M], b[QUADS_N];
    [[unroll]] for (uint i = 0; i < QUADS_M; ++i) a[i] = sh[k * A_STRIDE + i * LANES_M + lane.x];
    [[unroll]] for (uint j = 0; j < QUADS_N; ++j)
        b[j] = sh[B_OFFSET + k * B_STRIDE + j * LANES_N + lane.y];
    [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
        [[unroll]] for (uint j = 0; j < QUADS_N; ++j)
            acc.quad[i][j] = fma(vec4(a[i / 4][i % 4]), b[j], acc.quad[i][j]);
}

void multiply(inout Acc acc) {
    const uvec2 lane = lane_position();
    [[dont_unroll]] for (uint first = 0; first < TILE_K; first += UNROLLED_K)
        [[unroll]] for (uint k = 0; k < UNROLLED_K; ++k)
            if (TILE_K % UNROLLED_K == 0 || first + k < TILE_K)
                multiply_step(acc, lane, first + k);
}

#include "main_loop.glsl"

void mma_tile(inout Acc acc, const Tile t) { mma_tile_one_stage(acc, t); }

// Half of an invocation's blocks are of l, half of r, in the same columns.
void store_gated(const Acc acc, const Tile t) {
    const uvec2 lane = lane_position();
    Pair4 bias[QUADS_N];  // one would be enough for two, but for a tile that is never gated
    [[unroll]] for (uint j = 0; j < QUADS_N / 2; ++j)
        if (BIAS == BIAS_ALONG_N)
            bias[j] = tile_gated_bias4(t, t.row, t.col + (j * LANES_N + lane.y) * 4);
    [[dont_unroll]] for (uint block = 0; block < QUADS_M; ++block)
        [[unroll]] for (uint line = 0; line < 4; ++line)
            [[unroll]] for (uint j = 0; j < QUADS_N / 2; ++j) {
                Pair4 sum = Pair4(acc.quad[line][j], acc.quad[line][j + QUADS_N / 2]);
                [[unroll]] for (uint i = 1; i < QUADS_M; ++i) {
                    sum.l = i == block ? acc.quad[4 * i + line][j] : sum.l;
                    sum.r = i == block ? acc.quad[4 * i + line][j + QUADS_N / 2] : sum.r;
                }
                const uint row = t.row + (block * LANES_M + lane.x) * 4 + line;
                const uint col = t.col + (j * LANES_N + lane.y) * 4;
                tile_gated_store4(t, row, col, sum,
                                  BIAS == BIAS_ALONG_N ? bias[j] : tile_gated_bias4(t, row, col));
            }
}

// Blocks of four rows share the code of their epilogue, which is long.
void store_tile(const Acc acc, const Tile t) {
    if (GATED) {
        store_gated(acc, t);
        return;
    }
    const uvec2 lane = lane_position();
    vec4 bias[QUADS_N];
    [[unroll]] for (uint j = 0; j < QUADS_N; ++j)
        bias[j] = BIAS == BIAS_ALONG_N
            ? tile_bias4(t, t.row, t.col + (j * LANES_N + lane.y) * 4)
            : vec4(0.0);
    [[dont_unroll]] for (uint block = 0; block < QUADS_M; ++block)
        [[unroll]] for (uint line = 0; line < 4; ++line)
            [[unroll]] for (uint j = 0; j < QUADS_N; ++j) {
                vec4 sum = acc.quad[line][j];
                [[unroll]] for (uint i = 1; i < QUADS_M; ++i)
                    sum = i == block ? acc.quad[4 * i + line][j] : sum;
                const uint row = t.row + (block * LANES_M + lane.x) * 4 + line;
                const uint col = t.col + (j * LANES_N + lane.y) * 4;
                tile_store4(t, row, col, sum, tile_c4(t, row, col),
                                BIAS == BIAS_ALONG_N ? bias[j] : tile_bias4(t, row, col));
            }
}
