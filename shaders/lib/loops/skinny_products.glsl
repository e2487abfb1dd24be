// skinny_products.glsl: pieces of 8 × 8 elements for main loop skinny, which are multiplied in f32.
const uint GROUPS = PIECE_K / GROUP;  // of a line of a piece

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
float piece_element(const uvec4 piece[PIECE_K][GROUPS], const uint k, const uint n) {
    const uint line = B_K_INNER ? n : k, e = B_K_INNER ? k : n;
    return group_element(piece[line][e / GROUP], e % GROUP);
}

void add_products(inout Acc acc, const uint m, const float a, const vec4 b[PIECE_N / 4]) {
    [[unroll]] for (uint x = 0; x < PIECE_N / 4; ++x)
        acc.row[m][x] = fma(vec4(a), b[x], acc.row[m][x]);
}

void multiply_piece(inout Acc acc, const Tile t, uint k, uint n) {
    uvec4 piece[PIECE_K][GROUPS], a[TILE_M][GROUPS];
    const uint width = B_PADDED != 0 ? size_ldb() : b_columns();  // that can be read
    if (QUANTISED) {
        [[unroll]] for (uint line = 0; line < PIECE_K; ++line)
            piece[line][0] = quantised_group(t.b, k, min(n, width - PIECE_N) + line);
    } else if (B_VECTOR != 0) {
        [[unroll]] for (uint line = 0; line < PIECE_K; ++line)
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
    [[unroll]] for (uint i = 0; i < PIECE_K; ++i) {
        vec4 b[PIECE_N / 4];
        [[unroll]] for (uint j = 0; j < PIECE_N; ++j)
            b[j / 4][j % 4] =
                B_VECTOR != 0 ? piece_element(piece, i, j) : load_b(t, k + i, n + j);
        [[unroll]] for (uint m = 0; m < TILE_M; ++m)
            add_products(acc, m,
                         A_K_INNER && A_VECTOR != 0 ? group_element(a[m][i / GROUP], i % GROUP)
                                                    : load_a(t, m, k + i),
                         b);
    }
}

void multiply_tail(inout Acc acc, const Tile t, uint k, const uint end, const uint n) {
    [[dont_unroll]] for (; k < end; ++k) {
        vec4 b[PIECE_N / 4];
        [[unroll]] for (uint j = 0; j < PIECE_N; ++j) b[j / 4][j % 4] = load_b(t, k, n + j);
        [[unroll]] for (uint m = 0; m < TILE_M; ++m) add_products(acc, m, load_a(t, m, k), b);
    }
}
