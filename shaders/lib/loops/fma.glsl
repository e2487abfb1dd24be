// fma.glsl: plain multiply-adds, true f32 arithmetic for every float input type, and integer arithmetic
// for s8. A and B are staged in shared memory as numbers of that arithmetic, with K as the outer direction,
// so that an invocation reads neighbours along M and N as vectors of four.
const bool SPREAD_LINES = false;
#include "staging.glsl"

const uint A_STRIDE = FMA_LINE(TILE_M);  // in vec4
const uint B_STRIDE = FMA_LINE(TILE_N);
const uint B_OFFSET = TILE_K * A_STRIDE;
const uint STAGE = FMA_STAGE(TILE_M, TILE_N, TILE_K);
const uint SCRATCH = ROW_OP == ROW_OP_NONE ? 1 : FMA_SCRATCH(TILE_M, TILE_N, FRAGMENT_M);
const uint SUM_SCRATCH = SUMS_COLUMNS ? FMA_SUMS(TILE_M, TILE_N, FRAGMENT_M) : 1;
shared ACC4 sh[FOOTPRINT_MAX(FOOTPRINT_MAX(STAGE + STAGED_SCALES_SIZE, SCRATCH), SUM_SCRATCH)];

// An invocation holds X4_M × X4_N blocks of 4 × 4, spread over the tile so that neighbouring
// invocations read neighbouring vec4s (no bank conflicts) and store neighbouring parts of a row.
const uint X4_M = FRAGMENT_M / 4;
const uint X4_N = FRAGMENT_N / 4;
const uint LANES_M = TILE_M / FRAGMENT_M;
const uint LANES_N = TILE_N / FRAGMENT_N;

struct Acc {
    ACC4 x4[FRAGMENT_M][X4_N];
};

void acc_clear(inout Acc acc) {
    [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
        [[unroll]] for (uint j = 0; j < X4_N; ++j) acc.x4[i][j] = ACC4(0);
}

uvec2 lane_position() {
    return uvec2(gl_LocalInvocationIndex / LANES_N, gl_LocalInvocationIndex % LANES_N);
}

// A group of a row of B that holds l and r by turns: their halves stand side by side here, so that
// an invocation has what belongs together in the same blocks as if they did in memory.
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
                ACC4(group_element(stage_data[i], e), group_element(stage_data[i], e + 1),
                     group_element(stage_data[i], e + 2), group_element(stage_data[i], e + 3));
    }
}

// So many steps of K in a row without a branch. More would be faster by the loop's overhead, and
// with large fragments slower by what the code takes in the instruction cache, and to compile
// (H200, driver 580.159.04, 128x128x16 with 16x8: 0.5 instead of 0.9 s, 61 instead of 97 us at
// 512x512x512).
const uint UNROLLED_K = FRAGMENT_M * FRAGMENT_N > 64 ? 8 : TILE_K;

void multiply_step(inout Acc acc, const uvec2 lane, const uint k) {
    ACC4 a[X4_M], b[X4_N];
    [[unroll]] for (uint i = 0; i < X4_M; ++i) a[i] = sh[k * A_STRIDE + i * LANES_M + lane.x];
    [[unroll]] for (uint j = 0; j < X4_N; ++j)
        b[j] = sh[B_OFFSET + k * B_STRIDE + j * LANES_N + lane.y];
    [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
        [[unroll]] for (uint j = 0; j < X4_N; ++j)
            acc.x4[i][j] = multiply_add(ACC4(a[i / 4][i % 4]), b[j], acc.x4[i][j]);
}

#ifdef HAS_SCALED_SUMS
void set_staged_scale(const uint place, const float value) { sh[STAGE + place / 4][place % 4] = value; }

// Sums of s8 are exact in f32: they are below 2^24.
void multiply(inout Acc acc) {
    const uvec2 lane = lane_position();
    [[dont_unroll]] for (uint s = 0; s < TILE_SUMS; ++s) {
        Acc sum;
        acc_clear(sum);
        ACC4 sums_of_a[X4_M];
        [[unroll]] for (uint i = 0; i < X4_M; ++i) sums_of_a[i] = ACC4(0);
        [[dont_unroll]] for (uint k = s * SCALED_DEPTH; k < (s + 1) * SCALED_DEPTH; ++k) {
            multiply_step(sum, lane, k);
            if (HAS_MINIMA)
                [[unroll]] for (uint i = 0; i < X4_M; ++i) sums_of_a[i] += sh[k * A_STRIDE + i * LANES_M + lane.x];
        }
        const uint rows_at = STAGE + s * SCALE_LINE / 4 + lane.x;
        const uint columns_at = STAGE + (s * SCALE_LINE + SCALED_ROWS) / 4 + lane.y;
        [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i) {
            const float row_scale = A_GROUP_K == 0 ? 1.0 : sh[rows_at + i / 4 * LANES_M][i % 4];
            [[unroll]] for (uint j = 0; j < X4_N; ++j) {
                const ACC4 scales = sh[columns_at + j * LANES_N];
                acc.x4[i][j] += sum.x4[i][j] * row_scale * scales;
                if (HAS_MINIMA)
                    acc.x4[i][j] +=
                        sums_of_a[i / 4][i % 4] * row_scale * sh[columns_at + TILE_N / 4 + j * LANES_N];
            }
        }
    }
}
#else
void multiply(inout Acc acc) {
    const uvec2 lane = lane_position();
    [[dont_unroll]] for (uint first = 0; first < TILE_K; first += UNROLLED_K)
        [[unroll]] for (uint k = 0; k < UNROLLED_K; ++k)
            if (TILE_K % UNROLLED_K == 0 || first + k < TILE_K)
                multiply_step(acc, lane, first + k);
}
#endif

#include "one_stage.glsl"

// Slices are blocks of four rows of every invocation. With a gate half of an invocation's x4s are
// of l, half of r, in the same columns.
const uint VALUE_SLICES = X4_M;
const uint VALUE_ROWS = 4 * LANES_M;
const uint VALUE_COLUMNS = GATED ? X4_N / 2 : X4_N;
const uint SLICE_VALUES = 4 * VALUE_COLUMNS;
const uint MOST_SLICE_VALUES = 4 * X4_N;

bool has_value(const uint i) { return true; }

uvec2 value_place(const uint i) {
    const uvec2 lane = lane_position();
    return uvec2(lane.x * 4 + i / VALUE_COLUMNS, i % VALUE_COLUMNS * LANES_N + lane.y);
}

uint value_row(const uint slice, const uint row) { return slice * VALUE_ROWS + row; }

void begin_slice(const Acc acc, const uint slice) {}

// A choice instead of an index: the accumulators stay in registers.
ACC4 slice_x4(const Acc acc, const uint slice, const uint line, const uint column) {
    ACC4 v = acc.x4[line][column];
    [[unroll]] for (uint i = 1; i < VALUE_SLICES; ++i)
        v = i == slice ? acc.x4[4 * i + line][column] : v;
    return v;
}

ACC4 slice_value(const Acc acc, const uint slice, const uint i) {
    return slice_x4(acc, slice, i / X4_N, i % X4_N);
}

AccPair4 slice_pair(const Acc acc, const uint slice, const uint i) {
    const uint line = i / VALUE_COLUMNS, column = i % VALUE_COLUMNS;
    return AccPair4(slice_x4(acc, slice, line, column),
                    slice_x4(acc, slice, line, column + VALUE_COLUMNS));
}

// Slices share the code of their epilogue, which is long; values are registers.
#define EACH_SLICE(slice) [[dont_unroll]] for (uint slice = 0; slice < VALUE_SLICES; ++slice)
#define EACH_BATCH(first) [[unroll]] for (uint first = 0; first < SLICE_VALUES; ++first)
#define MOST_BATCH 1
const uint BATCH = 1;

const bool KEEPS_BIAS = true;
const uint MOST_VALUE_COLUMNS = X4_N;
uint value_column(const uint i) { return i % VALUE_COLUMNS; }

// The memory of the k-tiles is the scratch memory, too.
const uint VALUE_STRIDE = FMA_SCRATCH_LINE(TILE_N);
void begin_scratch() { barrier(); }
void set_scratch(const uint at, const vec4 value) { sh[at] = acc_of_bits(floatBitsToUint(value)); }
vec4 scratch(const uint at) { return uintBitsToFloat(bits_of_acc(sh[at])); }

const uint SUMS = VALUE_COLUMNS;
const uint MOST_SUMS = MOST_VALUE_COLUMNS;
const uint SUM_LINES = LANES_M;
bool has_sum(const uint j) { return true; }
uint sum_line(const uint j) { return lane_position().x; }
