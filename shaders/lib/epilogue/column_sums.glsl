// column_sums.glsl: the sums of a tile's columns (StepOp::sum_columns). Each invocation sums its own values
// in registers. The workgroup then adds these sums in the order of their lines. The result is a row of f32
// in the workspace, at Tile::extra: row t.a_row / TILE_M, ld_extra apart. sum_columns.comp adds the
// rows. A loop that defines OWN_STORE_TILE needs store_column_sum4 alone.

// An x4 of the tile's sums.
void store_column_sum4(const Tile t, const uint x4, const vec4 sum) {
    const uint col = t.col + x4 * 4;
    if (EDGES != 0 && col >= size_n()) return;
    const uint row = t.a_row / TILE_M;
    F32x4(element(t.extra, TYPE_F32, row, p.ld_extra, col)).x = sum;
}

#ifndef OWN_STORE_TILE
struct ColumnSums {
    vec4 x4[MOST_SUMS];
};

void begin_column_sums(inout ColumnSums sums) {
    if (!SUMS_COLUMNS) return;
    summed = vec4(0.0);
    [[unroll]] for (uint j = 0; j < SUMS; ++j) sums.x4[j] = vec4(0.0);
}

// Adds value i of a slice, after its epilogue. A value past the edges left 0.
void add_column_sum(inout ColumnSums sums, const uint i) {
    if (!SUMS_COLUMNS) return;
    [[unroll]] for (uint j = 0; j < SUMS; ++j) {
        precise const vec4 sum = sums.x4[j] + summed;
        if (j == i % SUMS) sums.x4[j] = sum;
    }
    summed = vec4(0.0);
}

void store_column_sums(const ColumnSums sums, const Tile t) {
    if (!SUMS_COLUMNS) return;
    const uint row = TILE_COLUMNS / 4;
    barrier();
    [[unroll]] for (uint j = 0; j < SUMS; ++j)
        if (has_sum(j)) set_scratch(sum_line(j) * row + value_place(j).y, sums.x4[j]);
    barrier();
    [[dont_unroll]] for (uint x4 = gl_LocalInvocationIndex; x4 < row; x4 += LOCAL_SIZE) {
        precise vec4 sum = scratch(x4);
        [[dont_unroll]] for (uint line = 1; line < SUM_LINES; ++line) sum += scratch(line * row + x4);
        store_column_sum4(t, x4, sum);
    }
}
#endif
