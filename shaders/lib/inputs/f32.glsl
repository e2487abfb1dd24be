// f32.glsl: elements of f32. They have no fragments.
#define IN_SCALAR float
const uint IN_TYPE = TYPE_F32;

const uint IN_BYTES = 4;
#include "unconverted.glsl"
uint load_bits(uint64_t at) { return U32(at).x; }
float group_element(uvec4 group, const uint e) { return unpack_F32(group, e); }
