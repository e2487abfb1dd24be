// types.glsl: loads, stores and conversions of elements. Each type has a row in types.h. Each of VKGEMM_FLOATS
// has five functions here. The types of C, D, aux and vectors are specialization constants: branches of
// other types cost nothing. The input has the type of A and B (input_contract.glsl). Outside of matrices
// bf16 is handled as bits, so that it needs no extension.

// NaN is recognised by its bits: compilers may take it that there is none. On the H200 (driver
// 580.159.04) x < 0 ? 0 : x became a maximum, which makes 0 of NaN.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

// --- f16

float load_F16(uint64_t at) { return float(F16(at).x); }
void store_F16(uint64_t at, float v) { F16(at).x = float16_t(v); }
vec4 load4_F16(uint64_t at) { return vec4(F16x4(at).x); }
void store4_F16(uint64_t at, vec4 v) { F16x4(at).x = f16vec4(v); }
// Element e of 16 bytes.
float unpack_F16(uvec4 group, const uint e) { return unpackHalf2x16(group[e / 2])[e % 2]; }

// --- bf16

float bf16_to_float(uint bits) { return uintBitsToFloat(bits << 16); }

// The bits of v, rounded to nearest even where bf16 ends, in the high half. Of a NaN any number may
// come, unless its lower half is zero.
uint number_to_bf16(float v) {
    const uint u = floatBitsToUint(v);
    return u + 0x7fffu + ((u >> 16) & 1u);
}

// The same of all; a NaN stays a (quiet) NaN.
uint float_to_bf16(float v) {
    const uint u = floatBitsToUint(v);
    return (u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : number_to_bf16(v);
}

uint bf16_pair(const uint low, const uint high) { return (low >> 16) | (high & 0xffff0000u); }

float load_BF16(uint64_t at) { return bf16_to_float(uint(U16(at).x)); }
void store_BF16(uint64_t at, float v) { U16(at).x = uint16_t(float_to_bf16(v) >> 16); }
vec4 load4_BF16(uint64_t at) {
    uvec2 u = U32x2(at).x;
    return uintBitsToFloat(uvec4(u.x << 16, u.x & 0xffff0000u, u.y << 16, u.y & 0xffff0000u));
}
void store4_BF16(uint64_t at, vec4 v) {
    U32x2(at).x = uvec2(bf16_pair(float_to_bf16(v.x), float_to_bf16(v.y)),
                        bf16_pair(float_to_bf16(v.z), float_to_bf16(v.w)));
}
float unpack_BF16(uvec4 group, const uint e) {
    return uintBitsToFloat(e % 2 == 0 ? group[e / 2] << 16 : group[e / 2] & 0xffff0000u);
}

// --- f32

float load_F32(uint64_t at) { return F32(at).x; }
void store_F32(uint64_t at, float v) { F32(at).x = v; }
vec4 load4_F32(uint64_t at) { return F32x4(at).x; }
void store4_F32(uint64_t at, vec4 v) { F32x4(at).x = v; }
float unpack_F32(uvec4 group, const uint e) { return uintBitsToFloat(group[e]); }

#include "bytes.glsl"

// --- elements of a type that is a specialization constant. BYTE_TYPES: some may have 8 bits

#define BYTES_IF(name, NAME, bytes) type == TYPE_##NAME ? bytes :
uint type_size(const uint type) { return VKGEMM_TYPES(BYTES_IF) 0; }

#define LOAD_IF(name, NAME, bytes) if (type == TYPE_##NAME) v = load_##NAME(at);
float load_float1(uint64_t at, const uint type) {
    float v = 0.0;
    VKGEMM_FLOATS(LOAD_IF)
    return v;
}
float load1(uint64_t at, const uint type) {
    float v = load_float1(at, type);
    if (BYTE_TYPES != 0)
        if (is_byte(type)) v = load_bytes1(at, type);
    return v;
}

#define STORE_IF(name, NAME, bytes) if (type == TYPE_##NAME) store_##NAME(at, v);
void store_float1(uint64_t at, const uint type, float v) { VKGEMM_FLOATS(STORE_IF) }
void store1(uint64_t at, const uint type, float v) {
    store_float1(at, type, v);
    if (BYTE_TYPES != 0)
        if (is_byte(type)) store_bytes1(at, type, v);
}

// Four elements, `step` bytes apart, of which the first `valid`, at least one, exist; the others
// are any. `vector`: all four do, adjacent, and the address is a multiple of their size.
#define LOAD4_IF(name, NAME, bytes) if (type == TYPE_##NAME) v = load4_##NAME(at);
vec4 load4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid) {
    vec4 v = vec4(0.0);
    if (vector) {
        VKGEMM_FLOATS(LOAD4_IF)
    } else {
        // The last one once more instead of none: no branches around loads.
        [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = load_float1(at + min(e, valid - 1) * step, type);
    }
    if (BYTE_TYPES != 0)
        if (is_byte(type)) v = load_bytes4(at, step, type, vector, valid);
    return v;
}
vec4 load4(uint64_t at, const uint type, const bool vector, uint valid) {
    return load4(at, type_size(type), type, vector, valid);
}

#define STORE4_IF(name, NAME, bytes) if (type == TYPE_##NAME) store4_##NAME(at, v);
void store4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid, vec4 v) {
    if (vector) {
        VKGEMM_FLOATS(STORE4_IF)
    } else {
        [[unroll]] for (uint e = 0; e < 4; ++e)
            if (e < valid) store_float1(at + e * step, type, v[e]);
    }
    if (BYTE_TYPES != 0)
        if (is_byte(type)) store_bytes4(at, step, type, vector, valid, v);
}
