// unconverted.glsl: elements of a type that nothing is converted to. Nothing calls these functions.
const bool CONVERTED_TO = false;
uint rounded_pair(vec2 v) { return floatBitsToUint(v.x); }
uvec2 float8_elements(const uint bytes, const uint type) { return uvec2(0); }
uint rounded_bits(float v) { return floatBitsToUint(v); }
