// store_d.glsl: how D is stored. An x4 is four neighbours of a row, of which the first is in a
// column that is a multiple of 4.

// Stores the bits of an x4 of a 32-bit D.
void store_bits4(uint64_t d, uint row, uint col, uvec4 bits) {
    const bool col_major = D_COL_MAJOR != 0;
    const uint64_t at = element(d, D_TYPE, col_major, row, p.ldd, col);
    if (D_VECTOR != 0) {
        U32x4(at).x = bits;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (col + e < size_n()) U32(at + e * row_step(D_TYPE, col_major, p.ldd)).x = bits[e];
}

// The zero point is added to rounded numbers; the cast then bounds the sums.
vec4 with_zero_point4(vec4 v) {
    if (ZERO_POINT != 0)
        [[unroll]] for (uint e = 0; e < 4; ++e)
            v[e] = (is_nan(v[e]) ? 0.0 : roundEven(v[e])) + float(int(ZERO_POINT));
    return v;
}

// Stores an x4 of the D that begins at `d`; nothing past the last column.
void store_d4(uint64_t d, uint row, uint col, vec4 v) {
    const bool col_major = D_COL_MAJOR != 0;
    store4(element(d, D_TYPE, col_major, row, p.ldd, col), row_step(D_TYPE, col_major, p.ldd),
           D_TYPE, D_VECTOR != 0, size_n() - col, with_zero_point4(v));
}
