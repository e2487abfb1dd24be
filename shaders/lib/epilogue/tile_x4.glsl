// tile_x4.glsl: where an x4 of accumulators ends: in the epilogue or, with split-K, as a partial
// result.
vec4 tile_c4(const Tile t, uint row, uint col) {
    return SPLIT == SPLIT_NONE ? epilogue_c4(t, row, col) : vec4(0.0);
}
vec4 tile_bias4(const Tile t, uint row, uint col) {
    return SPLIT == SPLIT_NONE ? epilogue_bias4(t, row, col) : vec4(0.0);
}
void tile_store4(const Tile t, uint row, uint col, ACC4 acc, vec4 c, vec4 bias) {
    if (SPLIT == SPLIT_NONE)
        EPILOGUE_STORE4(t, row, col, acc, c, bias);
    else if (is_inside(t, row, col))
        Partial4(element(t.partial, TYPE_F32, row, partial_ld(), col)).x = acc;
}

// The same of a gated product.
Pair4 tile_gated_bias4(const Tile t, uint row, uint col) {
    if (SPLIT != SPLIT_NONE) return Pair4(vec4(0.0), vec4(0.0));
    return gated_bias4(t, row, col);
}
void tile_gated_store4(const Tile t, uint row, uint col, const AccPair4 acc, const Pair4 bias) {
    if (SPLIT == SPLIT_NONE) {
        gated_store4(t, row, col, acc, bias);
    } else if (is_inside(t, row, col)) {
        const uint64_t at = element(t.partial, TYPE_F32, row, partial_ld(), col);
        Partial4(at).x = acc.l;
        Partial4(at + partial_row_bytes()).x = acc.r;
    }
}
