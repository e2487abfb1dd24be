// code_sizes.glsl: sizes of a packed quantised B (quantised.h) by the constants.
const uint CODE_WIDTH = CODE_BITS(CODES);
const uint SCALE_BYTES = SCALE_SIZE(SCALE_TYPE);
const uint ENTRY_BYTES = CODE_ENTRY(SCALE_TYPE, CODE_ZEROS);
const uint BLOCK_SCALES = CODE_SCALES(CODE_GROUP_K, SCALE_TYPE, CODE_ZEROS);  // bytes of a column
const bool TWO_LEVELS = HAS_LEVELS(SCALE_TYPE);

// Bytes from the scales of a block to the entry of its group `g`, `ld` columns wide, in column n.
uint64_t entry_offset(const uint g, const uint64_t ld, const uint n) {
    if (TWO_LEVELS) return (ld * (1 + g / 2) + n) * 4 + g % 2 * ENTRY_BYTES;
    return (g * ld + n) * ENTRY_BYTES;
}
