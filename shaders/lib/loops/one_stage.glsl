// one_stage.glsl: mma_tile of the main loops that stage one k-tile at a time in shared memory.
// While it is multiplied the next one is on its way to registers. The loop supplies store_group(i),
// which writes one group of stage_data to shared memory, and multiply(inout Acc), which multiplies
// the k-tile that stands there. One that defines HAS_KEPT_SUMS also supplies begin_sums(k) and end_sums(inout Acc),
// which are called before the first and after the last product.
void load_k_tile(const Tile t) {
    load_stage_scales(t, stage_k);
    stage_load();
}
void load_tail(const Tile t, const uint depth) {
    load_stage_scales(t, stage_k);
    stage_load_tail(t, depth);
}

void stage_store() {
    set_stage_scales();
    [[unroll]] for (uint i = 0; i < LOADS; ++i) convert_stage_group(i);
    if (EVEN_LOADS) {
        [[unroll]] for (uint i = 0; i < LOADS; ++i) store_group(i);
    } else {
        [[unroll]] for (uint i = 0; i < LOADS; ++i)
            if (has_group(i)) store_group(i);
    }
}

void multiply_k_tiles(inout Acc acc, const Tile t) {
    const uint depth = t.k_end - t.k_begin;
    if (depth == 0) return;
    stage_begin(t);
    if (K_TAIL != 0 && depth < TILE_K) load_tail(t, depth);
    else load_k_tile(t);

    if (PEEL == 0) {
        for (uint left = depth;; left -= TILE_K) {
            stage_store();
            barrier();
            const bool more = left > TILE_K;
            if (K_TAIL != 0 && more && left < 2 * TILE_K) load_tail(t, left - TILE_K);
            else if (more) load_k_tile(t);
            multiply(acc);
            if (!more) return;
            barrier();
        }
    }

    // The last product, and the last load if K ends within a k-tile, stand outside the loop:
    // without a branch in its body the loads overlap the products better, but the code is twice as
    // long (H200, driver 580.159.04, 128x128x32: 295 against 267 TFLOP/s). ROTATE chooses the step at which iterations
    // begin: the steps are the same.
    stage_store();
    if (ROTATE == 0) barrier();
    const uint k_tiles = depth / TILE_K;
    for (uint i = 1; i < k_tiles; ++i) {
        if (ROTATE != 0) barrier();
        load_k_tile(t);
        multiply(acc);
        barrier();
        stage_store();
        if (ROTATE == 0) barrier();
    }
    if (ROTATE != 0) barrier();
    const uint tail = K_TAIL != 0 && k_tiles != 0 ? depth % TILE_K : 0;
    if (tail != 0) {
        load_tail(t, tail);
        multiply(acc);
        barrier();
        stage_store();
        barrier();
    }
    multiply(acc);
}

#ifndef HAS_KEPT_SUMS
void begin_sums(const uint k) {}
void end_sums(inout Acc acc) {}
#endif

void mma_tile(inout Acc acc, const Tile t) {
    begin_sums(t.k_begin);
    multiply_k_tiles(acc, t);
    end_sums(acc);
}
