// pack_group.glsl: the loads of the kernels that pack 16-bit operands.

// The first `valid` of eight elements, then zeros.
uvec4 load_group(uint64_t at, uint valid) {
    if (A_VECTOR != 0 && valid >= 8) return U32x4(at).x;
    uvec4 data = uvec4(0);
    [[unroll]] for (uint e = 0; e < 8; ++e)
        if (e < valid) data[e / 2] |= uint(U16(at + e * 2).x) << (e % 2 * 16);
    return data;
}
