// skinny.glsl: multiply-adds for few rows of A, where what counts is reading B once,
// as fast as may be. An invocation reads its own pieces of B, 8 × 8 elements, and what it needs of
// A straight into registers. Nothing is staged, so nobody waits for anybody, and all lines of a
// piece are on their way at once. Invocations that share columns add up their sums at the end, in
// order of K.
#define OWN_STORE_TILE
#include "../inputs/codes.glsl"
#include "../inputs/converted.glsl"
#include "../epilogue/column_sums.glsl"

const uint PIECE = SKINNY_PIECE;
const uint LANES_N = TILE_N / PIECE;
const uint LANES_K = TILE_K / PIECE;
const uint GROUPS = PIECE / GROUP;  // of a line of a piece

const bool A_K_INNER = A_COL_MAJOR == 0;
const bool B_K_INNER = B_COL_MAJOR != 0;

// The sums of one row of the tile: SKINNY_SUMS of them, but in two dimensions. In one the whole
// kernel took 1.13 times as long at 1x12288x4096 (H200, driver 580.159.04, 2026-11-23).
shared vec4 sums[LANES_K][TILE_N / 4];

struct Acc {
    vec4 row[TILE_M][PIECE / 4];
};

void acc_clear(inout Acc acc) {
    [[unroll]] for (uint m = 0; m < TILE_M; ++m)
        [[unroll]] for (uint x = 0; x < PIECE / 4; ++x) acc.row[m][x] = vec4(0.0);
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

float load_a(const Tile t, uint m, uint k) {
    const uint row = tile_row(t, m);
    const uint64_t at = A_K_INNER ? a_at(t, row, k) : a_at(t, k, row);
    return A_CONVERTED ? load_converted1(at, A_TYPE) : load1(at, IN_TYPE);
}
uvec4 load_a_group(const Tile t, uint m, uint k) {
    const uint64_t at = a_at(t, tile_row(t, m), k);
    return A_CONVERTED ? load_converted(at, A_TYPE, true, GROUP) : U32x4(at).x;
}
float load_b(const Tile t, uint k, uint n) {
    const uint col = min(n, b_columns() - 1);
    if (QUANTISED) return group_element(quantised_group(t.b, k - k % 8, col), k % 8);
    const uint64_t at = B_K_INNER ? b_at(t, col, k) : b_at(t, k, col);
    return B_CONVERTED ? load_converted1(at, B_TYPE) : load1(at, IN_TYPE);
}
uvec4 load_b_group(const Tile t, uint outer, uint inner) {
    const uint64_t at = b_at(t, outer, inner);
    return B_CONVERTED ? load_converted(at, B_TYPE, true, GROUP) : U32x4(at).x;
}

// Element (k, n) of a piece of B, of which [line][group] was loaded.
float piece_element(const uvec4 piece[PIECE][GROUPS], const uint k, const uint n) {
    const uint line = B_K_INNER ? n : k, e = B_K_INNER ? k : n;
    return group_element(piece[line][e / GROUP], e % GROUP);
}

void add_products(inout Acc acc, const uint m, const float a, const vec4 b[PIECE / 4]) {
    [[unroll]] for (uint x = 0; x < PIECE / 4; ++x)
        acc.row[m][x] = fma(vec4(a), b[x], acc.row[m][x]);
}

// k to k + 7, all of which exist. Columns past the edge repeat others: they are never stored.
void multiply_piece(inout Acc acc, const Tile t, uint k, uint n) {
    uvec4 piece[PIECE][GROUPS], a[TILE_M][GROUPS];
    const uint width = B_PADDED != 0 ? size_ldb() : b_columns();  // that can be read
    if (QUANTISED) {
        [[unroll]] for (uint line = 0; line < PIECE; ++line)
            piece[line][0] = quantised_group(t.b, k, min(n, width - PIECE) + line);
    } else if (B_VECTOR != 0) {
        [[unroll]] for (uint line = 0; line < PIECE; ++line)
            [[unroll]] for (uint g = 0; g < GROUPS; ++g) {
                const uint outer = B_K_INNER ? min(n + line, b_columns() - 1) : k + line;
                const uint inner = B_K_INNER ? k + g * GROUP : min(n + g * GROUP, width - GROUP);
                piece[line][g] = load_b_group(t, outer, inner);
            }
    }
    if (A_K_INNER && A_VECTOR != 0) {
        [[unroll]] for (uint m = 0; m < TILE_M; ++m)
            [[unroll]] for (uint g = 0; g < GROUPS; ++g) a[m][g] = load_a_group(t, m, k + g * GROUP);
    }
    [[unroll]] for (uint i = 0; i < PIECE; ++i) {
        vec4 b[PIECE / 4];
        [[unroll]] for (uint j = 0; j < PIECE; ++j)
            b[j / 4][j % 4] =
                B_VECTOR != 0 ? piece_element(piece, i, j) : load_b(t, k + i, n + j);
        [[unroll]] for (uint m = 0; m < TILE_M; ++m)
            add_products(acc, m,
                         A_K_INNER && A_VECTOR != 0 ? group_element(a[m][i / GROUP], i % GROUP)
                                                    : load_a(t, m, k + i),
                         b);
    }
}

void mma_tile(inout Acc acc, const Tile whole) {
    const uvec2 lane = lane_position();
    const bool right = B_HALVES != 0 && lane.y * PIECE >= HALF_N;
    Tile t = whole;
    t.b += right ? p.b_right : 0;
    const uint n = b_column(t.col) + lane.y * PIECE - (right ? HALF_N : 0);
    if (GATHER != 0)
        [[unroll]] for (uint m = 0; m < TILE_M; ++m)
            found_rows[m] = row_of_a(min(t.row + m, t.row_end - 1));
    const uint steps = (t.k_end - t.k_begin) / TILE_K;
    uint k = t.k_begin + lane.x * PIECE;
    [[dont_unroll]] for (uint step = 0; step < steps; ++step, k += TILE_K)
        multiply_piece(acc, t, k, n);
    if (K_TAIL == 0) return;
    const uint end = min(k + PIECE, t.k_end);
    [[dont_unroll]] for (; k < end; ++k) {
        vec4 b[PIECE / 4];
        [[unroll]] for (uint j = 0; j < PIECE; ++j) b[j / 4][j % 4] = load_b(t, k, n + j);
        [[unroll]] for (uint m = 0; m < TILE_M; ++m) add_products(acc, m, load_a(t, m, k), b);
    }
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
        [[unroll]] for (uint x = 0; x < PIECE / 4; ++x)
            sums[lane.x][lane.y * (PIECE / 4) + x] = acc.row[m][x];
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
