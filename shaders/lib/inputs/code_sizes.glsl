// code_sizes.glsl: sizes of a packed quantised B (quantised.h) by the constants.
const uint CODE_WIDTH = CODE_BITS(CODES);
const uint SCALE_BYTES = SCALE_TYPE == TYPE_F32 ? 4 : 2;
const uint ENTRY_BYTES = CODE_ENTRY(SCALE_BYTES, CODE_ZEROS);
const uint BLOCK_SCALES = CODE_SCALES(CODE_GROUP_K, ENTRY_BYTES);  // bytes of a column
