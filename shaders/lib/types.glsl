// types.glsl: loads, stores and conversions of elements. A type has a row in types.h and here five
// functions and, as an input of products, its name, the scalar of cooperative matrices, the use
// that a matrix of it has that nv stores, and the scalar of accumulators and a vector of four. Types at run time are
// specialization constants: branches of other types cost nothing. bf16 is handled as bits outside
// of matrices, so that it needs no extension. Of integers there are inputs, and sums of products.

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
#if IN_TYPE == TYPE_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : enable
#define IN_NAME F16
#define IN_BYTES 2
#define IN_SCALAR float16_t
#define IN_STORE_USE gl_MatrixUseAccumulator
#define ACC_SCALAR float
#endif

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
#if IN_TYPE == TYPE_BF16
#extension GL_EXT_bfloat16 : require
#define IN_NAME BF16
#define IN_BYTES 2
#define IN_SCALAR bfloat16_t
// The H200 lists no bf16 accumulators: a tile is stored as if it were an A operand.
#define IN_STORE_USE gl_MatrixUseA
#define ACC_SCALAR float
#endif

// --- f32

float load_F32(uint64_t at) { return F32(at).x; }
void store_F32(uint64_t at, float v) { F32(at).x = v; }
vec4 load4_F32(uint64_t at) { return F32x4(at).x; }
void store4_F32(uint64_t at, vec4 v) { F32x4(at).x = v; }
float unpack_F32(uvec4 group, const uint e) { return uintBitsToFloat(group[e]); }
#if IN_TYPE == TYPE_F32
#define IN_NAME F32
#define IN_BYTES 4
#define IN_SCALAR float
#define ACC_SCALAR float
#endif

// --- s8

#if IN_TYPE == TYPE_S8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : enable
#extension GL_EXT_shader_8bit_storage : require
layout(buffer_reference, std430, buffer_reference_align = 1) buffer U8 { uint8_t x; };
int unpack_S8(uvec4 group, const uint e) {
    return bitfieldExtract(int(group[e / 4]), int(e % 4 * 8), 8);
}
#define IN_NAME S8
#define IN_BYTES 1
#define IN_SCALAR int8_t
#define ACC_SCALAR int
#define ACC4 ivec4
#endif

// --- accumulators

#ifndef ACC4
#define ACC4 vec4
#endif
#if IN_TYPE == TYPE_S8
ACC4 multiply_add(ACC4 a, ACC4 b, ACC4 sum) { return a * b + sum; }
ACC4 acc_of_bits(uvec4 bits) { return ACC4(bits); }
uvec4 bits_of_acc(ACC4 acc) { return uvec4(acc); }
#else
ACC4 multiply_add(ACC4 a, ACC4 b, ACC4 sum) { return fma(a, b, sum); }
ACC4 acc_of_bits(uvec4 bits) { return uintBitsToFloat(bits); }
uvec4 bits_of_acc(ACC4 acc) { return floatBitsToUint(acc); }
#endif

// --- elements of a type that is a specialization constant

#define BYTES_IF(name, bytes) type == TYPE_##name ? bytes :
uint type_size(const uint type) { return VKGEMM_TYPES(BYTES_IF) VKGEMM_INTEGERS(BYTES_IF) 0; }

#define LOAD_IF(name, bytes) if (type == TYPE_##name) v = load_##name(at);
float load1(uint64_t at, const uint type) {
    float v = 0.0;
    VKGEMM_TYPES(LOAD_IF)
    return v;
}

#define STORE_IF(name, bytes) if (type == TYPE_##name) store_##name(at, v);
void store1(uint64_t at, const uint type, float v) { VKGEMM_TYPES(STORE_IF) }

// Four elements, `step` bytes apart, of which the first `valid`, at least one, exist; the others
// are any. `vector`: all four do, adjacent, and the address is a multiple of their size.
#define LOAD4_IF(name, bytes) if (type == TYPE_##name) v = load4_##name(at);
vec4 load4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid) {
    vec4 v = vec4(0.0);
    if (vector) {
        VKGEMM_TYPES(LOAD4_IF)
    } else {
        // The last one once more instead of none: no branches around loads.
        [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = load1(at + min(e, valid - 1) * step, type);
    }
    return v;
}
vec4 load4(uint64_t at, const uint type, const bool vector, uint valid) {
    return load4(at, type_size(type), type, vector, valid);
}

#define STORE4_IF(name, bytes) if (type == TYPE_##name) store4_##name(at, v);
void store4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid, vec4 v) {
    if (vector) {
        VKGEMM_TYPES(STORE4_IF)
    } else {
        [[unroll]] for (uint e = 0; e < 4; ++e)
            if (e < valid) store1(at + e * step, type, v[e]);
    }
}

// --- A and B: elements of IN_TYPE, loaded 16 bytes, a group, at a time

#ifdef IN_TYPE
#ifndef IN_NAME
#error IN_TYPE is none of types.h
#endif

// An f32 of an operand may lie as so many parts of IN_TYPE that add up to it: f32_parts.glsl.
#ifndef IN_PARTS
#define IN_PARTS 1
#endif
const uint IN_SIZE = IN_BYTES * IN_PARTS;  // of an element, all of its parts
const uint GROUP = 16 / IN_BYTES;

#define PASTED(a, b) a##b
#define OF_INPUT(function, name) PASTED(function, name)
ACC_SCALAR group_element(uvec4 group, const uint e) { return OF_INPUT(unpack_, IN_NAME)(group, e); }

// The size alone decides how the bits of an element are loaded, and how elements share the words of
// a group.
#if IN_BYTES == 4
uint load_bits(uint64_t at) { return U32(at).x; }
#elif IN_BYTES == 2
uint load_bits(uint64_t at) { return uint(U16(at).x); }
#elif IN_BYTES == 1
uint load_bits(uint64_t at) { return uint(U8(at).x); }
#else
#error no loads of single elements of this size
#endif
const uint WORD_ELEMENTS = 4 / IN_BYTES;

// One group element by element. Elements from `valid` on are read from the last valid one, without
// a branch: those past M or N may hold anything, those past K are made zero by the caller.
uvec4 load_elements(uint64_t at, uint valid) {
    uvec4 data = uvec4(0);
    [[unroll]] for (uint e = 0; e < GROUP; ++e)
        data[e / WORD_ELEMENTS] |= load_bits(at + min(e, valid - 1) * IN_BYTES)
                                   << (e % WORD_ELEMENTS * 8 * IN_BYTES);
    return data;
}

// The first `valid` elements of a group, zero from there on.
uvec4 keep_elements(uvec4 data, uint valid) {
    [[unroll]] for (uint w = 0; w < 4; ++w) {
        uint kept = 0;
        [[unroll]] for (uint e = 1; e <= WORD_ELEMENTS; ++e)
            kept = WORD_ELEMENTS * w + e <= valid ? 0xffffffffu >> (32 - e * 8 * IN_BYTES) : kept;
        data[w] &= kept;
    }
    return data;
}
#endif
