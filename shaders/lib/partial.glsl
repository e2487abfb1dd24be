// Split-K: workgroups with the same tile and different gl_WorkGroupID.z multiply different slices of
// K. Their f32 results stand in the workspace, a matrix for each slice of each batch, until
// sum_slices.comp adds them in the order of the slices and runs the epilogue: the same bits however
// the device schedules. Rows are padded to 4 elements, so that all accesses are 16 bytes wide.

uint partial_ld() { return (size_n() + 3) / 4 * 4; }

// Element (0, 0) of a slice's matrix.
uint64_t partial_base(uint64_t batch, uint slice) {
    const uint64_t matrix = uint64_t(p.m) * partial_ld() * 4;
    return p.workspace + (batch * p.slices + slice) * matrix;
}

// Slices are whole slabs of TILE_K, as even as can be; where there are fewer slabs than slices, the
// last ones are empty and their results 0.
uint slice_begin(uint slice) {
    const uint slabs = (size_k() + TILE_K - 1) / TILE_K;
    const uint begin = slice * (slabs / p.slices) + min(slice, slabs % p.slices);
    return min(begin * TILE_K, size_k());
}
