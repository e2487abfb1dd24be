// tile.glsl: the part of a product that a workgroup computes.
struct Tile {
    uint row, col;        // first row and column of D
    uint row_end;         // behind the last row that exists, of D and A
    uint a_row;           // first row of A in fragment order, where groups have slots of their own
    uint k_begin, k_end;  // range of K
    float alpha;
    uint64_t a, b, c, d, bias, aux, extra;  // element (0, 0) of this batch's operands
    uint64_t row_scales, column_scales;
    // With split-K: element (0, 0) of this slice's partial results and of those of slice 0.
    uint64_t partial, first_partial;
};

// As size_n() in elements.glsl.
uint size_k() { return STATIC_K != 0 ? STATIC_K : p.k; }
uint size_lda() { return STATIC_LDA != 0 ? STATIC_LDA : p.lda; }
uint size_ldb() { return STATIC_LDB != 0 ? STATIC_LDB : p.ldb; }

#include "gated_tile.glsl"
#include "row_index.glsl"
#include "split_k.glsl"

// Bytes of the column scales of one matrix.
uint64_t column_scales_bytes() {
    const uint64_t bytes = uint64_t(size_n()) * 4;
    return GATED ? bytes * 2 : bytes;
}

// The scales of a row: one, or one for each group of K.
uint row_scale_count() { return A_GROUP_K == 0 ? 1 : (size_k() + A_GROUP_K - 1) / CODE_DIVISOR(A_GROUP_K); }
// The address of the one for element k.
uint64_t row_scale_at(const Tile t, const uint row, const uint k) {
    return t.row_scales + (uint64_t(row) * row_scale_count() + k / CODE_DIVISOR(A_GROUP_K)) * 4;
}

// The operands of one batch, no tile yet.
Tile batch_tile(uint64_t batch) {
    Tile t;
    t.row = t.col = t.a_row = 0;
    t.row_end = p.m;
    t.k_begin = 0;
    t.k_end = size_k();
    t.alpha = p.alpha;
    t.a = p.a + batch * p.a_batch;
    t.b = p.b + batch * p.b_batch;
    t.c = p.c + batch * p.c_batch;
    t.d = p.d + batch * p.d_batch;
    t.bias = p.bias + batch * p.bias_batch;
    t.aux = p.aux + batch * p.aux_batch;
    t.extra = p.extra + batch * p.extra_batch;
    t.row_scales = p.row_scales;
    t.column_scales = p.column_scales;
    if (ROW_SCALES == SCALES_PER_MATRIX) t.row_scales += batch * p.m * row_scale_count() * 4;
    if (COLUMN_SCALES == SCALES_PER_MATRIX) t.column_scales += batch * column_scales_bytes();
    if (ROW_SCALES == SCALES_OF_PARTS) t.row_scales += batch * p.a_batch;
    if (COLUMN_SCALES == SCALES_OF_PARTS) t.column_scales += batch * p.b_batch;
    t.partial = t.first_partial = 0;
    return t;
}

uint tile_rows() { return (p.m + TILE_M - 1) / TILE_M; }
uint tile_columns() { return (size_n() + TILE_COLUMNS - 1) / TILE_COLUMNS; }
uint tile_count() { return tile_rows() * tile_columns(); }

// Column and row of tile `id` in a grid of so many rows. Tiles are visited in bands of SWIZZLE
// rows, column by column, so that workgroups that run at the same time share rows of A and columns
// of B in the L2 cache.
uvec2 tile_position(uint id, uint rows) {
    const uint columns = tile_columns();
    const uint band = id / (SWIZZLE * columns);
    const uint first = band * SWIZZLE;
    const uint height = min(rows - first, SWIZZLE);
    const uint within = id - band * SWIZZLE * columns;
    return uvec2(within / height, first + within % height);
}

Tile tile_at(uint id, uint64_t batch, uint slice) {
    const uvec2 at = tile_position(id, tile_rows());
    Tile t = batch_tile(batch);
    t.row = t.a_row = at.y * TILE_M;
    t.col = at.x * TILE_COLUMNS;
    if (SPLIT != SPLIT_NONE) {
        t.k_begin = slice_begin(slice);
        t.k_end = slice_begin(slice + 1);
        t.partial = partial_base(batch, slice);
        t.first_partial = partial_base(batch, 0);
    }
    return t;
}

// The dense schedule: workgroup x is a tile, y a matrix of the batch, z a slice of K.
uint dense_id() { return first_tile() + gl_WorkGroupID.x; }
uint dense_batch() { return first_batch() + gl_WorkGroupID.y; }
Tile dense_tile() {
    return tile_at(dense_id(), dense_batch(), gl_WorkGroupID.z);
}
