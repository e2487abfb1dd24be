// row_codes.glsl: the scale of a row of 8-bit codes and the factor of its elements, from the bits of the
// largest magnitude. In the order of bits Inf and NaN are the largest.
//   scale = max|row| / 127,  code = nearest integer to x * (127 / max|row|)
const uint INF = 0x7f800000u;
const uint NAN = 0x7fc00000u;

// The quotient of two normal numbers, by their bits, if it is one, too: rounded to nearest. A device's own
// division may err by 2.5 units in the last place; codes are to be the same everywhere.
uint divided(uint a, uint b) {
    const uint a_digits = (a & 0x7fffffu) | 0x800000u, b_digits = (b & 0x7fffffu) | 0x800000u;
    const uint less = a_digits < b_digits ? 1 : 0, shift = 23 + less;
    uint digits = uint(float(a_digits) / float(b_digits) * float(1u << shift));
    // The remainder is small, so that it is known from its lower 32 bits.
    int rest = int((a_digits << shift) - digits * b_digits);
    [[unroll]] for (uint i = 0; i < 6; ++i) {
        const int step = rest < 0 ? -1 : rest >= int(b_digits) ? 1 : 0;
        digits += step;
        rest -= step * int(b_digits);
    }
    if (2 * rest > int(b_digits)) ++digits;
    return (((a >> 23) - (b >> 23) + 127 - less) << 23) | (digits & 0x7fffffu);
}

// False: every code of the row is 0, whatever its elements are.
bool has_codes(uint most) { return most >= QUANTISE_LEAST_BITS && most < INF; }

uint code_scale(uint most) {
    const uint quotient = divided(most, floatBitsToUint(float(QUANTISE_MOST)));
    return has_codes(most) ? quotient : most > INF ? NAN : most == INF ? INF : 0;
}
float code_factor(uint most) {
    return uintBitsToFloat(divided(floatBitsToUint(float(QUANTISE_MOST)), most));
}
