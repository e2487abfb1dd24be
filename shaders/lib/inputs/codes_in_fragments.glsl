// codes_in_fragments.glsl: B of the direct loop as codes: loads of their units (code_fragments.glsl), and their
// elements. Their values: codes.glsl. Their scales and zero points: code_scales.glsl.
//
// Loads are ahead by as many units as there are slots but one: as many slots as an iteration has units,
// up to four, because their places are constants then. With a single slot the last step of a unit
// loads the next one. With AHEAD of 2 those of A are with them: the hardware tells loads apart by six
// scoreboards (NVIDIA's), and who waits for A's would wait for the codes behind.
#include "codes.glsl"
#include "code_fragments.glsl"

const uint UNITS = STEPS / UNIT_STEPS;
const uint UNIT_SLOTS = UNITS % 4 == 0 ? 4 : UNITS % 2 == 0 ? 2 : 1;
const uint UNITS_AHEAD = UNIT_SLOTS == 1 ? 1 : UNIT_SLOTS - 1;
// The step of a unit that loads another one: the first whose place is free.
const uint LOADING_STEP = UNIT_SLOTS == 1 ? UNIT_STEPS - 1 : 0;

// A matrix of codes, and the first column of a tile.
struct CodePlace {
    uint64_t b;
    uint col;
};

// The column of a matrix where a subgroup's fragment begins. `col`: where the subgroup's columns
// begin in the tile, or in its half.
uint matrix_column(const uint col, const uint j) {
    return col + j * FRAGMENT_N - (j < LEFT_COLS ? 0 : HALF_N);
}

#include "code_scales.glsl"

uvec4 unit_codes[UNIT_SLOTS][COLS];
uvec4 unit_a[UNIT_SLOTS][UNIT_STEPS][ROWS];  // by step; in pairs of steps, by row
const uint LANE_BYTES = 16;  // of an invocation's codes in a unit

// The bits of 1024 twice, in a register: NVIDIA's driver takes out a mask and adds a register's bits by one
// instruction, but a constant's by another (580.159.04).
uint halves_of_1024;

// By all invocations.
void find_columns() {
    for (uint i = gl_LocalInvocationIndex; i < FRAGMENT_K * FRAGMENT_N / 8; i += LOCAL_SIZE) {
        const uint first = i * 8 % FRAGMENT_N + (GROUPS_BY_LANE ? i * 8 / FRAGMENT_N * FRAGMENT_N : 0);
        [[unroll]] for (uint w = 0; w < 4; ++w)
            sh[i][w] = number_bits(first + 2 * w) | number_bits(first + 2 * w + 1) << 16;
    }
    barrier();
    FRAGMENT_B columns;
    coopMatLoad(columns, sh, 0, FRAGMENT_N / 8, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint c = 0; c < OWN_COLUMNS; ++c)
        own_columns[c] = uint(float(columns[c * CODE_RUN]));
    halves_of_1024 = 0x64006400u | (own_columns[0] & 0xffff0000u);
    barrier();
    // A word of the fragment holds elements of the first group, or of the second.
    if (GROUPS_BY_LANE) {
        own_group = own_columns[0] / FRAGMENT_N / WORD_ELEMENTS % 4 / 2;
        [[unroll]] for (uint c = 0; c < OWN_COLUMNS; ++c) own_columns[c] %= FRAGMENT_N;
    }
    if (LOADS_OWN) return;
    for (uint i = gl_LocalInvocationIndex; i < FRAGMENT_M * FRAGMENT_N / 4; i += LOCAL_SIZE)
        sh[i] = floatBitsToUint(vec4(i * 4 % FRAGMENT_N) + vec4(0.0, 1.0, 2.0, 3.0));
    barrier();
    ACC_FRAGMENT sums;
    coopMatLoad(sums, sh, 0, FRAGMENT_N / 4, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint e = 0; e < SUM_VALUES; ++e) sum_columns[e] = uint(sums[e]);
    barrier();
}

// Bytes from a CodePlace to an invocation's codes, the same for all units.
uint code_offsets[COLS];

void load_codes(const uint slot, const CodePlace at, const uint k) {
    const uint64_t ld = size_ldb();
    const uint64_t codes = code_block(at.b, k) + ld * BLOCK_SCALES +
        within_block(k) * ld * CODE_WIDTH / 8 +
        uint64_t(at.col / FRAGMENT_N) * (FRAGMENT_LANES * LANE_BYTES);
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        unit_codes[slot][j] =
            Lanes((j < LEFT_COLS ? codes : codes + p.b_right) + code_offsets[j]).x[0];
}

void load_unit(const uint slot, const CodePlace at, const uint k) {
    load_codes(slot, at, k);
    if (CODE_GROUP_K != 0) load_scales(slot, at, k);
}

// The first codes are asked for before columns are found, whose barriers then cost no time.
void load_first_codes(const CodePlace at, const uint col, const uint k) {
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        code_offsets[j] = (matrix_column(col, j) / FRAGMENT_N * FRAGMENT_LANES +
                           gl_SubgroupInvocationID) * LANE_BYTES;
    [[unroll]] for (uint unit = 0; unit < UNITS_AHEAD; ++unit)
        load_codes(unit, at, k + unit * UNIT_DEPTH);
}

void load_first_scales(const CodePlace at, const uint col, const uint k) {
    find_entry_offsets(col);
    if (CODE_GROUP_K == 0)
        [[unroll]] for (uint slot = 0; slot < UNIT_SLOTS; ++slot) load_scales(slot, at, 0);
    else
        [[unroll]] for (uint unit = 0; unit < UNITS_AHEAD; ++unit)
            load_scales(unit, at, k + unit * UNIT_DEPTH);
}

// True if an element is one product of two f16.
#ifdef COMPUTES_IN_F16
const bool SCALES_ARE_F16 = SCALE_TYPE == TYPE_F16 && CODE_ZEROS <= ZEROS_INTEGERS;
#else
const bool SCALES_ARE_F16 = false;
#endif

// Two values, in f32, by what own_factor() has for the column of each.
vec2 scaled_pair(const vec2 value, const vec2 low, const vec2 high) {
    const vec2 factors = vec2(low.x, high.x), others = vec2(low.y, high.y);
    if (CODE_ZEROS == ZEROS_FLOATS) return (value + others) * factors;
    return CODE_ZEROS == ZEROS_MINIMA ? value * factors + others : value * factors;
}

// The pair of a word of codes; scales and zero points are its elements'. All is exact but the product
// with the scale, which is rounded once: in f16 to the same bits as in f32. That packHalf2x16 rounds
// to nearest even, the self-test finds out, too: lavapipe's f16vec2() doesn't.
WORD dequantised_pair(const uint word, const uint pair, const uvec2 scale, const uvec2 zero, const vec2 low,
                      const vec2 high) {
    HALVES value = CODES_ARE_INTEGERS ? integer_pair(word, pair, zero, PAIR_MASK, halves_of_1024)
                                      : float_pair(word, pair);
    if (LOADS_OWN && !CODES_ARE_INTEGERS) value *= HALVES(CODE_FACTOR);
#ifdef COMPUTES_IN_F16
    if (!LOADS_OWN) return value;
    if (SCALES_ARE_F16) return value * HALVES(halves(scale.x).x, halves(scale.y).x);
    return word_from(packHalf2x16(scaled_pair(vec2(value), low, high)));
#else
    if (!LOADS_OWN)  // exact
        return word_from((floatBitsToUint(value.x) >> 16) | (floatBitsToUint(value.y) & 0xffff0000u));
    const vec2 product = scaled_pair(value, low, high);
    return word_from(bf16_pair(float_to_bf16(product.x), float_to_bf16(product.y)));
#endif
}

// Writes B of a step of a unit; A keeps its values.
void take_codes(inout Fragments f, const uint slot, const uint step) {
    const uint g = UNIT_SCALES == 1 ? 0 : step * FRAGMENT_K / CODE_DIVISOR(ENTRY_DEPTH);
    const uint s = slot * UNIT_SCALES + g;
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
        vec2 factors[OWN_COLUMNS];
        if (LOADS_OWN && !SCALES_ARE_F16)
            [[unroll]] for (uint c = 0; c < OWN_COLUMNS; ++c) factors[c] = own_factor(slot, g, j, c);
        [[unroll]] for (uint w = 0; w < 4; ++w) {
            const uint low = 2 * w / CODE_RUN, high = (2 * w + 1) / CODE_RUN;
            uvec2 scale = uvec2(0);
            if (LOADS_OWN)
                scale = uvec2(scale_bits(unit_scales[s][j * OWN_COLUMNS + low]),
                              scale_bits(unit_scales[s][j * OWN_COLUMNS + high]));
            const uvec2 zero = uvec2(own_zero(s, g, j, low), own_zero(s, g, j, high));
            const WORD pair =
                dequantised_pair(unit_codes[slot][j][pair_word(step, w)], w, scale, zero, factors[low], factors[high]);
            f.b[j][2 * w] = pair.x;
            f.b[j][2 * w + 1] = pair.y;
        }
    }
}
