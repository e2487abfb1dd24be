// skinny_sums.glsl: pieces of four columns, 16 deep, for main loop skinny: s8 A and s8 codes. The sum over a piece is exact,
// in s32. Scales multiply it, and accumulators add these products in f32 (scaled_sums.glsl).
#extension GL_EXT_integer_dot_product : require

int dot_products(const uvec4 a, const uvec4 b) {
    int sum = 0;
    [[unroll]] for (uint w = 0; w < 4; ++w) sum += dotPacked4x8EXT(int(a[w]), int(b[w]));
    return sum;
}

// The elements of A, of which the first `valid` exist. The others are 0.
uvec4 load_a_piece(const Tile t, const uint m, const uint k, const uint valid) {
    const uint row = tile_row(t, m);
    uvec4 words = uvec4(0);
    [[unroll]] for (uint e = 0; e < PIECE_K; ++e) {
        const uint at = k + min(e, valid - 1);
        words[e / 4] |= load_bits(A_K_INNER ? a_at(t, row, at) : a_at(t, at, row)) << e % 4 * 8;
    }
    return keep_elements(words, valid);
}

void multiply_groups(inout Acc acc, const Tile t, const uint k, const uint n, const uvec4 a[TILE_M]) {
    uvec4 b[PIECE_N];
    uvec2 entries[PIECE_N];
    float row_scales[TILE_M];
    [[unroll]] for (uint j = 0; j < PIECE_N; ++j) {
        const uint column = min(n + j, b_columns() - 1);
        b[j] = code_words(codes_address(t.b, k, column));
        entries[j] = load_entry(t.b, k, column);
    }
    [[unroll]] for (uint m = 0; m < TILE_M; ++m)
        row_scales[m] = A_GROUP_K == 0 ? 1.0 : F32(row_scale_at(t, tile_row(t, m), k)).x;
    vec4 scales, minima;
    [[unroll]] for (uint j = 0; j < PIECE_N; ++j) {
        b[j] = unscaled_group(b[j], entries[j].y);
        const vec2 factors = column_scales(entries[j]);
        scales[j] = factors.x;
        minima[j] = factors.y;
    }
    [[unroll]] for (uint m = 0; m < TILE_M; ++m) {
        vec4 sums;
        [[unroll]] for (uint j = 0; j < PIECE_N; ++j) sums[j] = float(dot_products(a[m], b[j]));
        acc.row[m][0] += sums * row_scales[m] * scales;
        if (HAS_MINIMA) acc.row[m][0] += float(dot_products(a[m], uvec4(0x01010101u))) * row_scales[m] * minima;
    }
}

void multiply_piece(inout Acc acc, const Tile t, const uint k, const uint n) {
    uvec4 a[TILE_M];
    [[unroll]] for (uint m = 0; m < TILE_M; ++m) {
        if (A_K_INNER && A_VECTOR != 0) a[m] = U32x4(a_at(t, tile_row(t, m), k)).x;
        else a[m] = load_a_piece(t, m, k, PIECE_K);
    }
    multiply_groups(acc, t, k, n, a);
}

void multiply_tail(inout Acc acc, const Tile t, const uint k, const uint end, const uint n) {
    uvec4 a[TILE_M];
    [[unroll]] for (uint m = 0; m < TILE_M; ++m) a[m] = load_a_piece(t, m, k, end - k);
    multiply_groups(acc, t, k, n, a);
}
