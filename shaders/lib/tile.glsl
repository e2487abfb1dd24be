// Which part of which product a workgroup computes.
struct Tile {
    uint row, col;        // first row and column of D
    uint row_end;         // behind the last row that exists, of D and A
    uint k_begin, k_end;  // range of K
    float alpha;
    uint64_t a, b, c, d, bias, aux;  // element (0, 0) of this batch's operands
    uint64_t partial;                // and of the partial results, where PARTIAL
};

#include "partial.glsl"

// The operands of one batch, no tile yet.
Tile batch_tile(uint64_t batch) {
    Tile t;
    t.row = t.col = 0;
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
    t.partial = 0;
    return t;
}

uint tile_rows() { return (p.m + TILE_M - 1) / TILE_M; }
uint tile_columns() { return (size_n() + TILE_N - 1) / TILE_N; }

// Column and row of tile `id` in a grid of so many rows. Tiles are visited in bands of SWIZZLE rows,
// column by column, so that workgroups that run at the same time share rows of A and columns of B
// in the L2 cache.
uvec2 tile_position(uint id, uint rows) {
    uint columns = tile_columns();
    uint band = id / (SWIZZLE * columns);
    uint first = band * SWIZZLE;
    uint height = min(rows - first, SWIZZLE);
    uint within = id - band * SWIZZLE * columns;
    return uvec2(within / height, first + within % height);
}

// The dense schedule: workgroup x is a tile, y a matrix of the batch, z a slice of K.
Tile dense_tile() {
    const uint64_t batch = p.first_batch + gl_WorkGroupID.y;
    const uvec2 at = tile_position(p.first_tile + gl_WorkGroupID.x, tile_rows());
    Tile t = batch_tile(batch);
    t.row = at.y * TILE_M;
    t.col = at.x * TILE_N;
    if (PARTIAL != 0) {
        t.k_begin = slice_begin(gl_WorkGroupID.z);
        t.k_end = slice_begin(gl_WorkGroupID.z + 1);
        t.partial = partial_base(batch, gl_WorkGroupID.z);
    }
    return t;
}
