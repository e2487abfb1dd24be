// pack_slots.glsl: copies by slots (group_map.glsl), for a kernel that packs. Groups begin anywhere;
// in the copy each begins at a slot of its own, and zeros fill its last one. GROUPED says what is
// divided: rows of A, or the depth of an operand. Slots that hold nothing are not written: no
// product reads them.
uint capacity() { return GROUPED == GROUPED_ALONG_M ? p.width : p.depth; }

#include "group_offsets.glsl"

// The slots that this workgroup's tile touches: the first one, the group of each, and where in the
// source begins and ends what goes there.
uint tile_slot;
shared uint slot_group[PACK_SLOTS], slot_begin[PACK_SLOTS], slot_end[PACK_SLOTS];

// Finds them, from the tile's first element along the direction that is divided. Each invocation
// looks at a group: at the same ones as in the product, which takes the first one that has a slot,
// too, where offsets are not in order.
void find_slots(const uint first) {
    const uint own = gl_LocalInvocationIndex;
    tile_slot = first / SLOT_SIZE;
    const uint count = (first + PACK_TILE - 1) / SLOT_SIZE - tile_slot + 1;
    if (own < count) slot_group[own] = p.groups;
    barrier();
    for (uint i = 0; i < count; ++i) {
        const uint candidate = first_candidate(tile_slot + i, p.groups, p.candidates);
        const uint end = min(candidate + p.candidates, p.groups);
        for (uint group = candidate + own; group < end; group += LOCAL_SIZE)
            if (has_slot(group, tile_slot + i)) atomicMin(slot_group[i], group);
    }
    barrier();
    if (own < count) {
        const uint group = slot_group[own];
        slot_begin[own] = slot_end[own] = 0;
        if (group < p.groups) {
            slot_begin[own] =
                group_begin(group) + (tile_slot + own - first_slot(group)) * SLOT_SIZE;
            slot_end[own] = group_end(group);
        }
    }
    barrier();
}

// Whether anything goes to the slot of element `at` of the copy.
bool is_written(const uint at) {
    const uint slot = at / SLOT_SIZE - tile_slot;
    return slot_begin[slot] < slot_end[slot];
}

// Where element `at` of the copy stands in the source, and where that ends, which has `size`.
uvec2 place_in_source(const uint direction, const uint at, const uint size) {
    if (GROUPED != direction) return uvec2(at, size);
    const uint slot = at / SLOT_SIZE - tile_slot;
    return uvec2(slot_begin[slot] + at % SLOT_SIZE, slot_end[slot]);
}
