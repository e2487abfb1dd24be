// grouped.glsl: which tile of which group a workgroup computes.
uint capacity() { return GROUPED == GROUPED_ALONG_M ? p.m : size_k(); }

#include "group_offsets.glsl"
#include "shared_word.glsl"

// A tile outside its group ends before it begins.
bool is_in_group(const Tile t) { return t.row < t.row_end; }

shared uint found_group, found_begin, found_end;

// The matrix of a group: B, and what has a vector for each matrix.
uint matrix_of(const uint group) {
    if (INDEXED_B == 0) return group;
    return min(U32(p.b_index + uint64_t(min(group, p.groups - 1)) * 4).x, p.batch - 1);
}

// Reports indices of a tile's rows that are out of range. Stores the row of each term for sum_rows.comp: the
// lowest row with that index.
void note_rows(const Tile t, const uint group) {
    for (uint row = t.row + gl_LocalInvocationIndex; row < min(t.row + TILE_M, t.row_end);
         row += LOCAL_SIZE) {
        const uint index = row_index(row);
        const bool has_place = SCATTER == SCATTER_NONE || index < places_in_d();
        bool is_good = has_place;
        if (GATHER != 0) is_good = is_good && index / GATHER < rows_of_a();
        if (!is_good && p.bad_group != 0) atomicMin(SharedWord(p.bad_group).x, group, RELAXED);
        if (SCATTER == SCATTER_TERMS && has_place)
            atomicMin(SharedWord(p.partial + uint64_t(index) * 4).x, row, RELAXED);
    }
}

// Groups of rows: the tile of a slot. Each invocation looks at a group. Where offsets are not in
// order several may find theirs, and the first one has it.
Tile tile_of_rows(uint id) {
    const uvec2 at = tile_position(id, slot_count(p.m, p.groups));
    const uint slot = at.y;
    const uint group = first_candidate(slot, p.groups, LOCAL_SIZE) + gl_LocalInvocationIndex;
    if (gl_LocalInvocationIndex == 0) {
        found_group = p.groups;
        found_begin = found_end = 0;
    }
    barrier();
    const bool has = group < p.groups && has_slot(group, slot);
    if (has) atomicMin(found_group, group);
    barrier();
    if (has && found_group == group) {
        found_begin = group_begin(group);
        found_end = group_end(group);
    }
    barrier();
    const uint first = found_begin / TILE_M + found_group;
    const uint matrix = matrix_of(found_group);
    Tile t = batch_tile(0);
    t.b += matrix * p.b_batch;
    t.bias += matrix * p.bias_batch;
    if (STEP_COUNT != 0) {  // vectors in these places: matrices have rows for all groups
        t.c += matrix * p.c_batch;
        t.aux += matrix * p.aux_batch;
        t.extra += matrix * p.extra_batch;
    }
    if (COLUMN_SCALES == SCALES_PER_MATRIX) t.column_scales += matrix * column_scales_bytes();
    if (COLUMN_SCALES == SCALES_OF_PARTS) t.column_scales += matrix * p.b_batch;
    t.row = found_begin + (slot - first) * TILE_M;
    t.a_row = slot * TILE_M;
    t.row_end = slot < first ? 0 : found_end;
    t.col = at.x * TILE_COLUMNS;
    if ((GATHER != 0 || SCATTER != SCATTER_NONE) && at.x == 0) note_rows(t, found_group);
    return t;
}

// Groups of K: a tile of the group's own D. An empty sum is 0, also times Inf. Copies hold each
// group in slots of its own, padded with zeros.
Tile tile_of_depth(uint id, uint group) {
    Tile t = tile_at(id, group, 0);
    t.k_begin = group_begin(group);
    t.k_end = max(group_end(group), t.k_begin);
    if (t.k_begin == t.k_end) t.alpha = 0.0;
#ifdef TAKES_FRAGMENTS
    const uint k_tiles = (t.k_end - t.k_begin + TILE_K - 1) / TILE_K;
    t.k_begin = first_slot(group) * TILE_K;
    t.k_end = t.k_begin + k_tiles * TILE_K;
#endif
    return t;
}

// The simple schedule: workgroup x is a tile, and with groups of K, y is the group. The persistent
// schedule: as many workgroups as the device keeps resident take all tiles of all groups by stride,
// which is the same assignment every time.
uint first_tile_id() { return first_tile() + gl_WorkGroupID.x; }

uint tile_id_count() {
    return GROUPED == GROUPED_ALONG_M ? slot_count(p.m, p.groups) * tile_columns()
                                      : tile_count() * p.groups;
}

Tile grouped_tile(uint id) {
    if (GROUPED == GROUPED_ALONG_M) return tile_of_rows(id);
    if (PERSISTENT == 0) return tile_of_depth(id, first_batch() + gl_WorkGroupID.y);
    return tile_of_depth(id % tile_count(), id / tile_count());
}

// Reports the lowest group whose offsets are not in order or not within the capacity, or whose matrix does
// not exist. The last part of the rows has the word for it, if there is one. The workgroups of the first
// dispatch divide the groups among them.
void report_bad_offsets() {
    if (p.bad_group == 0 || first_tile() != 0 || first_batch() + gl_WorkGroupID.y != 0) return;
    const uint workgroups = min(gl_NumWorkGroups.x, 65536);  // more have no group to look at
    if (gl_WorkGroupID.x >= workgroups) return;
    for (uint g = gl_WorkGroupID.x * LOCAL_SIZE + gl_LocalInvocationIndex; g < p.groups;
         g += workgroups * LOCAL_SIZE) {
        const int64_t begin = raw_offset(g), end = raw_end(g);
        const bool has_matrix = INDEXED_B == 0 || U32(p.b_index + uint64_t(g) * 4).x < p.batch;
        if (begin < 0 || end < begin || end > int64_t(capacity()) + p.first_row || !has_matrix)
            atomicMin(SharedWord(p.bad_group).x, g, RELAXED);
    }
}
