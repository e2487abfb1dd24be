// converted.glsl: loads of elements of another type in memory (A_TYPE, B_TYPE), rounded to nearest even. Only
// two-byte types are converted to.
const bool A_CONVERTED = CONVERTED_TO && A_TYPE != TYPE_NONE;
const bool B_CONVERTED = CONVERTED_TO && B_TYPE != TYPE_NONE;
const uint A_SIZE = !A_CONVERTED ? IN_SIZE : A_TYPE == TYPE_F32 ? 4 : 2;
const uint B_SIZE = !B_CONVERTED ? IN_SIZE : B_TYPE == TYPE_F32 ? 4 : 2;

// A group whose elements have a type in memory. Elements from `valid` on are those of the last valid one.
uvec4 load_converted(uint64_t at, const uint type, const bool vector, uint valid) {
    uvec4 data = uvec4(0);
    [[unroll]] for (uint first = 0; first < GROUP; first += 4) {
        const uint from = vector ? first : min(first, valid - 1);
        const vec4 v = load4(at + from * type_size(type), type, vector, valid - from);
        [[unroll]] for (uint e = 0; e < 4; ++e)
            data[(first + e) / WORD_ELEMENTS] |= rounded_bits(v[e])
                                                 << ((first + e) % WORD_ELEMENTS * 8 * IN_BYTES);
    }
    return data;
}

// One element, rounded.
float load_converted1(uint64_t at, const uint type) {
    return float(group_element(uvec4(rounded_bits(load1(at, type)), 0, 0, 0), 0));
}
