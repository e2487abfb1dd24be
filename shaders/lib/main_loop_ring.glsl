// The main loop of khr with three stages in shared memory, each half a slab, FRAGMENT_K, deep. While
// the products of one half run, fragments of the next are read, and a whole slab is on its way to
// registers. It is stored two barriers after it was asked for, when one stage is free and another
// has been read by everyone.
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

// The stages by what is in them: the two halves of a slab, the lower one still to be read by some
// subgroups, and what may be overwritten. Offsets in sh.
struct Ring {
    uint low, high, free;
};
Ring turned(const Ring r) { return Ring(r.free, r.low, r.high); }

const uint SLAB_NONE = 0, SLAB_FULL = 1, SLAB_TAIL = 2;

// Multiplies the upper half of a slab, which `upper` holds, and the lower half of the next one,
// which stands in the ring. Loads the one after it, if there is one, into the ring.
void ring_step(inout Acc acc, inout Fragments lower, inout Fragments upper, const Tile t,
               const Ring ring, const uint slab, const uint tail) {
    barrier();
    if (slab == SLAB_FULL) stage_load();
    if (slab == SLAB_TAIL) stage_load_tail(t, tail);
    load_fragments(lower, ring.low, 0);
    multiply(acc, upper);
    barrier();
    load_fragments(upper, ring.high, 0);
    multiply(acc, lower);
    if (slab != SLAB_NONE) stage_store(ring.free, ring.low);
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
    Ring ring = Ring(STAGE_SIZE, 2 * STAGE_SIZE, 0);

    // Three turns bring every stage back to its place: in this loop all offsets are constants.
    uint left = max(slabs, 2) - 2;
    if (PEEL != 0) {
        const Ring first = Ring(STAGE_SIZE, 2 * STAGE_SIZE, 0);
        const Ring second = turned(first), third = turned(second);
        [[dont_unroll]] for (; left >= 3; left -= 3) {
            ring_step(acc, lower, upper, t, first, SLAB_FULL, 0);
            ring_step(acc, lower, upper, t, second, SLAB_FULL, 0);
            ring_step(acc, lower, upper, t, third, SLAB_FULL, 0);
        }
    }
    [[dont_unroll]] for (; left > 0; --left) {
        ring_step(acc, lower, upper, t, ring, SLAB_FULL, 0);
        ring = turned(ring);
    }
    if (tail != 0 && slabs >= 2) {
        ring_step(acc, lower, upper, t, ring, SLAB_TAIL, tail);
        ring = turned(ring);
    }
    if (depth > TILE_K) ring_step(acc, lower, upper, t, ring, SLAB_NONE, 0);
    multiply(acc, upper);
}
