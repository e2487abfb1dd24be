// group_map.glsl: which group a tile belongs to, with no table made beforehand. Group g has the
// slots
//   begin(g) / SLOT_SIZE + g  …  end(g) / SLOT_SIZE + g + 1,
// one of which is a row of tiles, or in copies of operands a k-tile: always as many as the group
// needs, and at most one more. All groups together have capacity / SLOT_SIZE + groups slots,
// whatever the offsets are.
//
// Plain enough to be C++ as well: the tests include this very text. It needs SLOT_SIZE and, clamped
// to the capacity, group_begin(g) and group_end(g).

// `size` is the capacity.
uint slot_count(uint size, uint groups) { return size / SLOT_SIZE + groups; }

uint first_slot(uint group) { return group_begin(group) / SLOT_SIZE + group; }

// Groups in order have different slots. Slots before the first group's, behind the last one's and in gaps
// belong to none.
bool has_slot(uint group, uint slot) {
    return first_slot(group) <= slot && slot < group_end(group) / SLOT_SIZE + group + 1;
}

// The first of at most `most` neighbouring groups, of which one has the slot if any group has: few
// enough that the workgroup looks at all of them at once. A step narrows what is left to an eighth
// by loads that don't wait for each other, because a workgroup has nothing else to do meanwhile.
const uint SEARCH_WIDTH = 8;

uint first_candidate(uint slot, uint groups, uint most) {
    uint first = 0;
    uint count = groups;
    while (count > most) {
        const uint stride = (count + SEARCH_WIDTH - 1) / SEARCH_WIDTH;
        uint passed = 0;
        for (uint i = 1; i < SEARCH_WIDTH; ++i) {
            const uint probe = i * stride < count ? i * stride : 0;  // no probe
            if (first_slot(first + probe) <= slot && probe > passed) passed = probe;
        }
        first += passed;
        count = stride < count - passed ? stride : count - passed;
    }
    return first;
}
