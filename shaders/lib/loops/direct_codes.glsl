// direct_codes.glsl: B of the direct loop as codes: units of them (code_fragments.glsl), and the scales
// of an invocation's columns. Which these are, a matrix of columns' numbers tells. CODE_RUN of its
// elements that follow each other are taken to be of one column: the self-test finds out whether
// they are (KernelKind::code_run).
//
// Loads are a unit ahead where an iteration has an even number of units: their places are constants
// then. Else the last step of a unit loads the next one.
#include "../quantised.glsl"
#include "../code_fragments.glsl"

const uint UNITS = STEPS / UNIT_STEPS;
const uint UNIT_SLOTS = UNITS % 2 == 0 ? 2 : 1;
// Groups of K in a unit.
const uint UNIT_SCALES =
    CODE_GROUP_K == 0 ? 1 : UNIT_DEPTH > CODE_GROUP_K ? UNIT_DEPTH / CODE_DIVISOR(CODE_GROUP_K) : 1;
const uint SCALES = UNIT_SLOTS * UNIT_SCALES;

uvec4 unit_codes[UNIT_SLOTS][COLS];
const uint OWN_COLUMNS = 8 / CODE_RUN;  // of a fragment
uint unit_scales[SCALES][COLS][OWN_COLUMNS], unit_zeros[SCALES][COLS][OWN_COLUMNS];  // bits
uint own_columns[OWN_COLUMNS];

#if IN_TYPE == TYPE_F16
uint number_bits(uint number) { return packHalf2x16(vec2(number, 0.0)); }
#else
uint number_bits(uint number) { return floatBitsToUint(float(number)) >> 16; }
#endif

// Entries, which nobody writes.
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Halves { uint16_t x[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint x[]; };

// By all invocations.
void find_columns() {
    for (uint i = gl_LocalInvocationIndex; i < FRAGMENT_K * FRAGMENT_N / 8; i += LOCAL_SIZE) {
        const uint first = i * 8 % FRAGMENT_N;
        [[unroll]] for (uint w = 0; w < 4; ++w)
            sh[i][w] = number_bits(first + 2 * w) | number_bits(first + 2 * w + 1) << 16;
    }
    barrier();
    FRAGMENT_B columns;
    coopMatLoad(columns, sh, 0, FRAGMENT_N / 8, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint c = 0; c < OWN_COLUMNS; ++c)
        own_columns[c] = uint(float(columns[c * CODE_RUN]));
    barrier();
}

// Where a subgroup's columns begin, and in which half.
struct CodePlace {
    uint64_t b;
    uint col;
};

// The unit at k. `right`: the half of the later columns, where a subgroup has both.
void load_unit(const uint slot, const CodePlace at, const uint k) {
    const uint ld = size_ldb(), within = within_block(k);
    const uint64_t block = code_block(at.b, k);
    const uint64_t codes = block + uint64_t(ld) * BLOCK_SCALES + uint64_t(within) * ld * CODE_WIDTH / 8;
    const uint group = CODE_GROUP_K == 0 ? 0 : within / CODE_DIVISOR(CODE_GROUP_K);
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
        const uint64_t right = j < LEFT_COLS ? 0 : p.b_right;
        const uint col = at.col + j * FRAGMENT_N - (j < LEFT_COLS ? 0 : HALF_N);
        const uint place = col / FRAGMENT_N * FRAGMENT_LANES + gl_SubgroupInvocationID;
        unit_codes[slot][j] = Lanes(codes + right + uint64_t(place) * 16).x[0];
        [[unroll]] for (uint g = 0; g < UNIT_SCALES; ++g) {
            const uint row = (group + g) * ld + col;
            [[unroll]] for (uint c = 0; c < OWN_COLUMNS; ++c) {
                const uint64_t entry = block + right + uint64_t(row + own_columns[c]) * ENTRY_BYTES;
                const uint s = slot * UNIT_SCALES + g;
                if (SCALE_BYTES == 4) {
                    unit_scales[s][j][c] = Words(entry).x[0];
                    if (CODE_ZEROS != 0) unit_zeros[s][j][c] = Words(entry).x[1];
                } else if (CODE_ZEROS != 0) {
                    const uint both = Words(entry).x[0];
                    unit_scales[s][j][c] = both & 0xffffu;
                    unit_zeros[s][j][c] = both >> 16;
                } else {
                    unit_scales[s][j][c] = uint(Halves(entry).x[0]);
                }
            }
        }
    }
}

float scale_value(const uint bits) {
    return SCALE_TYPE == TYPE_F32    ? uintBitsToFloat(bits)
         : SCALE_TYPE == TYPE_BF16 ? bf16_to_float(bits)
                                   : unpackHalf2x16(bits).x;
}

const bool CODES_ARE_INTEGERS = CODES == CODES_INT8 || CODES == CODES_INT4;

// Codes of small floats, half a word apart, as the bits of two f16 that are HALVES_UNIT times smaller.
uint halves_of(const uint codes) {
    if (CODES == CODES_E5M2) return codes << 8;
    if (CODES == CODES_MXFP4) return (codes & 0x00080008u) << 12 | (codes & 0x00070007u) << 9;
    const uint magnitude = codes & 0x007f007fu;
    const uint nan = (magnitude + 0x00010001u) & 0x00800080u;  // the highest magnitude alone carries
    return (codes & 0x00800080u) << 8 | (magnitude | nan) << 7;
}
const float HALVES_UNIT = CODES == CODES_MXFP4 ? 16384.0 : CODES == CODES_E4M3 ? 256.0 : 1.0;

// Two elements, of codes half a word apart; scales and zero points are theirs. Behind the bits of 1024
// an integer below it stands in an f16 as it is. All is exact but the product with the scale, which
// is rounded once: in f16 to the same bits as in f32. That packHalf2x16 rounds to nearest even, the
// self-test finds out, too: lavapipe's f16vec2() doesn't.
#if IN_TYPE == TYPE_F16
ELEMENT_PAIR dequantised_pair(const uint codes, const uvec2 scale, const uvec2 zero) {
    f16vec2 value;
    if (CODES_ARE_INTEGERS)
        value = unpackFloat2x16(codes | 0x64006400u) -
            unpackFloat2x16(0x64006400u + (zero.x | zero.y << 16));
    else
        value = unpackFloat2x16(halves_of(codes)) * float16_t(HALVES_UNIT);
    if (SCALE_TYPE == TYPE_F16) return value * unpackFloat2x16(scale.x | scale.y << 16);
    return unpackFloat2x16(
        packHalf2x16(vec2(value) * vec2(scale_value(scale.x), scale_value(scale.y))));
}
#else
ELEMENT_PAIR dequantised_pair(const uint codes, const uvec2 scale, const uvec2 zero) {
    const vec2 value = CODES_ARE_INTEGERS
        ? unpackHalf2x16(codes | 0x64006400u) - vec2(zero + 1024)
        : unpackHalf2x16(halves_of(codes)) * HALVES_UNIT;
    const vec2 product = value * vec2(scale_value(scale.x), scale_value(scale.y));
    return pair_of(bf16_pair(float_to_bf16(product.x), float_to_bf16(product.y)));
}
#endif

// B of a step of a unit.
void take_codes(out Fragments f, const uint slot, const uint step) {
    const uint g = UNIT_SCALES == 1 ? 0 : step * FRAGMENT_K / CODE_DIVISOR(CODE_GROUP_K);
    const uint s = slot * UNIT_SCALES + g;
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        [[unroll]] for (uint w = 0; w < 4; ++w) {
            const uint codes =
                (unit_codes[slot][j][pair_word(step, w)] >> pair_shift(w)) & PAIR_MASK;
            const uint low = 2 * w / CODE_RUN, high = (2 * w + 1) / CODE_RUN;
            const uvec2 scale = uvec2(unit_scales[s][j][low], unit_scales[s][j][high]);
            uvec2 zero = uvec2(CODE_ZERO(CODES));
            if (CODE_ZEROS != 0) zero = uvec2(unit_zeros[s][j][low], unit_zeros[s][j][high]);
            const ELEMENT_PAIR pair = dequantised_pair(codes, scale, zero);
            f.b[j][2 * w] = pair.x;
            f.b[j][2 * w + 1] = pair.y;
        }
}
