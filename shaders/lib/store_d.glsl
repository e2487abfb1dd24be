// store_d.glsl: how D is stored. An x4 is four neighbours of a row, of which the first is in a
// column that is a multiple of 4.

// Stores an x4 of the D that begins at `d`; nothing past the last column.
void store_d4(uint64_t d, uint row, uint col, vec4 v) {
    const bool col_major = D_COL_MAJOR != 0;
    store4(element(d, D_TYPE, col_major, row, p.ldd, col), row_step(D_TYPE, col_major, p.ldd),
           D_TYPE, D_VECTOR != 0, size_n() - col, v);
}
