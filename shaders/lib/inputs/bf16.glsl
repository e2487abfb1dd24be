// bf16.glsl: elements of bf16.
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#define IN_SCALAR bfloat16_t
// The H200 lists no bf16 accumulators: nv stores a tile as if it were an A operand.
#define IN_STORE_USE gl_MatrixUseA
const uint IN_TYPE = TYPE_BF16;

#include "two_bytes.glsl"

uint rounded_pair(vec2 v) { return bf16_pair(float_to_bf16(v.x), float_to_bf16(v.y)); }

uvec2 float8_elements(const uint bytes, const uint type) {
    const uvec4 bits = floatBitsToUint(decode4(type, uvec4(bytes) >> uvec4(0, 8, 16, 24) & 0xffu));
    return uvec2(bf16_pair(bits.x, bits.y), bf16_pair(bits.z, bits.w));
}

float group_element(uvec4 group, const uint e) { return unpack_BF16(group, e); }

#define WORD bf16vec2
WORD word_from(const uint bits) { return uintBitsToBFloat16EXT(unpackUint2x16(bits)); }
uint bits_of(const WORD word) { return packUint2x16(bfloat16BitsToUintEXT(word)); }

uint rounded_bits(float v) { return float_to_bf16(v) >> 16; }

// --- parts of f32: 8 bits each. Their sum is exact, unless parts of small elements are subnormal. An
// element that would be rounded to infinity becomes the largest finite number.

#define F32_PARTS 3
#define F32_PART_BITS 8
uint part_of(const uint bits) { return bits >> 16; }
uint part_of_special(const float x) { return float_to_bf16(x) >> 16; }

#define F32_LARGEST_APART
#define F32_LINE_SCALE_BYTES 0
#define F32_SCALES_BYTES(lines) 0
#define F32_VALUE(bits, line) uintBitsToFloat(bits)
#define F32_PACK pack_alone
