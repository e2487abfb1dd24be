// ggml_blocks.glsl: codes and scales of the blocks of ggml files (the structs block_* in ggml's ggml-common.h), as
// products have them (quantised.h). The table in include/QUANTISED.md lists the bytes of each block. All numbers
// are little-endian.

// The numbers of IQ4_NL and IQ4_XS, kvalues_iq4nl in ggml-common.h, each plus 128.
uint iq4_number(const uint code) {
    const uvec4 words = uvec4(0x3f2d1801u, 0x766a5d4fu, 0xa6998d81u, 0xf1d9c5b5u);
    return bitfieldExtract(words[code / 4], int(code % 4 * 8), 8);
}

uint nibble(const uint64_t at, const bool upper) {
    const uint byte = load_byte(at);
    return upper ? byte >> 4 : byte & 15;
}

uint bits_at(const uint64_t at, const uint shift, const uint count) {
    return bitfieldExtract(load_byte(at), int(shift), int(count));
}

// Code `i` of a block.
uint block_code(const uint64_t block, const uint i) {
    // Blocks of 32: byte j holds codes j and j + 16.
    const uint64_t half_byte = block + i % 16;
    const bool upper = i >= 16;
    if (CODE_SOURCE == SOURCE_Q4_0) return nibble(half_byte + 2, upper);
    if (CODE_SOURCE == SOURCE_MXFP4) return nibble(half_byte + 1, upper);
    if (CODE_SOURCE == SOURCE_Q4_1) return nibble(half_byte + 4, upper);
    if (CODE_SOURCE == SOURCE_IQ4_NL) return iq4_number(nibble(half_byte + 2, upper));
    if (CODE_SOURCE == SOURCE_Q8_0) return load_byte(block + 2 + i) ^ 0x80u;
    if (CODE_SOURCE == SOURCE_Q5_0)
        return 112 + (nibble(half_byte + 6, upper) | bits_at(block + 2 + i / 8, i % 8, 1) << 4);
    if (CODE_SOURCE == SOURCE_Q5_1)
        return nibble(half_byte + 8, upper) | bits_at(block + 4 + i / 8, i % 8, 1) << 4;
    // Parts of 16: byte j holds codes j and j + 8.
    if (CODE_SOURCE == SOURCE_NVFP4) return nibble(block + 4 + i / 16 * 8 + i % 8, i % 16 >= 8);
    // Byte j holds 4 or 8 neighbours.
    if (CODE_SOURCE == SOURCE_Q2_0) return 7 + bits_at(block + 2 + i / 4, i % 4 * 2, 2);
    if (CODE_SOURCE == SOURCE_Q1_0) return 7 + 2 * bits_at(block + 2 + i / 8, i % 8, 1);
    // Blocks of 256 have halves of 128, or pairs of 32.
    const uint part = i / 128, within = i % 128, line = i % 32, quarter = within / 32;
    if (CODE_SOURCE == SOURCE_TQ2_0) return 7 + bits_at(block + part * 32 + line, 2 * quarter, 2);
    if (CODE_SOURCE == SOURCE_Q2_K) return bits_at(block + 16 + part * 32 + line, 2 * quarter, 2);
    if (CODE_SOURCE == SOURCE_Q3_K)
        return 4 + (bits_at(block + 32 + part * 32 + line, 2 * quarter, 2) |
                    bits_at(block + line, i / 32, 1) << 2);
    if (CODE_SOURCE == SOURCE_Q4_K) return nibble(block + 16 + i / 64 * 32 + line, i % 64 >= 32);
    if (CODE_SOURCE == SOURCE_Q5_K)
        return nibble(block + 48 + i / 64 * 32 + line, i % 64 >= 32) |
            bits_at(block + 16 + line, i / 32, 1) << 4;
    if (CODE_SOURCE == SOURCE_Q6_K)
        return 96 + (nibble(block + part * 64 + within % 64, within >= 64) |
                     bits_at(block + 128 + part * 32 + line, 2 * quarter, 2) << 4);
    return iq4_number(nibble(block + 8 + i / 32 * 16 + i % 16, line >= 16));  // IQ4_XS
}

// The number of the bits of an f16, as every device computes it: some take subnormals for 0.
float f16_value(const uint bits) {
    const uint exponent = bitfieldExtract(bits, 10, 5), fraction = bits & 0x3ffu, sign = (bits & 0x8000u) << 16;
    if (exponent == 0) return uintBitsToFloat(floatBitsToUint(float(fraction) * uintBitsToFloat(103u << 23)) | sign);
    return uintBitsToFloat(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

// The word of scales in two levels: with minima two f16, otherwise an f32.
uint block_levels(const uint64_t block) {
    const uint64_t at = block + (CODE_SOURCE == SOURCE_Q2_K   ? 80
                                 : CODE_SOURCE == SOURCE_Q3_K ? 108
                                 : CODE_SOURCE == SOURCE_Q6_K ? 208
                                                              : 0);
    if (CODE_ZEROS == ZEROS_MINIMA) return uint(U16(at).x) | uint(U16(at + 2).x) << 16;
    return floatBitsToUint(f16_value(uint(U16(at).x)));
}

// The E4M3 number of a byte as f16, as ggml reads it: without a sign, 0x7f is 0.
uint nvfp4_scale(const uint byte) {
    return byte == 0x7fu ? 0 : packHalf2x16(vec2(e4m3_value(byte & 0x7fu), 0.0));
}

// The scale of group `g` of a block, and its minimum.
uvec2 block_entry(const uint64_t block, const uint g) {
    if (CODE_SOURCE == SOURCE_MXFP4) return uvec2(e8m0_to_bf16(load_byte(block)), 0);
    if (CODE_SOURCE == SOURCE_NVFP4) return uvec2(nvfp4_scale(load_byte(block + g)), 0);
    if (CODE_SOURCE == SOURCE_Q4_1 || CODE_SOURCE == SOURCE_Q5_1)
        return uvec2(U16(block).x, U16(block + 2).x);
    if (!TWO_LEVELS) return uvec2(U16(block + (CODE_SOURCE == SOURCE_TQ2_0 ? 64 : 0)).x, 0);
    if (CODE_SOURCE == SOURCE_Q2_K) {
        const uint byte = load_byte(block + g);
        return uvec2(byte & 15, byte >> 4);
    }
    if (CODE_SOURCE == SOURCE_Q3_K)
        return uvec2((nibble(block + 96 + g % 8, g >= 8) |
                      bits_at(block + 104 + g % 4, g / 4 * 2, 2) << 4) - 32, 0);
    if (CODE_SOURCE == SOURCE_Q6_K) return uvec2(load_byte(block + 192 + g), 0);
    if (CODE_SOURCE == SOURCE_IQ4_XS)
        return uvec2((nibble(block + 4 + g / 2, g % 2 != 0) |
                      bits_at(block + 2 + g / 4, g % 4 * 2, 2) << 4) - 32, 0);
    // Q4_K and Q5_K: 6 bits each, the upper two of the last four apart.
    if (g < 4) return uvec2(load_byte(block + 4 + g) & 63, load_byte(block + 8 + g) & 63);
    return uvec2(nibble(block + 8 + g, false) | bits_at(block + g, 6, 2) << 4,
                 nibble(block + 8 + g, true) | bits_at(block + 4 + g, 6, 2) << 4);
}
