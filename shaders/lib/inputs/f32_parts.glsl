// f32_parts.glsl: an f32 as IN_PARTS numbers of IN_TYPE whose sum is the f32, or nearly: each is the rest
// that those before it leave, rounded. NaN and infinities are the first part, and others are 0.
//
//   bf16, 3 parts   8 bits each: the sum is exact, but that small elements' parts may be subnormal. What
//                   would be rounded to infinity becomes the largest finite number.
//   f16, 2 parts    11 bits each, the sum errs by 2^-23, relatively, or by 2^-25, a subnormal's rounding.
//                   Elements come scaled: their lines' largest to 2^14 to 2^15 (scale_of_line).
//
// Rounded by integers: NVIDIA's driver (580.159.04) takes an f32 that became f16 and f32 again for the first one.
#if IN_TYPE == TYPE_BF16
const uint PART_BITS = 8;
uint part_of(const uint bits) { return bits >> 16; }
uint part_of_special(const float x) { return float_to_bf16(x) >> 16; }
#else
const uint PART_BITS = 11;
uint part_of(const uint bits) { return packHalf2x16(vec2(uintBitsToFloat(bits), 0.0)); }
uint part_of_special(const float x) {
    return is_nan(x) ? 0x7e00u : floatBitsToUint(x) >> 31 << 15 | 0x7c00u;
}
#endif

uint[IN_PARTS] split(const float x) {
    const uint dropped = 24 - PART_BITS, mask = (1u << dropped) - 1, largest = 0x7f7fffffu & ~mask;
    precise float rest = x;
    uint parts[IN_PARTS];
    [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) {
        const uint bits = floatBitsToUint(rest), magnitude = bits & 0x7fffffffu;
        const uint rounded = (magnitude + (mask >> 1) + (magnitude >> dropped & 1u)) & ~mask;
        const uint part = min(rounded, largest) | bits & 0x80000000u;
        parts[q] = part_of(part);
        rest -= uintBitsToFloat(part);
    }
    if ((floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u) return parts;
    [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) parts[q] = q == 0 ? part_of_special(x) : 0;
    return parts;
}

#if IN_TYPE == TYPE_F16
// The scales of a matrix's lines along M or N, f32, stand in front of its fragments.
#define SCALES_IN_FRONT

// The divisor of a line's elements, a power of two. `largest`: the bits of the largest finite
// magnitude. Scales and their inverses are normal numbers.
float scale_of_line(const uint largest) {
    const uint least = 127u - 100u, shift = 14u;
    return largest == 0u ? 1.0 : uintBitsToFloat((max(largest >> 23, least) - shift) << 23);
}
float inverse_of(const float scale) {
    return uintBitsToFloat((254u << 23) - floatBitsToUint(scale));
}
#endif
