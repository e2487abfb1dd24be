// e4m3.glsl: 8-bit floats of OCP in cooperative matrices, as VK_EXT_shader_float8 has them. Kernels of f16 multiply them
// elsewhere (converted.glsl).
#extension GL_EXT_float_e4m3 : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#define IN_SCALAR floate4m3_t
const uint IN_TYPE = TYPE_E4M3;

const uint IN_BYTES = 1;
#include "unconverted.glsl"
uint load_bits(uint64_t at) { return uint(U8(at).x); }
float group_element(uvec4 group, const uint e) { return decode4(IN_TYPE, uvec4(group[e / 4] >> e % 4 * 8 & 0xffu)).x; }
