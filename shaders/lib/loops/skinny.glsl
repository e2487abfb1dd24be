// skinny.glsl: few rows of A, for which the loop reads B once, as fast as possible. An invocation reads pieces of B of its
// own and the elements of A that these pieces need, without shared memory or barriers. All lines of a piece are in flight
// at once. Invocations that share columns add up their sums at the end, in order of K.
#define OWN_STORE_TILE
#include "../inputs/codes.glsl"
#include "../inputs/converted.glsl"
#include "../epilogue/column_sums.glsl"

// Columns and depth of a piece.
const uint PIECE_N = SKINNY_PIECE_N(IN_BYTES);
const uint PIECE_K = SKINNY_PIECE_K(IN_BYTES);
const uint LANES_N = TILE_N / PIECE_N;
const uint LANES_K = TILE_K / PIECE_K;

const bool A_K_INNER = A_COL_MAJOR == 0;
const bool B_K_INNER = B_COL_MAJOR != 0;

// The sums of one row of the tile: SKINNY_SUMS of them, but in two dimensions. In one the whole
// kernel took 1.13 times as long at 1x12288x4096 (H200, driver 580.159.04, 2026-11-23).
shared vec4 sums[LANES_K][TILE_N / 4];

struct Acc {
    vec4 row[TILE_M][PIECE_N / 4];
};

void acc_clear(inout Acc acc) {
    [[unroll]] for (uint m = 0; m < TILE_M; ++m)
        [[unroll]] for (uint x = 0; x < PIECE_N / 4; ++x) acc.row[m][x] = vec4(0.0);
}

// x along K, y along N; neighbours read neighbouring memory.
uvec2 lane_position() {
    const uint i = gl_LocalInvocationIndex;
    return B_K_INNER && !QUANTISED ? uvec2(i % LANES_K, i / LANES_K)
                                   : uvec2(i / LANES_N, i % LANES_N);
}

uint64_t a_at(const Tile t, uint outer, uint inner) {
    return t.a + (uint64_t(outer) * size_lda() + inner) * A_SIZE;
}
uint64_t b_at(const Tile t, uint outer, uint inner) {
    return t.b + (uint64_t(outer) * size_ldb() + inner) * B_SIZE;
}

// The tile's rows of A, where they are found by index.
uint found_rows[TILE_M];
uint tile_row(const Tile t, const uint m) {
    return GATHER != 0 ? found_rows[m] : min(t.row + m, t.row_end - 1);
}

// The included file supplies
//   multiply_piece(inout Acc, Tile, k, n)       adds the products of a piece, all of which exists along K
//   multiply_tail(inout Acc, Tile, k, end, n)   adds those of a piece that ends before `end`
// Columns past the edge repeat others: they are never stored.
#ifdef HAS_DOT_PRODUCTS
#include "skinny_sums.glsl"
#else
#include "skinny_products.glsl"
#endif

void mma_tile(inout Acc acc, const Tile whole) {
    const uvec2 lane = lane_position();
    const bool right = B_HALVES != 0 && lane.y * PIECE_N >= HALF_N;
    Tile t = whole;
    t.b += right ? p.b_right : 0;
    const uint n = b_column(t.col) + lane.y * PIECE_N - (right ? HALF_N : 0);
    if (GATHER != 0)
        [[unroll]] for (uint m = 0; m < TILE_M; ++m)
            found_rows[m] = row_of_a(min(t.row + m, t.row_end - 1));
    const uint steps = (t.k_end - t.k_begin) / TILE_K;
    uint k = t.k_begin + lane.x * PIECE_K;
    [[dont_unroll]] for (uint step = 0; step < steps; ++step, k += TILE_K)
        multiply_piece(acc, t, k, n);
    if (K_TAIL != 0 && k < t.k_end) multiply_tail(acc, t, k, min(k + PIECE_K, t.k_end), n);
}

// An x4 of a row of the tile, of all invocations that share its columns.
vec4 total(const uint x4) {
    vec4 sum = sums[0][x4];
    for (uint i = 1; i < LANES_K; ++i) sum += sums[i][x4];
    return sum;
}

AccPair4 total_pair(const uint x4) {
    const vec4 one = total(B_PAIRS != 0 ? 2 * x4 : x4);
    const vec4 other = total(B_PAIRS != 0 ? 2 * x4 + 1 : x4 + HALF_N / 4);
    return B_PAIRS != 0 ? paired(one, other) : AccPair4(one, other);
}

// x4s of the tile's columns that an invocation stores: at most two, as LOCAL_SIZE is TILE_N · TILE_K / 64.
const uint MOST_OWN_X4 = 2;

void store_tile(const Acc acc, const Tile t) {
    const uvec2 lane = lane_position();
    vec4 column_sums[MOST_OWN_X4];
    if (SUMS_COLUMNS) {
        summed = vec4(0.0);
        [[unroll]] for (uint j = 0; j < MOST_OWN_X4; ++j) column_sums[j] = vec4(0.0);
    }
    [[unroll]] for (uint m = 0; m < TILE_M; ++m) {
        barrier();
        [[unroll]] for (uint x = 0; x < PIECE_N / 4; ++x)
            sums[lane.x][lane.y * (PIECE_N / 4) + x] = acc.row[m][x];
        barrier();
        for (uint x4 = gl_LocalInvocationIndex; x4 < TILE_COLUMNS / 4; x4 += LOCAL_SIZE) {
            const uint row = t.row + m, col = t.col + x4 * 4;
            AccPair4 sums = AccPair4(ACC4(0), ACC4(0));
            if (GATED) sums = total_pair(x4);
            else sums.l = total(x4);
            tile_store4(t, row, col, sums, tile_c4(t, row, col), tile_bias4(t, row, col));
            if (!SUMS_COLUMNS) continue;
            [[unroll]] for (uint j = 0; j < MOST_OWN_X4; ++j) {
                precise const vec4 sum = column_sums[j] + summed;
                if (j == x4 / LOCAL_SIZE) column_sums[j] = sum;
            }
            summed = vec4(0.0);
        }
    }
    if (!SUMS_COLUMNS) return;
    [[unroll]] for (uint j = 0; j < MOST_OWN_X4; ++j) {
        const uint x4 = gl_LocalInvocationIndex + j * LOCAL_SIZE;
        if (x4 < TILE_COLUMNS / 4) store_column_sum4(t, x4, column_sums[j]);
    }
}
