// khr_direct.glsl: VK_KHR_cooperative_matrix on operands in fragment order (fragment_words.glsl):
// every invocation loads its part of a fragment, 16 bytes, straight from memory. Before the epilogue
// there is no shared memory and no barrier: no subgroup waits for another. K is padded with zeros to
// whole k-tiles. Up to AHEAD steps and one tile behind the end are read, and not used.
//
// Two things count on NVIDIA (driver 580.159.04; bench/NOTES.md): A's words in the order of its
// registers (SWAP_A), and loads that are marked as reading what nobody writes.
#define TAKES_FRAGMENTS
#include "khr_accumulators.glsl"
#include "fragment_words.glsl"

shared uvec4 sh[KHR_SLICE(TILE_M, TILE_N, SUBTILES) * SUBGROUPS_K];
#define SLICES_ALONE
#include "khr_slices.glsl"
#define HAS_NARROW_SLICES
#include "khr_narrow.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Lanes { uvec4 x[]; };

const uint STEPS = TILE_K / FRAGMENT_K;  // of an iteration
const uint SLOTS = AHEAD + 1;            // steps whose words an invocation holds; divide STEPS

// The left half of a gated tile's columns is of one matrix B, the right half of another. A subgroup
// has columns of one of them, or all.
const bool HAS_BOTH_HALVES = B_HALVES != 0 && SUBGROUPS_N == 1;
const uint LEFT_COLS = HAS_BOTH_HALVES ? COLS / 2 : COLS;

uvec4 a_words[SLOTS][ROWS], b_words[SLOTS][COLS];

// `right`: from where the tile's columns would stand in the left half to the right one.
void load_step(const uint slot, const uint64_t a, const uint64_t b, const uint64_t right) {
    [[unroll]] for (uint i = 0; i < ROWS; ++i) a_words[slot][i] = Lanes(a).x[i * FRAGMENT_LANES];
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        b_words[slot][j] = Lanes(j < LEFT_COLS ? b : b + right).x[j * FRAGMENT_LANES];
}

void multiply_step(inout Acc acc, const uint slot) {
    Fragments f;
    [[unroll]] for (uint i = 0; i < ROWS; ++i)
        [[unroll]] for (uint w = 0; w < 4; ++w) SET_WORD(f.a[i], w, a_words[slot][i][a_place(w)])
    [[unroll]] for (uint j = 0; j < COLS; ++j)
        [[unroll]] for (uint w = 0; w < 4; ++w) SET_WORD(f.b[j], w, b_words[slot][j][w])
    multiply(acc, f);
}

// Subgroups that share K take its k-tiles in turn.
void mma_tile(inout Acc acc, const Tile t) {
    const uint own = subgroup_k() * TILE_K;
    if (own >= t.k_end - t.k_begin) return;  // not even what is loaded ahead is there
    const uvec2 at = uvec2(t.a_row, t.col) + subgroup_position() * uvec2(SUBGROUP_M, SUBGROUP_N);
    const uint64_t a_step = uint64_t(size_lda()) * FRAGMENT_K * IN_SIZE;
    const uint64_t b_step = uint64_t(size_ldb()) * FRAGMENT_K * IN_SIZE;
    const uint first = (t.k_begin + own) / FRAGMENT_K;
    const uint lane = gl_SubgroupInvocationID * 16;
    uint64_t a = t.a + first * a_step + uint64_t(at.x) * (FRAGMENT_K * IN_SIZE) + lane;
    uint64_t b = t.b + first * b_step + uint64_t(at.y) * (FRAGMENT_K * IN_SIZE) + lane;
    const uint64_t right = p.b_right - uint64_t(HALF_N) * (FRAGMENT_K * IN_SIZE);
    if (B_HALVES != 0 && !HAS_BOTH_HALVES && at.y - t.col >= HALF_N) b += right;
    [[unroll]] for (uint s = 0; s < AHEAD; ++s)
        load_step(s, a + s * a_step, b + s * b_step, right);
    [[dont_unroll]] for (uint left = t.k_end - t.k_begin - own; left != 0;) {
        // Where the next k-tile begins. Alone, a subgroup may read beyond the last one.
        uint64_t next_a = a + SUBGROUPS_K * STEPS * a_step;
        uint64_t next_b = b + SUBGROUPS_K * STEPS * b_step;
        if (SUBGROUPS_K != 1 && left <= SUBGROUPS_K * TILE_K) {
            next_a = a;
            next_b = b;
        }
        [[unroll]] for (uint s = 0; s < STEPS; ++s) {
            const uint load = s + AHEAD;
            if (load < STEPS)
                load_step(load % SLOTS, a + load * a_step, b + load * b_step, right);
            else
                load_step(load % SLOTS, next_a + (load - STEPS) * a_step,
                          next_b + (load - STEPS) * b_step, right);
            multiply_step(acc, s % SLOTS);
        }
        a = next_a;
        b = next_b;
        left -= SUBGROUPS_K == 1 ? TILE_K : min(left, SUBGROUPS_K * TILE_K);
    }
}
