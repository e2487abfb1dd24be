// codes.glsl: a packed quantised B (quantised.h): its addresses, the values of its codes, and its elements in
// the loops that stage. The direct loop's elements: codes_in_fragments.glsl.
#include "code_sizes.glsl"

const bool QUANTISED = IN_CODES;
const uint BLOCK_BYTES = BLOCK_SCALES + CODE_BYTES(CODE_DEPTH(CODE_GROUP_K), CODES);  // of a column, with its scales

// Where scale and zero point of element (k, n) stand, and the codes of k to k + 7.
uint64_t code_block(uint64_t b, uint k) {
    return CODE_GROUP_K == 0 ? b : b + uint64_t(k / CODE_DEPTH(CODE_GROUP_K)) * size_ldb() * BLOCK_BYTES;
}
uint within_block(uint k) { return CODE_GROUP_K == 0 ? k : k % CODE_DEPTH(CODE_GROUP_K); }
uint64_t scale_address(uint64_t b, uint k, uint n) {
    const uint row = CODE_GROUP_K == 0 ? 0 : within_block(k) / CODE_DIVISOR(CODE_GROUP_K);
    return code_block(b, k) + (uint64_t(row) * size_ldb() + n) * ENTRY_BYTES;
}
uint64_t codes_address(uint64_t b, uint k, uint n) {
    return code_block(b, k) + uint64_t(size_ldb()) * BLOCK_SCALES +
           (uint64_t(within_block(k) / 8) * size_ldb() + n) * CODE_WIDTH;
}

struct Scale {
    float factor;
    uint zero;  // the code of 0
};

Scale load_scale(uint64_t at) {
    Scale s;
    s.factor = load1(at, SCALE_TYPE);
    s.zero = CODE_ZEROS != 0 ? load_bits(at + SCALE_BYTES) : CODE_ZERO(CODES);
    return s;
}

// A float of `mantissa` bits after the exponent's, whose bias is `bias`.
float small_float(const uint magnitude, const uint mantissa, const uint bias) {
    const uint exponent = magnitude >> mantissa;
    const uint fraction = (magnitude & ((1u << mantissa) - 1)) | (exponent != 0 ? 1u << mantissa : 0);
    return float(fraction) *
        uintBitsToFloat((max(exponent, 1) + 127 - bias - mantissa) << 23);
}

float code_value(const uint code, const uint zero) {
    if (CODES == CODES_INT8 || CODES == CODES_INT4) return float(int(code) - int(zero));
    float value = 0.0;
    if (CODES == CODES_MXFP4) value = small_float(code & 7, 1, 1);
    if (CODES == CODES_E4M3) value = small_float(code & 0x7f, 3, 7);
    if (CODES == CODES_E5M2)
        value = (code & 0x7f) >= 0x7c ? uintBitsToFloat(0x7f800000 | (code & 3) << 21)
                                      : small_float(code & 0x7f, 2, 15);
    return (code >> (CODE_WIDTH - 1)) != 0 ? -value : value;
}

// Eight neighbours along K of one column, a group, rounded to nearest even by integers.
uvec4 dequantised(const uvec2 codes, const Scale s) {
    uvec4 group = uvec4(0);
    [[unroll]] for (uint e = 0; e < GROUP; ++e) {
        const uint bit = e * CODE_WIDTH;
        const uint code = (codes[bit / 32] >> bit % 32) & ((1u << CODE_WIDTH) - 1);
        group[e / WORD_ELEMENTS] |= rounded_bits(s.factor * code_value(code, s.zero))
                                    << (e % WORD_ELEMENTS * 16);
    }
    return group;
}

uvec2 load_codes(uint64_t at) {
    return CODE_WIDTH == 4 ? uvec2(U32(at).x, 0) : U32x2(at).x;
}

uvec4 quantised_group(uint64_t b, uint k, uint n) {
    return dequantised(load_codes(codes_address(b, k, n)), load_scale(scale_address(b, k, n)));
}
