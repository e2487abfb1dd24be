// Split-K: workgroups with the same tile multiply different slices of K. Their f32 results, partial
// ones, stand in the workspace, a matrix for each slice of each batch, until somebody adds them in
// the order of the slices and runs the epilogue: the same bits however the device schedules, and
// whoever adds.
//   SPLIT_TWO_DISPATCHES  a second dispatch (sum_slices.comp)
//   SPLIT_LAST_ARRIVER    of the workgroups of a tile the one that is done last
//   SPLIT_DEVICE_BARRIER  all workgroups, when all are done (device_barrier.glsl)
// Rows of partial results are padded to 4 elements, so that all accesses are 16 bytes wide; with a gate
// a row is two of these, of the left product and of the right one.

// Written by one workgroup and read by another one, maybe of the same dispatch.
layout(buffer_reference, std430, buffer_reference_align = 16) queuefamilycoherent buffer Partial4 {
    vec4 x;
};

uint partial_row() { return (size_n() + 3) / 4 * 4; }
uint64_t partial_row_bytes() { return uint64_t(partial_row()) * 4; }
uint partial_ld() { return GATED ? 2 * partial_row() : partial_row(); }
uint64_t partial_bytes() { return uint64_t(p.m) * partial_ld() * 4; }  // of one matrix

// Element (0, 0) of a slice's matrix.
uint64_t partial_base(uint64_t batch, uint slice) {
    return p.workspace + (batch * p.slices + slice) * partial_bytes();
}

// Slices are whole slabs of TILE_K, as even as can be; where there are fewer slabs than slices, the
// last ones are empty and their results 0.
uint slice_begin(uint slice) {
    const uint slabs = (size_k() + TILE_K - 1) / TILE_K;
    const uint begin = slice * (slabs / p.slices) + min(slice, slabs % p.slices);
    return min(begin * TILE_K, size_k());
}

// Four neighbours of a row, from where they stand in the matrix of slice 0.
vec4 sum_of_slices(uint64_t first) {
    const uint64_t stride = partial_bytes();
    vec4 sum = Partial4(first).x;
    // Many loads on their way at once: their latency is what a thin sum costs.
    uint slice = 1;
    for (; slice + SUM_UNROLL <= p.slices; slice += SUM_UNROLL) {
        vec4 part[SUM_UNROLL];
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i)
            part[i] = Partial4(first + (slice + i) * stride).x;
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i) sum += part[i];
    }
    for (; slice < p.slices; ++slice) sum += Partial4(first + slice * stride).x;
    return sum;
}
