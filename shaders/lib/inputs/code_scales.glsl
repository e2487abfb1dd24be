// code_scales.glsl: entries, scales and zero points, of the direct loop's codes (codes_in_fragments.glsl).
//
// Scales multiply sums or codes, as SCALES_OF says. Sums: of all of K, or of the steps that share them,
// whose products then have accumulators of their own; nothing but sums is rounded. Codes: the products
// are rounded to the input type, and CODE_RUN elements of a fragment that follow each other are taken to
// be of one column. The self-test finds out whether they are.
#extension GL_KHR_shader_subgroup_shuffle : require

// INTERLEAVE_K may mix the words of two groups (fragment_words.glsl). All elements of an invocation are then of one of
// these groups. The self-test verifies it, with code_run 4.
const uint INTERLEAVED_DEPTH = INTERLEAVED_BYTES / IN_BYTES;
const uint GROUP_DEPTH = CODE_GROUP_K == 0 ? INTERLEAVED_DEPTH : CODE_GROUP_K;
const uint CUT_DEPTH = INTERLEAVE_K == 0 ? INTERLEAVED_DEPTH : GROUP_DEPTH;
const bool GROUPS_BY_LANE = CUT_DEPTH < INTERLEAVED_DEPTH;
// The depth in which an invocation's elements of a column share an entry.
const uint ENTRY_DEPTH = GROUPS_BY_LANE ? 2 * CODE_GROUP_K : CODE_GROUP_K;

// Entries of a column in a unit.
const uint UNIT_SCALES =
    CODE_GROUP_K == 0 ? 1 : UNIT_DEPTH > ENTRY_DEPTH ? UNIT_DEPTH / CODE_DIVISOR(ENTRY_DEPTH) : 1;
const uint UNIT_PAIRS = GROUPS_BY_LANE ? 0 : 1 - UNIT_SCALES % 2;
const uint ENTRIES_IN_PAIRS = TWO_LEVELS ? UNIT_PAIRS : 0;  // 1: a word is loaded for two
const uint SCALES = UNIT_SLOTS * UNIT_SCALES;

const bool SUMS_APART = SCALES_OF == SCALES_OF_GROUPS;
// The steps of a sum: of an iteration no more, nor of a group.
const uint SUM_DEPTH = TILE_K % CODE_DIVISOR(CODE_GROUP_K) == 0 ? CODE_GROUP_K
                     : CODE_GROUP_K % TILE_K == 0                       ? TILE_K
                                                                        : UNIT_DEPTH;
const uint SUM_STEPS = SUMS_APART ? SUM_DEPTH / FRAGMENT_K : 1;

const uint OWN_COLUMNS = 8 / CODE_RUN;  // of a fragment of B
// An invocation's values of a fragment of accumulators: that they are so many, the self-test finds out, too.
const uint SUM_VALUES = FRAGMENT_M * FRAGMENT_N / FRAGMENT_LANES;
// Entries that an invocation loads. Where scales are of codes they are those of its elements' columns;
// where they are of sums, one column's, so that one load serves ENTRY_COLS fragments, and shuffles do
// the rest. A right half begins with another load.
const bool LOADS_OWN = SCALES_OF == SCALES_OF_CODES;
const uint ENTRY_COLS = LOADS_OWN ? 1 : FRAGMENT_LANES / FRAGMENT_N;
const uint COL_ENTRIES = LOADS_OWN ? OWN_COLUMNS : 1;
const uint LEFT_ENTRIES = (LEFT_COLS + ENTRY_COLS - 1) / ENTRY_COLS * COL_ENTRIES;
const uint ENTRIES = HAS_BOTH_HALVES ? 2 * LEFT_ENTRIES : LEFT_ENTRIES;
const uint MOST_ENTRIES = COLS * OWN_COLUMNS;  // no less, for the sizes of arrays

uint unit_scales[SCALES][MOST_ENTRIES], unit_zeros[SCALES][MOST_ENTRIES];  // bits
uint unit_levels[UNIT_SLOTS][MOST_ENTRIES];  // the words of blocks, of scales in two levels

// Columns, in a fragment, of an invocation's elements of B and of its accumulators.
uint own_columns[OWN_COLUMNS], sum_columns[SUM_VALUES];
uint own_group;  // of two, with GROUPS_BY_LANE

// Bytes from the first entry of a row, at a CodePlace, to another column's. They are the same for all units.
uint entry_columns[MOST_ENTRIES];
// Bytes from an entry to the next column's.
const uint ENTRY_STRIDE = TWO_LEVELS ? 4 : ENTRY_BYTES;

// Entries, which nobody writes.
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Halves { uint16_t x[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint x[]; };

void find_entry_offsets(const uint col) {
    const uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint i = 0; i < ENTRIES; ++i) {
        const uint first = i < LEFT_ENTRIES ? 0 : LEFT_COLS;
        const uint of_half = i < LEFT_ENTRIES ? i : i - LEFT_ENTRIES;
        const uint j = LOADS_OWN ? of_half / COL_ENTRIES
                                 : min(of_half * ENTRY_COLS + lane / FRAGMENT_N, LEFT_COLS - 1);
        const uint column = LOADS_OWN ? own_columns[of_half % COL_ENTRIES] : lane % FRAGMENT_N;
        entry_columns[i] = (matrix_column(col, first + j) + column) * ENTRY_STRIDE;
    }
}

// The entries of group `g` of a unit in `slot`, which begin at `row`. Two of two levels share a word.
void load_entries(const uint slot, const uint g, const uint64_t row) {
    const uint s = slot * UNIT_SCALES + g;
    [[unroll]] for (uint i = 0; i < ENTRIES; ++i) {
        const uint64_t entry = (i < LEFT_ENTRIES ? row : row + p.b_right) + entry_columns[i];
        if (SCALE_BYTES == 4) {
            unit_scales[s][i] = Words(entry).x[0];
            if (CODE_ZEROS != ZEROS_NONE) unit_zeros[s][i] = Words(entry).x[1];
        } else if (ENTRIES_IN_PAIRS != 0) {
            if (g % 2 == 0) {
                unit_scales[s][i] = Words(entry).x[0];
                unit_scales[s + 1][i] = unit_scales[s][i] >> 16;
            }
        } else if (ENTRY_BYTES == 4) {
            unit_scales[s][i] = Words(entry).x[0];  // both
        } else {
            unit_scales[s][i] = uint(Halves(entry).x[0]);
        }
    }
}

// The entries of the unit at k. Where all of K is one group, they are loaded once, to all slots.
void load_scales(const uint slot, const CodePlace at, const uint k) {
    const uint first = CODE_GROUP_K == 0 ? 0 : within_block(k) / CODE_DIVISOR(ENTRY_DEPTH);
    const uint64_t block = code_block(at.b, k);
    [[unroll]] for (uint g = 0; g < UNIT_SCALES; ++g)
        load_entries(slot, g, block + entry_offset(GROUPS_BY_LANE ? 2 * (first + g) + own_group : first + g,
                                                   size_ldb(), at.col));
    if (TWO_LEVELS)
        [[unroll]] for (uint i = 0; i < ENTRIES; ++i)
            unit_levels[slot][i] = Words((i < LEFT_ENTRIES ? block : block + p.b_right) +
                                         uint64_t(at.col) * 4 + entry_columns[i]).x[0];
}

// The word of a column of the subgroup's fragment `j`, from who has loaded it, where scales are of sums.
uint of_column(const uint of_entries[MOST_ENTRIES], const uint j, const uint column) {
    const uint of_half = j < LEFT_COLS ? j : j - LEFT_COLS;
    const uint entry = of_half / ENTRY_COLS + (j < LEFT_COLS ? 0 : LEFT_ENTRIES);
    return subgroupShuffle(of_entries[entry], of_half % ENTRY_COLS * FRAGMENT_N + column);
}

uint scale_bits(const uint entry) { return SCALE_BYTES == 4 ? entry : entry & 0xffffu; }
uint zero_bits(const uint scale, const uint zero) { return SCALE_BYTES == 4 ? zero : scale >> 16; }

// Zero points of an invocation's own columns, where others load them, by group of a unit.
uint own_zeros[UNIT_SCALES][COLS][OWN_COLUMNS];

// By all invocations of a subgroup, before elements of a unit are taken.
void begin_unit(const uint slot) {
    if (CODE_ZEROS == ZEROS_NONE || LOADS_OWN) return;
    [[unroll]] for (uint g = 0; g < UNIT_SCALES; ++g)
        [[unroll]] for (uint j = 0; j < COLS; ++j)
            [[unroll]] for (uint c = 0; c < OWN_COLUMNS; ++c) {
                const uint s = slot * UNIT_SCALES + g;
                own_zeros[g][j][c] = SCALE_BYTES == 4
                    ? of_column(unit_zeros[s], j, own_columns[c])
                    : zero_bits(of_column(unit_scales[s], j, own_columns[c]), 0);
            }
}

// The code of 0 of own column `c`.
uint own_zero(const uint s, const uint g, const uint j, const uint c) {
    if (CODE_ZEROS == ZEROS_NONE) return CODE_ZERO(CODES);
    if (CODE_ZEROS != ZEROS_INTEGERS) return 0;
    const uint entry = j * OWN_COLUMNS + c;
    return LOADS_OWN ? zero_bits(unit_scales[s][entry], unit_zeros[s][entry]) : own_zeros[g][j][c];
}

// The scale of own column `c`, and a summand: minus a zero point of floats, which is added to codes, or a minimum,
// which is added to products.
vec2 own_factor(const uint slot, const uint g, const uint j, const uint c) {
    const uint s = slot * UNIT_SCALES + g, i = j * OWN_COLUMNS + c;
    if (TWO_LEVELS) return vec2(1.0, -1.0) * levels_of(unit_levels[slot][i], unit_scales[s][i]);
    const float factor = scale_value(scale_bits(unit_scales[s][i]));
    if (CODE_ZEROS <= ZEROS_INTEGERS) return vec2(factor, 0.0);
    const float number = scale_value(zero_bits(unit_scales[s][i], unit_zeros[s][i]));
    return vec2(factor, CODE_ZEROS == ZEROS_FLOATS ? -number : number);
}

// The power of two that codes of small floats lack (float_pair()).
const float CODE_FACTOR = CODES == CODES_E4M3 ? 256.0 : CODES == CODES_E2M1 ? 16384.0 : 1.0;

// The scale of each column whose entry an invocation has, of a step of a unit.
struct SumScales {
    uint bits[MOST_ENTRIES];  // of f32
};
void take_scales(inout SumScales scales, const uint slot, const uint step) {
    const uint g = UNIT_SCALES == 1 ? 0 : step * FRAGMENT_K / CODE_DIVISOR(ENTRY_DEPTH);
    [[unroll]] for (uint i = 0; i < ENTRIES; ++i) {
        const uint bits = unit_scales[slot * UNIT_SCALES + g][i];
        scales.bits[i] = floatBitsToUint(scale_value(bits));
    }
}

// The scale of the column of an invocation's value `e` of a fragment of accumulators.
float sum_scale(const SumScales scales, const uint j, const uint e) {
    return uintBitsToFloat(of_column(scales.bits, j, sum_columns[e]));
}

// acc += sum, times its columns' scales.
void add_scaled(inout Acc acc, const Acc sum, const SumScales scales) {
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        [[unroll]] for (uint e = 0; e < SUM_VALUES; ++e) {
            const float scale = sum_scale(scales, j, e);
            [[unroll]] for (uint i = 0; i < ROWS; ++i)
                acc.fragment[i][j][e] += ACC_SCALAR(sum.fragment[i][j][e] * scale);
        }
}

// Multiplies the sums, behind the last product, by scales that all of K shares and by CODE_FACTOR.
void finish_sums(inout Acc acc) {
    SumScales scales;
    if (SCALES_OF == SCALES_OF_ALL) take_scales(scales, 0, 0);
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        [[unroll]] for (uint e = 0; e < SUM_VALUES; ++e) {
            const float scale = SCALES_OF == SCALES_OF_ALL ? sum_scale(scales, j, e) : 1.0;
            [[unroll]] for (uint i = 0; i < ROWS; ++i)
                acc.fragment[i][j][e] = ACC_SCALAR(acc.fragment[i][j][e] * CODE_FACTOR * scale);
        }
}
