// D = row operation(epilogue(alpha * A·B)): a workgroup keeps the values of its tile until it knows
// their whole rows: at once, where the tile is as wide as N; else from the workgroups of the same
// rows, a panel, for which it waits; or from an earlier dispatch of this.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS ReduceTilesParams
#define WHOLE_SLICES
#define IS_SLICE false
#include "lib/contract.glsl"
#include "lib/rows/row_state.glsl"
#include "lib/rows/row_result.glsl"
#include "lib/rows/row_scalar.glsl"
#include "lib/schedule/device_barrier.glsl"
#include "lib/rows/row_panel.glsl"

struct Values {
    vec4 x4[VALUE_SLICES * MOST_SLICE_VALUES];
};

// The part of a row that an invocation merges first.
const uint PART_X4 = ROW_PART_X4(TILE_M, TILE_N, ROW_MOMENTS);
const uint PARTS = ROW_PARTS(TILE_M, TILE_N, ROW_MOMENTS);
const uint DISTANCES = ROW_MOMENTS ? TILE_M * PARTS : 1;
shared vec2 row_parts[TILE_M * PARTS];
shared float row_distances[DISTANCES];

void keep_part(const uint at, const vec3 kept) {
    row_parts[at] = kept.xy;
    if (ROW_MOMENTS) row_distances[at] = kept.z;
}
vec3 kept_part(const uint at) { return vec3(row_parts[at], ROW_MOMENTS ? row_distances[at] : 0.0); }

// The number of columns that exist of `count` x4s of the tile, from its x4 `x4` on.
uint columns_from(const Tile t, const uint x4, const uint count) {
    if (EDGES == 0) return count * 4;
    const uint first = t.col + x4 * 4;
    return first < size_n() ? min(size_n() - first, count * 4) : 0;
}

RowState part_state(const Tile t, const uint row, const uint part) {
    return known_row_state(columns_from(t, part * PART_X4, PART_X4),
                           kept_part(row * PARTS + part));
}

// Runs the elementwise epilogue of a slice and keeps the values, and in shared memory the states of
// parts of rows.
void take_slice(const Acc acc, const Tile t, const uint slice, inout Values values,
                inout ColumnSums sums) {
    begin_slice(acc, slice);
    begin_scratch();
    [[unroll]] for (uint i = 0; i < SLICE_VALUES; ++i) {
        if (!has_value(i)) continue;
        const uvec2 place = value_place(i);
        const uint row = t.row + value_row(slice, place.x), col = t.col + place.y * 4;
        vec4 v = vec4(0.0);
        if (is_inside(t, row, col)) {
            const vec4 c = epilogue_c4(t, row, col);
            v = epilogue_value4(t, row, col, slice_value(acc, slice, i), c,
                                epilogue_bias4(t, row, col));
            v = finished4(t, row, col, v, c);
        }
        values.x4[slice * SLICE_VALUES + i] = v;
        add_column_sum(sums, i);
    }
    [[unroll]] for (uint i = 0; i < SLICE_VALUES; ++i) {
        if (!has_value(i)) continue;
        const uvec2 place = value_place(i);
        const uint row = t.row + value_row(slice, place.x), col = t.col + place.y * 4;
        RowState s = no_row_state();
        if (is_inside(t, row, col))
            s = row_state(values.x4[slice * SLICE_VALUES + i], size_n() - col);
        set_scratch(place.x * VALUE_STRIDE + place.y, vec4(kept_state(s), 0.0));
    }
    barrier();
    // Neighbouring invocations take neighbouring rows, which lie in different banks.
    [[dont_unroll]] for (uint i = gl_LocalInvocationIndex; i < VALUE_ROWS * PARTS; i += LOCAL_SIZE) {
        const uint line = i % VALUE_ROWS, part = i / VALUE_ROWS;
        RowState fours[ROW_PART_MOST / 4];
        [[unroll]] for (uint four = 0; four < PART_X4 / 4; ++four) {
            RowState s[4];
            [[unroll]] for (uint x = 0; x < 4; ++x) {
                const uint x4 = part * PART_X4 + four * 4 + x;
                s[x] = known_row_state(columns_from(t, x4, 1),
                                       scratch(line * VALUE_STRIDE + x4).xyz);
            }
            fours[four] = merge_four(s);
        }
        [[unroll]] for (uint width = 1; width < PART_X4 / 4; width *= 2)
            [[unroll]] for (uint x = 0; x < PART_X4 / 4; x += 2 * width)
                fours[x] = merge_halves(fours[x], fours[x + width]);
        keep_part(value_row(slice, line) * PARTS + part, kept_state(fours[0]));
    }
}

RowState tile_state(const Tile t, const uint row) {
    RowState s[ROW_MOST_PARTS];
    [[unroll]] for (uint part = 0; part < PARTS; ++part) s[part] = part_state(t, row, part);
    [[unroll]] for (uint width = 1; width < PARTS; width *= 2)
        [[unroll]] for (uint part = 0; part < PARTS; part += 2 * width)
            s[part] = merge_halves(s[part], s[part + width]);
    return s[0];
}

void store_slice(const Values values, const Tile t, const uint slice) {
    [[unroll]] for (uint i = 0; i < SLICE_VALUES; ++i) {
        if (!has_value(i)) continue;
        const uvec2 place = value_place(i);
        const uint line = value_row(slice, place.x);
        const uint row = t.row + line, col = t.col + place.y * 4;
        if (!is_inside(t, row, col)) continue;
        const vec4 d = row_result4(values.x4[slice * SLICE_VALUES + i],
                                   kept_part(line * PARTS), row_vectors4(col));
        store_d4(t.d, row, col, d);
    }
}

// Leaves the coefficients of all rows in row_parts, and stores their numbers. False: some of this
// invocation's rows are not known.
bool finish_rows(const Tile t, const Panel panel, const uint stage, uint64_t batch) {
    bool known = true;
    uint left = SPIN_LIMIT;
    [[dont_unroll]] for (uint row = gl_LocalInvocationIndex; row < TILE_M; row += LOCAL_SIZE) {
        RowState s = no_row_state();
        if (stage == ROW_STAGE_RESIDENT) s = tile_state(t, row);
        else if (!panel_state(panel.states, row, stage == ROW_STAGE_PANEL, left, s)) known = false;
        if (!ROW_HAS_SCALAR) keep_part(row * PARTS, row_coefficients(s));
        // One of the tiles that share rows stores their numbers.
        if (ROW_HAS_VALUE && (ROW_HAS_SCALAR || t.col == 0) && t.row + row < t.row_end)
            store_row_scalar(batch, t.row + row, s);
    }
    return known;
}

void main() {
    const uint stage = ROW_SHARED == 0 ? ROW_STAGE_RESIDENT : p.slices & ROW_STAGE_MASK;
    uint id = first_tile() + gl_WorkGroupID.x, batch = first_batch() + gl_WorkGroupID.y;
    if (stage == ROW_STAGE_PANEL) {
        const uint ticket = next_ticket(), tiles = tile_count();
        if (ticket >= tiles * (SUM_BATCH != 0 ? 1 : p.batch)) return;
        id = ticket % tiles;
        batch = ticket / tiles;
    }
    const Tile tile = tile_at(id, batch, 0);
    const Panel panel = panel_of(tile, batch);
    if (ROW_SHARED != 0)
        if ((p.slices & ROW_STAGE_GUARDED) != 0 && is_stored(panel)) return;

    Acc acc;
    acc_clear(acc);
    multiply_tile(acc, tile);
    Values values;
    ColumnSums sums;
    begin_column_sums(sums);
    [[unroll]] for (uint slice = 0; slice < VALUE_SLICES; ++slice)
        take_slice(acc, tile, slice, values, sums);
    barrier();
    store_column_sums(sums, tile);
    store_amax(tile);

    if (stage == ROW_STAGE_PANEL || stage == ROW_STAGE_STATISTICS)
        [[dont_unroll]] for (uint row = gl_LocalInvocationIndex; row < TILE_M; row += LOCAL_SIZE)
            tell_panel(panel, row, tile_state(tile, row));
    // D does not wait for the rows' numbers.
    if (stage == ROW_STAGE_STATISTICS && (!ROW_HAS_SCALAR || D_TYPE == TYPE_NONE)) return;
    if (stage != ROW_STAGE_STATISTICS) {
        const bool known = finish_rows(tile, panel, stage, batch);
        if (stage == ROW_STAGE_PANEL && !may_store(panel, known)) return;
    }
    if (D_TYPE == TYPE_NONE) return;
    barrier();
    [[unroll]] for (uint slice = 0; slice < VALUE_SLICES; ++slice)
        store_slice(values, tile, slice);
}
