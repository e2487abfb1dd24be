// whole.glsl: the elements that are multiplied are the caller's elements.
const uint IN_PARTS = 1;
#define IN_CODES HAS_CODES

const uint SOURCE_BYTES = IN_BYTES;
uint load_source_bits(uint64_t at) { return load_bits(at); }

const uint LINE_SCALE_BYTES = 0;
uint64_t scales_bytes(const uint lines) { return 0; }
#define SOURCE_VALUE(bits, line) uintBitsToFloat(bits)
#define SET_GROUP set_whole
#define PACK pack_alone

#define MULTIPLY multiply_whole
#define MMA_TILE mma_whole
