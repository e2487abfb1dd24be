// f16.glsl: elements of f16.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#define IN_SCALAR float16_t
#define SUM_SCALAR float
#define IN_STORE_USE gl_MatrixUseAccumulator
const uint IN_TYPE = TYPE_F16;

#include "two_bytes.glsl"

// Rounds in f32, so that the conversion is exact: a driver may round otherwise, or remove f32 → f16 → f32. Adding and
// subtracting 1.5 · 2^13 times an element's power of two, at least 2^-14, rounds it to f16's precision.
uint rounded_pair(vec2 v) {
    const uvec2 u = floatBitsToUint(v), magnitude = u & 0x7fffffffu;
    const uvec2 powers = clamp(u & 0x7f800000u, 0x38800000u, 0x47800000u);
    const vec2 large = uintBitsToFloat(powers + 0x06c00000u);
    precise const vec2 sum = v + large;
    precise const vec2 rounded = sum - large;
    // Magnitudes from 65520 on become infinity. A NaN stays one.
    const uvec2 bits = mix(floatBitsToUint(abs(rounded)), max(magnitude, 0x7f800000u),
                           greaterThanEqual(magnitude, uvec2(0x477ff000u)));
    return packFloat2x16(f16vec2(uintBitsToFloat(bits | (u & 0x80000000u))));
}

// Subnormals of e4m3 are the differences of normal numbers and 2^-6, so that no f16 is subnormal.
uvec2 float8_elements(const uint bytes, const uint type) {
    const uvec2 spread = uvec2(bytes << 8 & 0xff00u | bytes << 16 & 0xff000000u, bytes >> 8 & 0xff00u | bytes & 0xff000000u);
    if (type == TYPE_E5M2) return spread;
    const uvec2 magnitude = spread & 0x7f007f00u;
    const uvec2 small = ~(magnitude + 0x78007800u) & 0x80008000u;
    const uvec2 normal = (magnitude >> 1) + 0x20002000u + (small >> 5), least = small >> 2 | small >> 5;
    const uvec2 over = magnitude + 0x01000100u & 0x80008000u, nan = over - (over >> 5);
    uvec2 pairs;
    [[unroll]] for (uint w = 0; w < 2; ++w)
        pairs[w] = packFloat2x16(unpackFloat2x16(normal[w]) - unpackFloat2x16(least[w]));
    return pairs | spread & 0x80008000u | nan;
}

float group_element(uvec4 group, const uint e) { return unpack_F16(group, e); }

#define WORD f16vec2
WORD word_from(const uint bits) { return unpackFloat2x16(bits); }
uint bits_of(const WORD word) { return packFloat2x16(word); }

// --- elements from codes

#define COMPUTES_IN_F16
uint rounded_bits(float v) {
    const uint u = floatBitsToUint(v), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // beyond half the last step
    // Below 2^-14 the steps are those of the numbers from 0.5 on.
    if (magnitude < 0x38800000u)
        return sign | (floatBitsToUint(uintBitsToFloat(magnitude) + 0.5) - 0x3f000000u);
    return sign | (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
}

// --- parts of f32: 11 bits each. Their sum has a relative error of 2^-23, or an absolute error of 2^-25,
// a subnormal's rounding. Lines are scaled, so that their largest elements are from 2^14 to 2^15.

#define F32_PARTS 2
#define F32_PART_BITS 11
uint part_of(const uint bits) { return packHalf2x16(vec2(uintBitsToFloat(bits), 0.0)); }
uint part_of_special(const float x) {
    return is_nan(x) ? 0x7e00u : floatBitsToUint(x) >> 31 << 15 | 0x7c00u;
}

#define F32_LINE_SCALE_BYTES 4
#define F32_SCALES_BYTES(lines) uint64_t(lines) * 4
#define F32_VALUE(bits, line) scaled_source(bits, line)
#define F32_PACK pack_scaled
// The divisor of a line's elements, a power of two. `largest`: the bits of the largest finite
// magnitude. Scales and their inverses are normal numbers.
float scale_of_line(const uint largest) {
    const uint least = 127u - 100u, shift = 14u;
    return largest == 0u ? 1.0 : uintBitsToFloat((max(largest >> 23, least) - shift) << 23);
}
