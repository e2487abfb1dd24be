// Loads and stores of one or four elements of a type that is a specialization constant; the
// branches of the other types cost nothing. bf16 is handled as bits, so that it needs no extension.

float bf16_to_float(uint bits) { return uintBitsToFloat(bits << 16); }

// Rounds to nearest even; a NaN stays a (quiet) NaN, where plain rounding could carry it to Inf.
uint float_to_bf16(float v) {
    uint u = floatBitsToUint(v);
    return (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u
                                           : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}

float load1(uint64_t at, const uint type) {
    if (type == TYPE_F16) return float(F16(at).x);
    if (type == TYPE_BF16) return bf16_to_float(uint(U16(at).x));
    return F32(at).x;
}

void store1(uint64_t at, const uint type, float v) {
    if (type == TYPE_F16) F16(at).x = float16_t(v);
    else if (type == TYPE_BF16) U16(at).x = uint16_t(float_to_bf16(v));
    else F32(at).x = v;
}

// Four elements, `step` bytes apart, of which the first `valid`, at least one, exist; the others are
// any. `vector`: all four do, adjacent, and the address is a multiple of their size.
vec4 load4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid) {
    if (vector) {
        if (type == TYPE_F16) return vec4(F16x4(at).x);
        if (type == TYPE_F32) return F32x4(at).x;
        uvec2 u = U32x2(at).x;
        return uintBitsToFloat(uvec4(u.x << 16, u.x & 0xffff0000u, u.y << 16, u.y & 0xffff0000u));
    }
    // The last one once more instead of none: no branches around loads.
    vec4 v;
    [[unroll]] for (uint e = 0; e < 4; ++e)
        v[e] = load1(at + min(e, valid - 1) * step, type);
    return v;
}
vec4 load4(uint64_t at, const uint type, const bool vector, uint valid) {
    return load4(at, type_size(type), type, vector, valid);
}

void store4(uint64_t at, uint64_t step, const uint type, const bool vector, uint valid, vec4 v) {
    if (vector) {
        if (type == TYPE_F16) F16x4(at).x = f16vec4(v);
        else if (type == TYPE_F32) F32x4(at).x = v;
        else
            U32x2(at).x = uvec2(float_to_bf16(v.x) | float_to_bf16(v.y) << 16,
                                float_to_bf16(v.z) | float_to_bf16(v.w) << 16);
        return;
    }
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (e < valid) store1(at + e * step, type, v[e]);
}
