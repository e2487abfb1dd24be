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
int64_t raw_end(uint group) { return raw_offset(GROUP_ENDS != 0 ? group + p.groups : group + 1); }
uint clamped_offset(const int64_t offset) {
    const int64_t first = p.first_row;
    return uint(clamp(offset, first, first + int64_t(capacity())) - first);
}
uint group_begin(uint group) { return clamped_offset(raw_offset(group)); }
uint group_end(uint group) { return clamped_offset(raw_end(group)); }

// The size of a slot: rows of a tile or, where operands are copied for groups of K, a k-tile.
const uint SLOT_SIZE = GROUPED == GROUPED_ALONG_K ? TILE_K : TILE_M;
#include "group_map.glsl"
