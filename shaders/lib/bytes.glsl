// bytes.glsl: elements of 8 bits: s8, u8, e4m3 and e5m2 (OFP8, 2023). Casts from f32 round to nearest even and
// saturate, also infinities. NaN becomes the integer 0, and in a float the code 0x7f with its sign. Each function
// takes four elements of any of the types, so that a module has little of this code.

bool is_byte(const uint type) {
    return type == TYPE_S8 || type == TYPE_U8 || type == TYPE_E4M3 || type == TYPE_E5M2;
}
// Bytes of an element that is converted: a constant expression.
#define CONVERTED_SIZE(type) ((type) >= TYPE_S8 ? 1 : (type) == TYPE_F32 ? 4 : 2)

bool is_byte_integer(const uint type) { return type == TYPE_S8 || type == TYPE_U8; }

// The parameters of an 8-bit float: bits of mantissa, bias of the exponent.
uint mantissa_bits(const uint type) { return type == TYPE_E4M3 ? 3 : 2; }
uint exponent_bias(const uint type) { return type == TYPE_E4M3 ? 7 : 15; }
// The bits of its largest number, in f32: 448 and 57344.
uint largest_bits(const uint type) { return type == TYPE_E4M3 ? 0x43e00000u : 0x47600000u; }

float power_of_two(const uint biased) { return uintBitsToFloat(biased << 23); }

vec4 decode4(const uint type, const uvec4 codes) {
    if (is_byte_integer(type))
        return type == TYPE_S8 ? vec4(bitfieldExtract(ivec4(codes), 0, 8)) : vec4(codes);
    const uint mantissa = mantissa_bits(type), bias = exponent_bias(type);
    const uvec4 magnitude = codes & 0x7fu;
    // Subnormals are multiples of the smallest one.
    const uvec4 small = floatBitsToUint(vec4(magnitude) * power_of_two(128 - bias - mantissa));
    const uvec4 normal = (magnitude << (23 - mantissa)) + ((127 - bias) << 23);
    uvec4 bits = mix(normal, small, lessThan(magnitude, uvec4(1u << mantissa)));
    if (type == TYPE_E4M3) bits = mix(bits, uvec4(0x7fc00000u), equal(magnitude, uvec4(0x7fu)));
    else bits = mix(bits, 0x7f800000u | magnitude << 21, greaterThanEqual(magnitude, uvec4(0x7cu)));
    return uintBitsToFloat(bits | (codes & 0x80u) << 24);
}

uvec4 encode4(const uint type, const vec4 v) {
    const uvec4 bits = floatBitsToUint(v), magnitude = bits & 0x7fffffffu;
    const bvec4 nan = greaterThan(magnitude, uvec4(0x7f800000u));
    if (is_byte_integer(type)) {
        const float least = type == TYPE_S8 ? -128.0 : 0.0, most = type == TYPE_S8 ? 127.0 : 255.0;
        const ivec4 rounded = ivec4(clamp(roundEven(v), vec4(least), vec4(most)));
        return uvec4(mix(rounded, ivec4(0), nan)) & 0xffu;
    }
    const uint mantissa = mantissa_bits(type), bias = exponent_bias(type), shift = 23 - mantissa;
    const uvec4 bounded = min(magnitude, uvec4(largest_bits(type)));
    const uvec4 carried = bounded + ((1u << (shift - 1)) - 1) + (bounded >> shift & 1u);
    const uvec4 normal = (carried >> shift) - ((127 - bias) << mantissa);
    const uvec4 small = uvec4(roundEven(uintBitsToFloat(bounded) * power_of_two(126 + bias + mantissa)));
    const uvec4 code = mix(normal, small, lessThan(bounded, uvec4((128 - bias) << 23)));
    return mix(code, uvec4(0x7fu), nan) | (bits >> 24 & 0x80u);
}

float load_bytes1(uint64_t at, const uint type) { return decode4(type, uvec4(uint(U8(at).x))).x; }
void store_bytes1(uint64_t at, const uint type, float v) { U8(at).x = uint8_t(encode4(type, vec4(v)).x); }

// As load4() and store4() of types.glsl.
vec4 load_bytes4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid) {
    uvec4 codes;
    if (vector) {
        codes = uvec4(U32(at).x) >> uvec4(0, 8, 16, 24) & 0xffu;
    } else {
        [[unroll]] for (uint e = 0; e < 4; ++e) codes[e] = uint(U8(at + min(e, valid - 1) * step).x);
    }
    return decode4(type, codes);
}
void store_bytes4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid, vec4 v) {
    const uvec4 codes = encode4(type, v);
    if (vector) {
        U32(at).x = codes.x | codes.y << 8 | codes.z << 16 | codes.w << 24;
    } else {
        [[unroll]] for (uint e = 0; e < 4; ++e)
            if (e < valid) U8(at + e * step).x = uint8_t(codes[e]);
    }
}
