// gated_tile.glsl: gated products: D = gate(l, r), where l = alpha * A·Bl + bias and r = alpha *
// A·Br + bias. A is read once: a tile of TILE_N columns of accumulators holds TILE_N / 2 columns of
// l and the same of r.
//
// Seen from here B is one of two things:
//   two halves   Br begins p.b_right bytes behind Bl and lies as it does; accumulators of columns
//                c and c + TILE_N / 2 belong together
//   pairs        rows of B hold l and r by turns, and so do the accumulators
// A column-major B whose columns are l and r by turns is two halves, with twice the leading
// dimension. A packed B is two halves, too.
const bool GATED = GATE != GATE_NONE;
const uint HALF_N = TILE_N / 2;
const uint TILE_COLUMNS = GATED ? HALF_N : TILE_N;  // of D
const uint B_PAIRS = B_COL_MAJOR != 0 || B_PADDED != 0 ? 0 : GATE_INTERLEAVED;
const uint B_HALVES = GATED ? 1 - B_PAIRS : 0;

// Columns of B as it is loaded: how many there are, and the tile's first one.
uint b_columns() { return B_PAIRS != 0 ? 2 * size_n() : size_n(); }
uint b_column(uint col) { return B_PAIRS != 0 ? 2 * col : col; }

// An x4 of the left product and of the right one, and their accumulators.
struct Pair4 {
    vec4 l, r;
};
struct AccPair4 {
    ACC4 l, r;
};

// The pairs of two neighbouring x4s of accumulators.
AccPair4 paired(ACC4 low, ACC4 high) {
    return AccPair4(ACC4(low.xz, high.xz), ACC4(low.yw, high.yw));
}
