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

float load_row_scale(const Tile t, const uint m, const uint k) {
    const uint64_t first = uint64_t(tile_row(t, m)) * row_scale_count();
    return F32(t.row_scales + (first + k / CODE_DIVISOR(A_GROUP_K)) * 4).x;
}

// Four neighbouring columns of a packed matrix from n on, a multiple of 4. Lines have whole runs of columns, and matrices
// begin at multiples of 256 bytes, so that they are loaded as vectors.
void load_piece_codes(inout uvec4 words[PIECE_N], const uint64_t b, const uint k, const uint n) {
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        const uint64_t at = codes_address(b, k + h * 8, n);
        const uvec4 first = U32x4(at).x;
        uvec4 last = uvec4(0);
        if (CODE_WIDTH == 8) last = U32x4(at + 16).x;
        [[unroll]] for (uint j = 0; j < PIECE_N; ++j) {
            const uvec4 pair = j < 2 ? first : last;
            words[j][2 * h] = CODE_WIDTH == 4 ? first[j] : pair[j % 2 * 2];
            words[j][2 * h + 1] = CODE_WIDTH == 4 ? 0 : pair[j % 2 * 2 + 1];
        }
    }
}

// Their entries, as load_entry() returns them.
void load_piece_entries(inout uvec2 entries[PIECE_N], const uint64_t b, const uint k, const uint n) {
    const uint g = CODE_GROUP_K == 0 ? 0 : within_block(k) / CODE_DIVISOR(CODE_GROUP_K);
    const uint64_t block = code_block(b, k), at = block + entry_offset(g, size_ldb(), n);
    uvec4 first = uvec4(0), last = uvec4(0), levels = uvec4(0);
    if (TWO_LEVELS) {
        // Entries of two groups share a word.
        levels = U32x4(block + uint64_t(n) * 4).x;
        first = U32x4(at - g % 2 * ENTRY_BYTES).x >> g % 2 * 16;
    } else if (ENTRY_BYTES == 2) {
        first.xy = U32x2(at).x;
    } else {
        first = U32x4(at).x;
        if (ENTRY_BYTES == 8) last = U32x4(at + 16).x;
    }
    [[unroll]] for (uint j = 0; j < PIECE_N; ++j) {
        const uvec4 pair = j < 2 ? first : last;
        if (TWO_LEVELS) entries[j] = uvec2(levels[j], first[j] & 0xffffu);
        else if (ENTRY_BYTES == 2) entries[j] = uvec2(first[j / 2] >> j % 2 * 16 & 0xffffu, 0);
        else if (ENTRY_BYTES == 8) entries[j] = uvec2(pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
        else if (SCALE_BYTES == 4) entries[j] = uvec2(first[j], 0);
        else entries[j] = uvec2(first[j] & 0xffffu, first[j] >> 16);
    }
}

void multiply_groups(inout Acc acc, const Tile t, const uint k, const uint n, const uvec4 a[TILE_M]) {
    uvec4 b[PIECE_N];
    uvec2 entries[PIECE_N];
    float row_scales[TILE_M];
    const uint column = min(n, size_ldb() - PIECE_N);
    load_piece_codes(b, t.b, k, column);
    load_piece_entries(entries, t.b, k, column);
    [[unroll]] for (uint m = 0; m < TILE_M; ++m)
        row_scales[m] = A_GROUP_K == 0 ? 1.0 : load_row_scale(t, m, k);
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
