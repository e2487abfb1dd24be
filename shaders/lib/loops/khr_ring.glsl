// khr_ring.glsl: VK_KHR_cooperative_matrix with three stages in shared memory, each
// half a k-tile, FRAGMENT_K, deep. While the products of one half run, fragments of the next are
// read, and a whole k-tile is on its way to registers. It is stored after the products of both
// halves, when one stage is free and another has been read by everyone.
//
// Two things make this fast on NVIDIA (driver 580.159.04, read from the machine code). All of a
// subgroup's global loads in flight share one scoreboard, so that waiting for a load is waiting for
// the youngest one: loads are issued together and waited for once, as late as possible. And what is
// loaded may not live across the end of the loop's body, or it is moved to other registers there,
// which waits for it: the body begins with the loads and ends with the stores.
const uint STAGE_DEPTH = TILE_K / 2;
#define STAGES_SIZE KHR_RING(A_K_INNER, B_K_INNER, TILE_M, TILE_N, TILE_K, IN_SIZE)
#include "khr_fragments.glsl"

const uint STAGE = KHR_RING_STAGE(A_K_INNER, B_K_INNER, TILE_M, TILE_N, TILE_K, IN_SIZE);

// Writes a group of stage_data, the lower half of the k-tile's depth to stage `low` (its offset in
// sh), the upper half to `high`.
void store_group(const uint i, const uint low, const uint high) {
    const uint line = group_line(i), column = group_column(i);
    const uint k = k_inner(i) ? column : line;
    const uint stage = k < STAGE_DEPTH ? low : high;
    const uint at = (k_inner(i) ? line : line % STAGE_DEPTH) * (is_a(i) ? A_STRIDE : B_STRIDE) +
                    (k_inner(i) ? column % STAGE_DEPTH : column) / GROUP;
    sh[stage + (is_a(i) ? 0 : B_OFFSET) + at] = stage_data[i];
}

void stage_store(const uint low, const uint high) {
    [[unroll]] for (uint i = 0; i < LOADS; ++i) convert_stage_group(i);
    [[unroll]] for (uint i = 0; i < LOADS; ++i)
        if (EVEN_LOADS || has_group(i)) store_group(i, low, high);
}

// Loads up to one k-tile, of which `depth` <= TILE_K elements of K exist, maybe none.
void stage_load_first(const Tile t, const uint depth) {
    stage_load_tail(t, depth);
    [[unroll]] for (uint i = 0; i < LOADS; ++i) stage_advance(i);
    stage_k += TILE_K;
}

const uint K_TILE_NONE = 0, K_TILE_FULL = 1, K_TILE_TAIL = 2;

// Multiplies the upper half of a k-tile, which `upper` holds, and the lower half of the next one,
// which stands in the ring. Loads the one after it, if there is one, into the ring. Every turn the
// stage that was free takes the lower half and the one that held the lower half takes the upper.
#if KHR_RING_STAGES != 3
#error the order of the stages below is that of three
#endif
void ring_step(inout Acc acc, inout Fragments lower, inout Fragments upper, const Tile t,
               const uint turn, const uint k_tile, const uint tail) {
    const uint free_stage = 2 * turn % 3 * STAGE;
    const uint low_stage = (2 * turn + 1) % 3 * STAGE;
    const uint high_stage = (2 * turn + 2) % 3 * STAGE;
    barrier();
    if (k_tile == K_TILE_FULL) stage_load();
    if (k_tile == K_TILE_TAIL) stage_load_tail(t, tail);
    load_fragments(lower, low_stage, 0);
    multiply(acc, upper);
    barrier();
    load_fragments(upper, high_stage, 0);
    multiply(acc, lower);
    if (k_tile != K_TILE_NONE) stage_store(free_stage, low_stage);
}

void mma_tile(inout Acc acc, const Tile t) {
    const uint depth = t.k_end - t.k_begin;
    if (depth == 0) return;
    const uint k_tiles = depth / TILE_K;  // whole ones
    const uint tail = K_TAIL != 0 ? depth % TILE_K : 0;

    // The first two k-tiles, one of which may be the tail, or missing: then it is stored as zeros,
    // which nobody reads.
    Fragments lower, upper;
    stage_begin(t);
    stage_load_first(t, min(depth, TILE_K));
    stage_store(2 * STAGE, 0);
    barrier();
    stage_load_first(t, k_tiles == 0 ? 0 : min(depth - TILE_K, TILE_K));
    load_fragments(lower, 2 * STAGE, 0);
    load_fragments(upper, 0, 0);
    multiply(acc, lower);
    barrier();
    stage_store(STAGE, 2 * STAGE);

    // Three turns bring every stage back to its place: in this loop all offsets are constants.
    uint turns = max(k_tiles, 2) - 2, turn = 0;
    if (PEEL != 0) {
        [[dont_unroll]] for (; turns >= 3; turns -= 3)
            [[unroll]] for (uint i = 0; i < 3; ++i)
                ring_step(acc, lower, upper, t, i, K_TILE_FULL, 0);
    }
    [[dont_unroll]] for (; turn < turns; ++turn)
        ring_step(acc, lower, upper, t, turn, K_TILE_FULL, 0);
    if (tail != 0 && k_tiles >= 2) ring_step(acc, lower, upper, t, turn++, K_TILE_TAIL, tail);
    if (depth > TILE_K) ring_step(acc, lower, upper, t, turn, K_TILE_NONE, 0);
    multiply(acc, upper);
}
