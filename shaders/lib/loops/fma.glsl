// fma.glsl: multiply-adds without matrices: true f32 arithmetic for every float input type (fma_numbers.glsl), and dot
// products of four s8 (fma_dots.glsl). A and B are staged in shared memory with K as the outer direction, so that an
// invocation reads neighbours along M and N as vectors of four. A *step* is the depth of K that one instruction multiplies.
const bool SPREAD_LINES = false;
#include "staging.glsl"

const uint STEP_K = FMA_STEP(IN_BYTES);
const uint STEPS = TILE_K / STEP_K;
const uint A_STRIDE = FMA_LINE(TILE_M);  // in uvec4
const uint B_STRIDE = FMA_LINE(TILE_N);
const uint B_OFFSET = STEPS * A_STRIDE;
const uint STAGE = FMA_STAGE(TILE_M, TILE_N, TILE_K, IN_BYTES);
const uint SCRATCH = ROW_OP == ROW_OP_NONE ? 1 : FMA_SCRATCH(TILE_M, TILE_N, FRAGMENT_M);
const uint SUM_SCRATCH = SUMS_COLUMNS ? FMA_SUMS(TILE_M, TILE_N, FRAGMENT_M) : 1;
shared uvec4 sh[FOOTPRINT_MAX(FOOTPRINT_MAX(STAGE + STAGED_SCALES_SIZE, SCRATCH), SUM_SCRATCH)];

// An invocation holds X4_M × X4_N blocks of 4 × 4, spread over the tile so that neighbouring
// invocations read neighbouring uvec4s (no bank conflicts) and store neighbouring parts of a row.
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

// The included file supplies
//   TERMS4                      four lines of a step, a vector
//   SUM4                        four sums, as they are added up: an ACC4 but for sums over groups
//   terms_of(uvec4, k_inner)    converts staged words to terms
//   multiply_terms(a, TERMS4 b, sum)
//                               the sum and the products of one line of A and four of B
//   ONE_TERM                    a line of ones
//   store_lines(i, to, stride)  stores a group of the operand that begins at `to`
//   store_pairs(i)              stores a group of a row of B that holds l and r by turns. Their halves stand side by
//                               side, so that an invocation has what belongs together in the same blocks as if they
//                               did in memory.
#ifdef HAS_DOT_PRODUCTS
#include "fma_dots.glsl"
#else
#include "fma_numbers.glsl"
#endif

void store_group(const uint i) {
    if (B_PAIRS != 0 && !is_a(i)) store_pairs(i);
    else store_lines(i, is_a(i) ? 0 : B_OFFSET, is_a(i) ? A_STRIDE : B_STRIDE);
}

#ifdef HAS_SCALED_SUMS
struct Sums {
    SUM4 x4[FRAGMENT_M][X4_N];
};
#else
#define Sums Acc
#endif

void load_terms_of_a(inout TERMS4 a[X4_M], const uvec2 lane, const uint step) {
    [[unroll]] for (uint i = 0; i < X4_M; ++i)
        a[i] = terms_of(sh[step * A_STRIDE + i * LANES_M + lane.x], A_K_INNER);
}

void multiply_step(inout Sums sums, const uvec2 lane, const uint step) {
    TERMS4 a[X4_M], b[X4_N];
    load_terms_of_a(a, lane, step);
    [[unroll]] for (uint j = 0; j < X4_N; ++j)
        b[j] = terms_of(sh[B_OFFSET + step * B_STRIDE + j * LANES_N + lane.y], B_K_INNER);
    [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
        [[unroll]] for (uint j = 0; j < X4_N; ++j)
            sums.x4[i][j] = multiply_terms(a[i / 4][i % 4], b[j], sums.x4[i][j]);
}

// So many steps in a row without a branch. More of them save the loop's overhead. But large fragments and dot products were
// slower with more (bench/NOTES.md).
const uint UNROLLED_STEPS = FRAGMENT_M * FRAGMENT_N > 64 ? 8 : STEP_K > 1 ? 8 : STEPS;

#ifdef HAS_SCALED_SUMS
void set_staged_scale(const uint place, const float value) { sh[STAGE + place / 4][place % 4] = floatBitsToUint(value); }
vec4 staged_scales(const uint at) { return uintBitsToFloat(sh[STAGE + at]); }

// Each sum has at least as many.
const uint SUM_STEPS_AT_ONCE = 4;

void add_terms_of_a(inout SUM4 sums[X4_M], const uvec2 lane, const uint step) {
    TERMS4 a[X4_M];
    load_terms_of_a(a, lane, step);
    [[unroll]] for (uint i = 0; i < X4_M; ++i) sums[i] = multiply_terms(ONE_TERM, a[i], sums[i]);
}

void multiply(inout Acc acc) {
    const uvec2 lane = lane_position();
    const uint steps = SCALED_DEPTH / STEP_K;
    [[dont_unroll]] for (uint s = 0; s < TILE_SUMS; ++s) {
        Sums sums;
        SUM4 sums_of_a[X4_M];
        [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i)
            [[unroll]] for (uint j = 0; j < X4_N; ++j) sums.x4[i][j] = SUM4(0);
        [[unroll]] for (uint i = 0; i < X4_M; ++i) sums_of_a[i] = SUM4(0);
        [[dont_unroll]] for (uint first = s * steps; first < (s + 1) * steps; first += SUM_STEPS_AT_ONCE) {
            [[unroll]] for (uint i = 0; i < SUM_STEPS_AT_ONCE; ++i) {
                multiply_step(sums, lane, first + i);
                if (HAS_MINIMA) add_terms_of_a(sums_of_a, lane, first + i);
            }
        }
        const uint rows_at = s * SCALE_LINE / 4 + lane.x;
        const uint columns_at = (s * SCALE_LINE + SCALED_ROWS) / 4 + lane.y;
        [[unroll]] for (uint i = 0; i < FRAGMENT_M; ++i) {
            const float row_scale = A_GROUP_K == 0 ? 1.0 : staged_scales(rows_at + i / 4 * LANES_M)[i % 4];
            [[unroll]] for (uint j = 0; j < X4_N; ++j) {
                const vec4 scales = staged_scales(columns_at + j * LANES_N);
                acc.x4[i][j] += vec4(sums.x4[i][j]) * row_scale * scales;
                if (HAS_MINIMA)
                    acc.x4[i][j] += float(sums_of_a[i / 4][i % 4]) * row_scale *
                                    staged_scales(columns_at + TILE_N / 4 + j * LANES_N);
            }
        }
    }
}
#else
void multiply(inout Acc acc) {
    const uvec2 lane = lane_position();
    [[dont_unroll]] for (uint first = 0; first < STEPS; first += UNROLLED_STEPS)
        [[unroll]] for (uint i = 0; i < UNROLLED_STEPS; ++i)
            if (STEPS % UNROLLED_STEPS == 0 || first + i < STEPS) multiply_step(acc, lane, first + i);
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
void set_scratch(const uint at, const vec4 value) { sh[at] = floatBitsToUint(value); }
vec4 scratch(const uint at) { return uintBitsToFloat(sh[at]); }

const uint SUMS = VALUE_COLUMNS;
const uint MOST_SUMS = MOST_VALUE_COLUMNS;
const uint SUM_LINES = LANES_M;
bool has_sum(const uint j) { return true; }
uint sum_line(const uint j) { return lane_position().x; }
