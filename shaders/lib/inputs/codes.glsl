// codes.glsl: a packed quantised B (quantised.h): its addresses, the values of its codes, and its elements in
// the loops that stage. The direct loop's elements: codes_in_fragments.glsl.
#include "code_sizes.glsl"

const bool QUANTISED = IN_CODES;
const bool CODES_ARE_INTEGERS = CODES == CODES_INT8 || CODES == CODES_INT4;
// Bytes of a column, with its scales.
const uint BLOCK_BYTES = BLOCK_SCALES + CODE_BYTES(CODE_DEPTH(CODE_GROUP_K, SCALE_TYPE), CODES);

// The addresses of the block of element k, and of the codes of k to k + 7.
uint64_t code_block(uint64_t b, uint k) {
    return CODE_GROUP_K == 0 ? b : b + uint64_t(k / CODE_DEPTH(CODE_GROUP_K, SCALE_TYPE)) * size_ldb() * BLOCK_BYTES;
}
uint within_block(uint k) { return CODE_GROUP_K == 0 ? k : k % CODE_DEPTH(CODE_GROUP_K, SCALE_TYPE); }
uint64_t codes_address(uint64_t b, uint k, uint n) {
    return code_block(b, k) + uint64_t(size_ldb()) * BLOCK_SCALES +
           (uint64_t(within_block(k) / 8) * size_ldb() + n) * CODE_WIDTH;
}

// The element of a code is factor * (code_value() - zero) + minimum. Products are exact if there are minima: only sums
// are rounded.
struct Scale {
    float factor, zero, minimum;
};

// Scales of two levels: the word of a block, and an entry.
vec2 levels_of(const uint block, const uint entry) {
    // The bits of 2^23 and an integer are their sum: that is quicker than to convert it.
    const float scale = uintBitsToFloat(0x4b000000u | ((entry ^ 0x80u) & 0xffu)) - 8388736.0;
    if (CODE_ZEROS != ZEROS_MINIMA) return vec2(uintBitsToFloat(block) * scale, 0.0);
    const float minimum = uintBitsToFloat(0x4b000000u | ((entry >> 8) & 0xffu)) - 8388608.0;
    return unpackHalf2x16(block) * vec2(scale, minimum);
}

// The words of an entry. Two-level scales have the block's word and the entry. Other scales have the scale and the
// number that follows it. scale_of() converts the words later, so that a load does not stall.
uint load_entry_word(const uint64_t at) { return SCALE_BYTES == 4 ? U32(at).x : uint(U16(at).x); }
uvec2 load_entry(uint64_t b, uint k, uint n) {
    const uint g = CODE_GROUP_K == 0 ? 0 : within_block(k) / CODE_DIVISOR(CODE_GROUP_K);
    const uint64_t block = code_block(b, k), at = block + entry_offset(g, size_ldb(), n);
    if (TWO_LEVELS) return uvec2(U32(block + uint64_t(n) * 4).x, U16(at).x);
    return uvec2(load_entry_word(at), CODE_ZEROS == ZEROS_NONE ? 0 : load_entry_word(at + SCALE_BYTES));
}

float scale_value(const uint bits) {
    return SCALE_TYPE == TYPE_F32    ? uintBitsToFloat(bits)
         : SCALE_TYPE == TYPE_BF16 ? bf16_to_float(bits)
                                   : unpackHalf2x16(bits).x;
}

Scale scale_of(const uvec2 entry) {
    Scale s;
    s.minimum = 0.0;
    s.zero = CODES_ARE_INTEGERS && CODE_ZEROS == ZEROS_NONE ? CODE_ZERO(CODES) : 0.0;
    if (TWO_LEVELS) {
        const vec2 levels = levels_of(entry.x, entry.y);
        s.factor = levels.x;
        if (CODE_ZEROS == ZEROS_MINIMA) s.minimum = -levels.y;
        return s;
    }
    s.factor = scale_value(entry.x);
    if (CODE_ZEROS == ZEROS_INTEGERS) s.zero = float(entry.y);
    if (CODE_ZEROS == ZEROS_FLOATS) s.zero = scale_value(entry.y);
    if (CODE_ZEROS == ZEROS_MINIMA) s.minimum = scale_value(entry.y);
    return s;
}

// --- the values of codes
//
// code_value() serves the loops that stage: every device computes the same bits. integer_pair() and
// float_pair() serve the direct loop, by fewer instructions: 111 instead of 614 µs for 16x16384x16384 e4m3
// (H200, driver 580.159.04; bench/NOTES.md).

// A float of `mantissa` bits after the exponent's, whose bias is `bias`.
float small_float(const uint magnitude, const uint mantissa, const uint bias) {
    const uint exponent = magnitude >> mantissa;
    const uint fraction = (magnitude & ((1u << mantissa) - 1)) | (exponent != 0 ? 1u << mantissa : 0);
    return float(fraction) *
        uintBitsToFloat((max(exponent, 1) + 127 - bias - mantissa) << 23);
}

float code_value(const uint code) {
    if (CODES_ARE_INTEGERS) return float(code);
    float value = 0.0;
    if (CODES == CODES_E2M1) value = small_float(code & 7, 1, 1);
    if (CODES == CODES_E4M3) value = small_float(code & 0x7f, 3, 7);
    if (CODES == CODES_E5M2)
        value = (code & 0x7f) >= 0x7c ? uintBitsToFloat(0x7f800000 | (code & 3) << 21)
                                      : small_float(code & 0x7f, 2, 15);
    return (code >> (CODE_WIDTH - 1)) != 0 ? -value : value;
}

// Two values, from the bits of two f16; and the bits of an element that is a small integer.
#ifdef COMPUTES_IN_F16
#define HALVES f16vec2
HALVES halves(const uint bits) { return unpackFloat2x16(bits); }
uint number_bits(uint number) { return packHalf2x16(vec2(number, 0.0)); }
#else
#define HALVES vec2
HALVES halves(const uint bits) { return unpackHalf2x16(bits); }
uint number_bits(uint number) { return floatBitsToUint(float(number)) >> 16; }
#endif

uint pair_shift(const uint pair);  // code_fragments.glsl

// A pair of integers. `mask`: the bits of pair 0; `halves_of_1024`: the bits of two f16 1024. An integer below
// 1024 in the lowest bits of this f16 adds itself. 4 bits further up it adds 16 times itself.
HALVES integer_pair(const uint word, const uint pair, const uvec2 zero, const uint mask,
                    const uint halves_of_1024) {
    const uint shift = pair_shift(pair) / 8 * 8;
    const bool shifted = pair_shift(pair) != shift;
    const uint both = halves_of_1024 | ((word >> shift) & (mask << (shifted ? 4 : 0)));
    if (!shifted) return halves(both) - halves(0x64006400u + (zero.x | zero.y << 16));
    return fma(halves(both), HALVES(0.0625), -halves(0x54005400u + (zero.x << 4 | zero.y << 20)));
}

// A pair of small floats, over CODE_FACTOR (code_scales.glsl). They differ from f16 only in the exponent's bias
// and in the NaN of e4m3. Packing puts this NaN into the scale.
HALVES float_pair(const uint word, const uint pair) {
    const uint top = word << (16 - CODE_WIDTH - pair_shift(pair));
    if (CODES == CODES_E5M2) return halves(top & 0xff00ff00u);
    if (CODES == CODES_E4M3) return halves((top & 0x80008000u) | (top & 0x7f007f00u) >> 1);
    return halves((top & 0x80008000u) | (top & 0x70007000u) >> 3);
}

// --- elements in the loops that stage

// Eight neighbours along K of one column, a group, rounded to nearest even by integers.
uvec4 dequantised(const uvec2 codes, const Scale s) {
    uvec4 group = uvec4(0);
    [[unroll]] for (uint e = 0; e < GROUP; ++e) {
        const uint bit = e * CODE_WIDTH;
        const uint code = (codes[bit / 32] >> bit % 32) & ((1u << CODE_WIDTH) - 1);
        float value = s.factor * (code_value(code) - s.zero);
        if (CODE_ZEROS == ZEROS_MINIMA) value += s.minimum;
        group[e / WORD_ELEMENTS] |= rounded_bits(value) << (e % WORD_ELEMENTS * 16);
    }
    return group;
}

uvec2 load_codes(uint64_t at) {
    return CODE_WIDTH == 4 ? uvec2(U32(at).x, 0) : U32x2(at).x;
}

#ifdef HAS_SCALED_SUMS
const uint S8_FACTOR = S8_CODE_FACTOR(CODES, SCALE_TYPE, CODE_ZEROS);
const bool HAS_MINIMA = CODE_ZEROS >= ZEROS_FLOATS;

// A column's factor and minimum: an element is factor * integer + minimum.
vec2 column_scales(const uvec2 entry) {
    const Scale s = scale_of(entry);
    const float factor = S8_FACTOR == 1 ? s.factor : s.factor * (1.0 / 16.0);
    return vec2(factor, CODE_ZEROS == ZEROS_FLOATS ? -s.factor * s.zero : s.minimum);
}

// The words of a group, and the elements that they stand for, below a scale: integers, or 8-bit floats as 16-bit ones.
uvec4 code_words(uint64_t at) {
    if (IN_BYTES != 1) return uvec4(load_codes(at), 0, 0);
    return uvec4(load_codes(at), load_codes(at + uint64_t(size_ldb()) * CODE_WIDTH));
}

uvec4 unscaled_group(const uvec4 words, const uint zero) {
    const uint float8 = CODES == CODES_E4M3 ? TYPE_E4M3 : TYPE_E5M2;
    if (IN_BYTES != 1) return uvec4(float8_elements(words.x, float8), float8_elements(words.y, float8));
    if (CODE_WIDTH == 8) return words;
    uvec4 codes;
    if (S8_FACTOR != 1) {
        [[unroll]] for (uint h = 0; h < 2; ++h) {
            codes[2 * h] = words[2 * h] << 4 & 0xf0f0f0f0u;
            codes[2 * h + 1] = words[2 * h] & 0xf0f0f0f0u;
        }
        return codes;
    }
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        codes[2 * h] = words[2 * h] & 0x0f0f0f0fu;
        codes[2 * h + 1] = (words[2 * h] >> 4) & 0x0f0f0f0fu;
    }
    // No byte borrows from the next one.
    const uint subtracted = CODE_ZEROS == ZEROS_NONE ? CODE_ZERO(CODES) : zero;
    if (CODE_ZEROS >= ZEROS_FLOATS) return codes;
    return ((codes | 0x80808080u) - subtracted * 0x01010101u) ^ 0x80808080u;
}
#endif

uvec4 quantised_group(uint64_t b, uint k, uint n) {
    return dequantised(load_codes(codes_address(b, k, n)), scale_of(load_entry(b, k, n)));
}
