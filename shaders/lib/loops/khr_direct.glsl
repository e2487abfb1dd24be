// khr_direct.glsl: VK_KHR_cooperative_matrix on operands in fragment order (fragment_words.glsl):
// every invocation loads its part of a fragment, 16 bytes, straight from memory. No subgroup waits for
// another before the epilogue, but where columns of codes are found: else there is no shared memory
// and no barrier. K is padded with zeros to whole k-tiles. Up to STEPS_AHEAD steps and one tile behind
// the end of copies are read, and not used.
// A may lie in rows, as it came, of which nothing else is read.
//
// Two things count on NVIDIA (driver 580.159.04; bench/NOTES.md): A's words in the order of its
// registers (SWAP_A), and loads that are marked as reading what nobody writes.
#define TAKES_FRAGMENTS
#include "khr_accumulators.glsl"
#include "../inputs/fragment_words.glsl"

shared uvec4 sh[KHR_SLICE(TILE_M, TILE_N, SUBTILES) * SUBGROUPS_K];
#define SLICES_ALONE
#include "khr_slices.glsl"
#include "../inputs/fragments.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Lanes { uvec4 x[]; };

const uint STEPS = TILE_K / FRAGMENT_K;  // of an iteration
const bool A_IN_UNITS = AHEAD == 2;      // is loaded as codes are (codes_in_fragments.glsl)
const uint STEPS_AHEAD = A_IN_UNITS ? 0 : AHEAD;
const uint SLOTS = STEPS_AHEAD + 1;      // steps whose words an invocation holds; divide STEPS

// The left half of a gated tile's columns is of one matrix B, the right half of another. A subgroup
// has columns of one of them, or all.
const bool HAS_BOTH_HALVES = B_HALVES != 0 && SUBGROUPS_N == 1;
const uint LEFT_COLS = HAS_BOTH_HALVES ? COLS / 2 : COLS;

#include "../inputs/codes_in_fragments.glsl"

// A may lie in rows, whose depth is whole k-tiles. With K interleaved an invocation loads two rows'
// words of two steps at once, each 16 bytes; else the device loads fragments as it likes.
const bool A_IN_ROWS = IN_PARTS == 1 && A_PADDED == 0;
const bool A_IN_PAIRS = A_IN_ROWS && INTERLEAVE_K != 0;
const bool A_AS_MATRICES = A_IN_ROWS && !A_IN_PAIRS;
const uint A_LANES = 4;                         // that share a row
const uint A_ROWS = FRAGMENT_LANES / A_LANES;   // of which an invocation has two in a fragment

// Words of A in fragment order are by slot. Those in pairs are of two steps, by row.
uvec4 a_words[2][ROWS * IN_PARTS], b_words[SLOTS][COLS * IN_PARTS];

// Bytes from the tile's first row of A to this invocation's.
uint a_offsets[2][ROWS];

struct Place {
    uint64_t a, b;
};

// A of the unit that begins at `a`, and a word of it.
void load_unit_of_a(const uint slot, const uint64_t a, const uint64_t a_step) {
    if (!A_IN_UNITS || A_AS_MATRICES) return;
    [[unroll]] for (uint s = 0; s < UNIT_STEPS; ++s)
        [[unroll]] for (uint i = 0; i < ROWS; ++i)
            unit_a[slot][s][i] = A_IN_PAIRS
                ? Lanes(a + s / 2 * 2 * a_step + a_offsets[s % 2][i]).x[0]
                : Lanes(a + s * a_step).x[i * FRAGMENT_LANES];
}
uint unit_word(const uint step, const uint i, const uint w) {
    const uint slot = step / UNIT_STEPS % UNIT_SLOTS, s = step % UNIT_STEPS;
    return A_IN_PAIRS ? unit_a[slot][s / 2 * 2 + w / 2][i][s % 2 * 2 + w % 2]
                      : unit_a[slot][s][i][a_place(w)];
}

// `right`: from where the tile's columns would stand in the left half to the right one.
void load_step(const uint step, const Place at, const uint64_t right) {
    [[unroll]] for (uint i = 0; i < ROWS * IN_PARTS && !A_IN_UNITS; ++i) {
        if (!A_IN_ROWS) {
            a_words[step % SLOTS][i] = Lanes(at.a).x[i * FRAGMENT_LANES];
        } else if (A_IN_PAIRS && step % 2 == 0) {
            a_words[0][i] = Lanes(at.a + a_offsets[0][i]).x[0];
            a_words[1][i] = Lanes(at.a + a_offsets[1][i]).x[0];
        }
    }
    if (QUANTISED) return;
    [[unroll]] for (uint j = 0; j < COLS * IN_PARTS; ++j)
        b_words[step % SLOTS][j] =
            Lanes(j < LEFT_COLS * IN_PARTS ? at.b : at.b + right).x[j * FRAGMENT_LANES];
}

void take_step(inout Fragments f, const uint step, const uint64_t a) {
    [[unroll]] for (uint i = 0; i < ROWS * IN_PARTS; ++i) {
        if (A_IN_UNITS && !A_AS_MATRICES) {
            [[unroll]] for (uint w = 0; w < 4; ++w) SET_WORD(f.a[i], w, unit_word(step, i, w))
        } else if (A_IN_PAIRS) {
            [[unroll]] for (uint w = 0; w < 4; ++w)
                SET_WORD(f.a[i], w, a_words[w / 2][i][step % 2 * 2 + w % 2])
        } else if (A_IN_ROWS) {
            coopMatLoad(f.a[i], Lanes(a).x, i * FRAGMENT_M * (size_lda() / GROUP),
                        size_lda() / GROUP, gl_CooperativeMatrixLayoutRowMajor);
        } else {
            [[unroll]] for (uint w = 0; w < 4; ++w)
                SET_WORD(f.a[i], w, a_words[step % SLOTS][i][a_place(w)])
        }
    }
    if (QUANTISED) {
        take_codes(f, step / UNIT_STEPS % UNIT_SLOTS, step % UNIT_STEPS);
        return;
    }
    [[unroll]] for (uint j = 0; j < COLS * IN_PARTS; ++j)
        [[unroll]] for (uint w = 0; w < 4; ++w) SET_WORD(f.b[j], w, b_words[step % SLOTS][j][w])
}

// Rows beyond the last one are the last one again.
uint64_t begin_rows(const Tile t, const uint row) {
    const uint lane = gl_SubgroupInvocationID;
    if (A_IN_PAIRS) {
        [[unroll]] for (uint i = 0; i < ROWS; ++i)
            [[unroll]] for (uint r = 0; r < 2; ++r) {
                const uint own = row + i * FRAGMENT_M + r * A_ROWS + lane / A_LANES;
                const uint exists = EDGES != 0 ? min(own, t.row_end - 1) : own;
                a_offsets[r][i] = (exists - t.row) * size_lda() * IN_SIZE + lane % A_LANES * 16;
            }
        return t.a + uint64_t(t.row) * size_lda() * IN_SIZE;
    }
    return t.a + uint64_t(row) * size_lda() * IN_SIZE;
}

#define ENDS_SUM(s) (SUMS_APART && (s) % SUM_STEPS == SUM_STEPS - 1)

// Subgroups that share K take its k-tiles in turn.
void multiply_tile(inout Acc acc, const Tile t, const bool largest_alone) {
    const uint own = subgroup_k() * TILE_K;
    const bool has_any = own < t.k_end - t.k_begin;  // else not even what is loaded ahead is there
    const uvec2 in_tile = subgroup_position() * uvec2(SUBGROUP_M, SUBGROUP_N);
    const bool is_right = B_HALVES != 0 && !HAS_BOTH_HALVES && in_tile.y >= HALF_N;
    const uint code_col = in_tile.y - (is_right ? HALF_N : 0);
    CodePlace codes = CodePlace(t.b, t.col);
    if (is_right) codes.b += p.b_right;
    uint k = t.k_begin + own;
    if (QUANTISED) {
        load_first_codes(codes, code_col, has_any ? k : 0);  // any, if there are none of its own
        find_columns();
    }
    if (!has_any) return;
    const uint row = (A_IN_ROWS ? t.row : t.a_row) + in_tile.x, col = t.col + in_tile.y;
    const uint64_t a_step = uint64_t(A_IN_ROWS ? 1 : size_lda()) * FRAGMENT_K * IN_SIZE;
    const uint64_t b_step = uint64_t(size_ldb()) * FRAGMENT_K * IN_SIZE;
    const uint first = (t.k_begin + own) / FRAGMENT_K;
    const uint lane = gl_SubgroupInvocationID * 16;
    Place at;
    at.a = A_IN_ROWS ? begin_rows(t, row) : t.a + uint64_t(row) * (FRAGMENT_K * IN_SIZE) + lane;
    at.b = t.b + uint64_t(col) * (FRAGMENT_K * IN_SIZE) + lane;
    at.a += first * a_step + scales_bytes(size_lda());
    at.b += first * b_step + scales_bytes(size_ldb());
    const uint64_t right = p.b_right - uint64_t(HALF_N) * (FRAGMENT_K * IN_SIZE);
    if (is_right) at.b += right;
    if (QUANTISED) {
        [[unroll]] for (uint unit = 0; unit < UNITS_AHEAD; ++unit)
            load_unit_of_a(unit, at.a + unit * UNIT_STEPS * a_step, a_step);
        load_first_scales(codes, code_col, k);
    }
    [[unroll]] for (uint s = 0; s < STEPS_AHEAD; ++s)
        load_step(s, Place(at.a + s * a_step, at.b + s * b_step), right);
    Acc sum;
    [[dont_unroll]] for (uint left = t.k_end - t.k_begin - own; left != 0;) {
        // Where the next k-tile begins. Alone, a subgroup may read copies beyond the last one.
        Place next = Place(at.a + SUBGROUPS_K * STEPS * a_step, at.b + SUBGROUPS_K * STEPS * b_step);
        if ((SUBGROUPS_K != 1 || A_IN_ROWS || A_IN_UNITS) && left <= SUBGROUPS_K * TILE_K) next = at;
        const uint next_k = left <= SUBGROUPS_K * TILE_K ? k : k + SUBGROUPS_K * TILE_K;
        [[unroll]] for (uint s = 0; s < STEPS; ++s) {
            const uint load = s + STEPS_AHEAD;
            const bool is_next = load >= STEPS;
            const Place from = is_next ? next : at;
            const uint steps = is_next ? load - STEPS : load;
            const Place loaded = Place(from.a + steps * a_step, from.b + steps * b_step);
            Fragments f;
            if (QUANTISED && s % UNIT_STEPS == 0) begin_unit(s / UNIT_STEPS % UNIT_SLOTS);
            if (STEPS_AHEAD == 0) load_step(load, loaded, right);
            take_step(f, s, at.a + s * a_step);
            if (STEPS_AHEAD != 0) load_step(load, loaded, right);
            SumScales scales;
            if (ENDS_SUM(s)) take_scales(scales, s / UNIT_STEPS % UNIT_SLOTS, s % UNIT_STEPS);
            if (QUANTISED && s % UNIT_STEPS == LOADING_STEP) {
                const uint unit = s / UNIT_STEPS + UNITS_AHEAD, first = unit * UNIT_STEPS;
                load_unit_of_a(unit % UNIT_SLOTS,
                               first < STEPS ? at.a + first * a_step
                                             : next.a + (first - STEPS) * a_step,
                               a_step);
                load_unit(unit % UNIT_SLOTS, codes,
                          unit < UNITS ? k + unit * UNIT_DEPTH
                                       : next_k + (unit - UNITS) * UNIT_DEPTH);
            }
            if (SUMS_APART) {
                if (s % SUM_STEPS == 0) acc_clear(sum);
                MULTIPLY(sum, f, largest_alone);
                if (ENDS_SUM(s)) add_scaled(acc, sum, scales);
            } else {
                MULTIPLY(acc, f, largest_alone);
            }
        }
        at = next;
        k = next_k;
        left -= SUBGROUPS_K == 1 ? TILE_K : min(left, SUBGROUPS_K * TILE_K);
    }
    if (SCALES_OF != SCALES_OF_CODES) finish_sums(acc);
}

// By whole elements or by parts: fragments.glsl.
#define mma_tile MMA_TILE
