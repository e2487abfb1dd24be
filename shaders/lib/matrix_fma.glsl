// The matrix contract on plain multiply-adds, true f32 arithmetic for every input type. A and B are
// staged in shared memory as f32 with K as the outer direction, so that an invocation reads
// neighbours along M and N as vec4.
const bool SPREAD_LINES = false;
#include "stage.glsl"

const uint A_STRIDE = (TILE_M + FMA_STAGE_PAD) / 4;  // in vec4
const uint B_STRIDE = (TILE_N + FMA_STAGE_PAD) / 4;
const uint B_OFFSET = TILE_K * A_STRIDE;
shared vec4 sh[B_OFFSET + TILE_K * B_STRIDE];

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

void store_group(const uint i) {
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

void multiply(inout Acc acc) {
    const uvec2 lane = lane_position();
    [[unroll]] for (uint k = 0; k < TILE_K; ++k) {
        vec4 a[QUADS_M], b[QUADS_N];
        [[unroll]] for (uint i = 0; i < QUADS_M; ++i) a[i] = sh[k * A_STRIDE + i * LANES_M + lane.x];
        [[unroll]] for (uint j = 0; j < QUADS_N; ++j)
            b[j] = sh[B_OFFSET + k * B_STRIDE + j * LANES_N + lane.y];
        [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
            [[unroll]] for (uint j = 0; j < QUADS_N; ++j)
                acc.quad[i][j] = fma(vec4(a[i / 4][i % 4]), b[j], acc.quad[i][j]);
    }
}

#include "main_loop.glsl"

void mma_tile(inout Acc acc, const Tile t) { mma_tile_one_stage(acc, t); }

void store_tile(const Acc acc, const Tile t) {
    const uvec2 lane = lane_position();
    [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
        [[unroll]] for (uint j = 0; j < QUADS_N; ++j)
            epilogue_store4(t, t.row + (i / 4 * LANES_M + lane.x) * 4 + i % 4,
                            t.col + (j * LANES_N + lane.y) * 4, acc.quad[i][j]);
}
