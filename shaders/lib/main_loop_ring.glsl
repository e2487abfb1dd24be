// The main loop of khr with three stages in shared memory, each half a slab, FRAGMENT_K, deep. While
// the products of one half run, fragments of the next are read, and a whole slab is on its way to
// registers. It is stored after the products of both halves, when one stage is free and another has
// been read by everyone.
//
// Two things make this fast on NVIDIA (driver 580.159.04, read from the machine code). All of a
// subgroup's global loads in flight share one scoreboard, so that waiting for a load is waiting for
// the youngest one: loads are issued together and waited for once, as late as possible. And what is
// loaded may not live across the end of the loop's body, or it is moved to other registers there,
// which waits for it: the body begins with the loads and ends with the stores.

void stage_store(const uint low, const uint high) {
    [[unroll]] for (uint i = 0; i < LOADS; ++i)
        if (EVEN_LOADS || has_group(i)) store_group(i, low, high);
}

// Loads up to one slab, of which `depth` <= TILE_K elements of K exist, maybe none.
void stage_load_first(const Tile t, const uint depth) {
    stage_load_tail(t, depth);
    [[unroll]] for (uint i = 0; i < LOADS; ++i) stage_advance(i);
}

const uint SLAB_NONE = 0, SLAB_FULL = 1, SLAB_TAIL = 2;

// Multiplies the upper half of a slab, which `upper` holds, and the lower half of the next one,
// which stands in the ring. Loads the one after it, if there is one, into the ring. Every turn the
// stage that was free takes the lower half and the one that held the lower half takes the upper.
void ring_step(inout Acc acc, inout Fragments lower, inout Fragments upper, const Tile t,
               const uint turn, const uint slab, const uint tail) {
    const uint free_stage = 2 * turn % 3 * STAGE_SIZE;
    const uint low_stage = (2 * turn + 1) % 3 * STAGE_SIZE;
    const uint high_stage = (2 * turn + 2) % 3 * STAGE_SIZE;
    barrier();
    if (slab == SLAB_FULL) stage_load();
    if (slab == SLAB_TAIL) stage_load_tail(t, tail);
    load_fragments(lower, low_stage, 0);
    multiply(acc, upper);
    barrier();
    load_fragments(upper, high_stage, 0);
    multiply(acc, lower);
    if (slab != SLAB_NONE) stage_store(free_stage, low_stage);
}

// To be called again in the same workgroup only after a barrier().
void mma_tile_ring(inout Acc acc, const Tile t) {
    const uint depth = t.k_end - t.k_begin;
    if (depth == 0) return;
    const uint slabs = depth / TILE_K;  // whole ones
    const uint tail = K_TAIL != 0 ? depth % TILE_K : 0;

    // The first two slabs, one of which may be the tail, or missing: then it is stored as zeros,
    // which nobody reads.
    Fragments lower, upper;
    stage_begin(t);
    stage_load_first(t, min(depth, TILE_K));
    stage_store(2 * STAGE_SIZE, 0);
    barrier();
    stage_load_first(t, slabs == 0 ? 0 : min(depth - TILE_K, TILE_K));
    load_fragments(lower, 2 * STAGE_SIZE, 0);
    load_fragments(upper, 0, 0);
    multiply(acc, lower);
    barrier();
    stage_store(STAGE_SIZE, 2 * STAGE_SIZE);

    // Three turns bring every stage back to its place: in this loop all offsets are constants.
    uint turns = max(slabs, 2) - 2, turn = 0;
    if (PEEL != 0) {
        [[dont_unroll]] for (; turns >= 3; turns -= 3)
            [[unroll]] for (uint i = 0; i < 3; ++i)
                ring_step(acc, lower, upper, t, i, SLAB_FULL, 0);
    }
    [[dont_unroll]] for (; turn < turns; ++turn)
        ring_step(acc, lower, upper, t, turn, SLAB_FULL, 0);
    if (tail != 0 && slabs >= 2) ring_step(acc, lower, upper, t, turn++, SLAB_TAIL, tail);
    if (depth > TILE_K) ring_step(acc, lower, upper, t, turn, SLAB_NONE, 0);
    multiply(acc, upper);
}
