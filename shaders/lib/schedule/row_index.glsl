// row_index.glsl: rows of A and of D by index (struct Grouping), which only groups of rows have. Indices come
// from the device and may have any value. They are clamped to A's rows. A row without a row of D is not stored.
#ifdef HAS_ROW_INDEX
uint row_index(const uint row) { return U32(p.row_index + uint64_t(row) * 4).x; }
uint rows_of_a() { return uint(p.a_batch); }
uint places_in_d() { return uint(p.d_batch); }

// The row of A from which row `row` of the product is multiplied.
uint row_of_a(const uint row) {
    if (GATHER == 0) return row;
    return min(row_index(row) / GATHER, rows_of_a() - 1);
}

// The row of D to which it is stored, or NO_ROW.
uint row_of_d(const uint row) {
    if (SCATTER != SCATTER_ROWS) return row;
    const uint to = row_index(row);
    return to < places_in_d() ? to : NO_ROW;
}
#else
#define row_of_a(row) (row)
#define row_of_d(row) (row)
#endif
