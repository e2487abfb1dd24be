// group_offsets.glsl: where groups begin. Offsets come from the device and may be anything. They are
// clamped to the capacity wherever they are used, and a group ends where it begins at the earliest:
// whatever they say, nothing outside the operands is touched. Where only part of the rows is
// computed, they are relative to its first row. It needs capacity().
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer I32 { int x; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer I64 { int64_t x; };

int64_t raw_offset(uint group) {
    return OFFSETS_64 != 0 ? I64(p.offsets + uint64_t(group) * 8).x
                           : int64_t(I32(p.offsets + uint64_t(group) * 4).x);
}
uint group_offset(uint group) {
    const int64_t first = p.first_row;
    return uint(clamp(raw_offset(group), first, first + int64_t(capacity())) - first);
}

// The size of a slot: rows of a tile or, where operands are copied for groups of K, a k-tile.
const uint SLOT_SIZE = GROUPED == GROUPED_ALONG_K ? TILE_K : TILE_M;
#include "group_map.glsl"
