// f32.glsl: elements of f32. They have no fragments.
#define IN_SCALAR float
const uint IN_TYPE = TYPE_F32;

const uint IN_BYTES = 4;
const bool CONVERTED_TO = false;
uint load_bits(uint64_t at) { return U32(at).x; }
uint rounded_pair(vec2 v) { return floatBitsToUint(v.x); }
uvec2 float8_elements(const uint bytes, const uint type) { return uvec2(0); }
float group_element(uvec4 group, const uint e) { return unpack_F32(group, e); }
uint rounded_bits(float v) { return floatBitsToUint(v); }
