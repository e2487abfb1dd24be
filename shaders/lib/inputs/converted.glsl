// converted.glsl: loads of elements of another type in memory (A_TYPE, B_TYPE), rounded to nearest even. Only
// two-byte types are converted to.
const bool A_CONVERTED = CONVERTED_TO && A_TYPE != TYPE_NONE;
const bool B_CONVERTED = CONVERTED_TO && B_TYPE != TYPE_NONE;
const uint A_SIZE = A_CONVERTED ? CONVERTED_SIZE(A_TYPE) : IN_SIZE;
const uint B_SIZE = B_CONVERTED ? CONVERTED_SIZE(B_TYPE) : IN_SIZE;

// Half a group, rounded.
uvec2 rounded4(const vec4 v) { return uvec2(rounded_pair(v.xy), rounded_pair(v.zw)); }

// The elements of four bytes. Both 16-bit types have all numbers of 8-bit types.
uvec2 converted_bytes(const uint bytes, const uint type) {
    if (!is_byte_integer(type)) return float8_elements(bytes, type);
    return rounded4(decode4(type, uvec4(bytes) >> uvec4(0, 8, 16, 24) & 0xffu));
}

// A group whose elements have a type in memory. Elements from `valid` on are those of the last valid one.
uvec4 load_converted(uint64_t at, const uint type, const bool vector, uint valid) {
    if (vector && is_byte(type)) {
        const uvec2 bytes = U32x2(at).x;
        return uvec4(converted_bytes(bytes.x, type), converted_bytes(bytes.y, type));
    }
    uvec4 data = uvec4(0);
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        const uint from = vector ? 4 * h : min(4 * h, valid - 1);
        const uvec2 words = rounded4(load4(at + from * type_size(type), type, vector, valid - from));
        data[2 * h] = words.x;
        data[2 * h + 1] = words.y;
    }
    return data;
}

// Converts a group that was loaded without a conversion. `rest`: the second half of eight f32. Bytes fill the first half
// of `data`.
uvec4 converted_group(const uvec4 data, const uvec4 rest, const uint type) {
    if (type == TYPE_F32)
        return uvec4(rounded4(uintBitsToFloat(data)), rounded4(uintBitsToFloat(rest)));
    if (is_byte(type)) return uvec4(converted_bytes(data.x, type), converted_bytes(data.y, type));
    uvec4 group;
    [[unroll]] for (uint w = 0; w < 4; ++w) {
        const uint pair = data[w];
        group[w] = rounded_pair(type == TYPE_F16 ? unpackHalf2x16(pair)
                                                 : uintBitsToFloat(uvec2(pair << 16, pair & 0xffff0000u)));
    }
    return group;
}

// One element, rounded.
float load_converted1(uint64_t at, const uint type) {
    return float(group_element(uvec4(rounded_pair(vec2(load1(at, type), 0.0)), 0, 0, 0), 0));
}
