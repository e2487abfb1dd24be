// Which group a tile belongs to, with no table made beforehand. Group g has the slots
//   offset(g) / TILE_M + g  …  offset(g + 1) / TILE_M + g + 1,
// one of which is a row of tiles: always as many as its rows need, and at most one more. All groups
// together have capacity / TILE_M + groups slots, whatever the offsets are.
//
// Plain enough to be C++ as well: the tests include this very text. It needs TILE_M and, clamped to
// the capacity, group_offset(g).

uint slot_count(uint capacity, uint groups) { return capacity / TILE_M + groups; }

uint first_slot(uint group) { return group_offset(group) / TILE_M + group; }

// The group that has the slot, if any has: slots before the first group's and behind the last one's
// belong to none, but to a tile that is outside its group. By bisection.
uint group_of_slot(uint slot, uint groups) {
    uint first = 0;
    uint count = groups;
    while (count > 1) {
        const uint half_count = count / 2;
        if (first_slot(first + half_count) <= slot) {
            first += half_count;
            count -= half_count;
        } else {
            count = half_count;
        }
    }
    return first;
}
