// store_tile.glsl: store_tile of the contract, for main loops that show their accumulators in
// slices.

// Row and column in D of value i of a slice.
uvec2 value_position(const Tile t, const uint slice, const uint i) {
    const uvec2 place = value_place(i);
    return uvec2(t.row + value_row(slice, place.x), t.col + place.y * 4);
}

// Batches may reach beyond the last value.
bool is_value(const uint i) {
    return (SLICE_VALUES % BATCH == 0 || i < SLICE_VALUES) && has_value(i);
}

void store_tile(const Acc acc, const Tile t) {
#ifdef HAS_NARROW_SLICES
    if (NARROW_SLICES != 0) {
        store_narrow(acc, t);
        return;
    }
#endif
    // The bias of a column is loaded once.
    const bool is_kept = KEEPS_BIAS && BIAS == BIAS_ALONG_N;
    Pair4 bias[MOST_VALUE_COLUMNS];
    [[unroll]] for (uint j = 0; j < VALUE_COLUMNS; ++j) {
        bias[j] = Pair4(vec4(0.0), vec4(0.0));
        if (is_kept) bias[j] = tile_bias4(t, t.row, t.col + value_place(j).y * 4);
    }
    ColumnSums sums;
    begin_column_sums(sums);
    EACH_SLICE(slice) {
        begin_slice(acc, slice);
        EACH_BATCH(first) {
            vec4 c[MOST_BATCH];
            [[unroll]] for (uint b = 0; b < BATCH; ++b) {
                // The first one once more instead of none: no branch around a load.
                const uvec2 d = value_position(t, slice, is_value(first + b) ? first + b : first);
                c[b] = tile_c4(t, d.x, d.y);
            }
            [[unroll]] for (uint b = 0; b < BATCH; ++b) {
                const uint i = first + b;
                if (!is_value(i)) continue;
                const uvec2 d = value_position(t, slice, i);
                Pair4 own = bias[value_column(i)];
                if (!is_kept) own = tile_bias4(t, d.x, d.y);
                AccPair4 products = AccPair4(ACC4(0), ACC4(0));
                if (GATED) products = slice_pair(acc, slice, i);
                else products.l = slice_value(acc, slice, i);
                tile_store4(t, d.x, d.y, products, c[b], own);
                add_column_sum(sums, i);
            }
        }
    }
    store_column_sums(sums, t);
}
