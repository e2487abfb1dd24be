// sum_partials.glsl: adds the slices of split-K in their order and runs the epilogue.

// An x4, from where it stands in the matrix of slice 0.
ACC4 sum_of_slices(uint64_t first) {
    const uint64_t stride = partial_bytes();
    ACC4 sum = Partial4(first).x;
    // Many loads on their way at once: their latency is what a small sum costs.
    uint slice = 1;
    for (; slice + SUM_UNROLL <= p.slices; slice += SUM_UNROLL) {
        ACC4 part[SUM_UNROLL];
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i)
            part[i] = Partial4(first + (slice + i) * stride).x;
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i) sum += part[i];
    }
    for (; slice < p.slices; ++slice) sum += Partial4(first + slice * stride).x;
    return sum;
}

// Stores an x4 of D; `partial`: element (0, 0) of slice 0.
void sum_store4(const Tile t, uint64_t partial, uint row, uint col) {
    const uint64_t first = element(partial, TYPE_F32, row, partial_ld(), col);
    const ACC4 sum = sum_of_slices(first);
    if (GATED) gated_store4(t, row, col, AccPair4(sum, sum_of_slices(first + partial_row_bytes())));
    else epilogue_store4(t, row, col, sum);
}

// The same by the number of the x4 in a matrix, which holds so many of them.
uint64_t partial_x4_count() { return uint64_t(p.m) * (partial_row() / 4); }
void sum_numbered4(uint64_t batch, uint64_t number) {
    const uint per_row = partial_row() / 4;
    sum_store4(batch_tile(batch), partial_base(batch, 0), uint(number / per_row),
               uint(number % per_row) * 4);
}
