// sum_partials.glsl: adds the slices of split-K in their order and runs the epilogue.

// A kernel with CLAMPS_SLICES loads the last slice again in place of slices that do not exist. Other
// kernels branch around such loads. NVIDIA's compiler keeps these branches only in large kernels, and
// then waits for each load.
#ifdef CLAMPS_SLICES
const bool LOADS_LAST_AGAIN = true;
#else
const bool LOADS_LAST_AGAIN = false;
#endif

// Adds an x4 of all slices. `first` is its address in slice 0. Many loads are on their way at once,
// because their latency is the cost of a small sum.
ACC4 sum_of_slices(uint64_t first) {
    const uint64_t stride = partial_bytes();
    ACC4 sum = ACC4(0);
    for (uint slice = 0; slice < p.slices; slice += SUM_UNROLL) {
        ACC4 part[SUM_UNROLL];
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i) {
            const uint own = LOADS_LAST_AGAIN ? min(slice + i, p.slices - 1) : slice + i;
            if (LOADS_LAST_AGAIN || own < p.slices) part[i] = Partial4(first + own * stride).x;
        }
        sum = slice == 0 ? part[0] : sum + part[0];  // 0 + -0 would be 0
        [[unroll]] for (uint i = 1; i < SUM_UNROLL; ++i)
            if (slice + i < p.slices) sum += part[i];
    }
    return sum;
}

// Stores an x4 of D; `partial`: element (0, 0) of slice 0.
void sum_store4(const Tile t, uint64_t partial, uint row, uint col) {
    const uint64_t first = element(partial, TYPE_F32, row, partial_ld(), col);
    AccPair4 sums = AccPair4(sum_of_slices(first), ACC4(0));
    if (GATED) sums.r = sum_of_slices(first + partial_row_bytes());
    epilogue_store4(t, row, col, sums, epilogue_c4(t, row, col), bias4(t, row, col));
}

// The same by the number of the x4 in a matrix, which holds so many of them.
uint64_t partial_x4_count() { return uint64_t(p.m) * (partial_row() / 4); }
void sum_numbered4(uint64_t batch, uint64_t number) {
    const uint per_row = partial_row() / 4;
    sum_store4(batch_tile(batch), partial_base(batch, 0), uint(number / per_row),
               uint(number % per_row) * 4);
}
