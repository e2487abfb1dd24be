// tile_x4.glsl: where an x4 of accumulators ends: in the epilogue or, of a slice of K, as a partial
// result. A kernel that knows which says so.
#ifndef IS_SLICE
#define IS_SLICE (SPLIT != SPLIT_NONE)
#endif

vec4 tile_c4(const Tile t, uint row, uint col) {
    if (IS_SLICE) return vec4(0.0);
    return epilogue_c4(t, row, col);
}
Pair4 tile_bias4(const Tile t, uint row, uint col) {
    if (IS_SLICE) return Pair4(vec4(0.0), vec4(0.0));
    return bias4(t, row, col);
}
void tile_store4(const Tile t, uint row, uint col, const AccPair4 acc, vec4 c, const Pair4 bias) {
    if (!IS_SLICE) {
        epilogue_store4(t, row, col, acc, c, bias);
    } else if (is_inside(t, row, col)) {
        const uint64_t at = element(t.partial, TYPE_F32, row, partial_ld(), col);
        Partial4(at).x = acc.l;
        if (GATED) Partial4(at + partial_row_bytes()).x = acc.r;
    }
}
