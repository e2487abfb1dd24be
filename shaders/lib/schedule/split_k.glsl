// split_k.glsl: workgroups with the same tile multiply different slices of K. Their results,
// partial ones, stand in the workspace, a matrix for each slice of each batch, until somebody adds
// them in the order of the slices and runs the epilogue: the same bits however the device
// schedules, and whoever adds.
//   SPLIT_TWO_DISPATCHES  a second dispatch adds (sum_slices.comp)
//   SPLIT_LAST_ARRIVER    the last of a tile's workgroups that is done adds (gemm_split.comp)
//   SPLIT_DEVICE_BARRIER  all workgroups add when all are done (gemm_split.comp)
// Rows of partial results are padded to 4 elements, so that all accesses are 16 bytes wide; with a
// gate a row is two of these, of the left product and of the right one.

// Written by one workgroup and read by another one, maybe of the same dispatch.
layout(buffer_reference, std430, buffer_reference_align = 16) queuefamilycoherent buffer Partial4 {
    ACC4 x;
};

uint partial_row() { return (size_n() + 3) / 4 * 4; }
uint64_t partial_row_bytes() { return uint64_t(partial_row()) * 4; }
uint partial_ld() { return GATED ? 2 * partial_row() : partial_row(); }
uint64_t partial_bytes() { return uint64_t(p.m) * partial_ld() * 4; }  // of one matrix

// Element (0, 0) of a slice's matrix.
uint64_t partial_base(uint64_t batch, uint slice) {
    return p.partial + (batch * p.slices + slice) * partial_bytes();
}

// Slices are whole k-tiles, as even as can be; where there are fewer k-tiles than slices, the last
// slices are empty and their results 0.
uint slice_begin(uint slice) {
    const uint k_tiles = (size_k() + TILE_K - 1) / TILE_K;
    const uint begin = slice * (k_tiles / p.slices) + min(slice, k_tiles % p.slices);
    return min(begin * TILE_K, size_k());
}
