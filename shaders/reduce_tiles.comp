// D = row operation(epilogue(alpha * A·B)): a workgroup keeps the values of its tile while it learns
// what the rest of their rows is like: nothing, where the tile is as wide as N; else from the
// workgroups of the same rows, a panel, for which it waits; or from an earlier dispatch of this.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/matrix.glsl"
#include "lib/row_statistics.glsl"
#include "lib/device_barrier.glsl"
#if MATRIX_PATH == PATH_KHR
#include "lib/rows_khr.glsl"
#else
#include "lib/rows_fma.glsl"
#endif
#include "lib/row_panel.glsl"

struct Values {
    vec4 quad[VALUE_SLICES * SLICE_VALUES];
};

// The part of a row that an invocation merges first.
const uint TILE_QUADS = TILE_N / 4;
const uint WANTED_QUADS = ROW_PART(TILE_M, TILE_N);
const uint PART_QUADS = TILE_QUADS < WANTED_QUADS ? TILE_QUADS : WANTED_QUADS;
const uint ROW_PARTS = TILE_QUADS / PART_QUADS;
shared vec2 row_parts[TILE_M * ROW_PARTS];

// Columns of the tile from its quad `quad` on, `quads` of them, that exist.
uint columns_from(const Tile t, const uint quad, const uint quads) {
    if (EDGES == 0) return quads * 4;
    const uint first = t.col + quad * 4;
    return first < size_n() ? min(size_n() - first, quads * 4) : 0;
}

RowState part_state(const Tile t, const uint row, const uint part, const uint parts) {
    const vec2 xy = row_parts[row * ROW_PARTS + part];
    return RowState(float(columns_from(t, part * PART_QUADS, parts * PART_QUADS)), xy.x, xy.y);
}

// Runs the elementwise epilogue of a slice and keeps what comes of it, in `values` and as states of
// quads in shared memory.
void take_slice(const Acc acc, const Tile t, const uint slice, inout Values values) {
    begin_slice(acc, slice);
    [[unroll]] for (uint i = 0; i < SLICE_VALUES; ++i) {
        if (!has_value(i)) continue;
        const uvec2 place = value_place(i);
        const uint row = t.row + value_row(slice, place.x), col = t.col + place.y * 4;
        vec4 v = vec4(0.0);
        RowState s = no_row_state();
        if (is_inside(t, row, col)) {
            v = epilogue_value4(t, row, col, slice_value(acc, slice, i), epilogue_c4(t, row, col),
                                epilogue_bias4(t, row, col));
            s = row_state(v, size_n() - col);
        }
        values.quad[slice * SLICE_VALUES + i] = v;
        set_scratch(place.x * VALUE_STRIDE + place.y, vec2(s.x, s.y));
    }
    barrier();
    // Neighbouring invocations take neighbouring rows, which lie in different banks.
    for (uint i = gl_LocalInvocationIndex; i < VALUE_ROWS * ROW_PARTS; i += LOCAL_SIZE) {
        const uint line = i % VALUE_ROWS, part = i / VALUE_ROWS;
        RowState s[ROW_PART_MOST];
        [[unroll]] for (uint q = 0; q < PART_QUADS; ++q) {
            const uint quad = part * PART_QUADS + q;
            const vec2 xy = scratch(line * VALUE_STRIDE + quad);
            s[q] = RowState(float(columns_from(t, quad, 1)), xy.x, xy.y);
        }
        [[unroll]] for (uint width = 1; width < PART_QUADS; width *= 2)
            [[unroll]] for (uint q = 0; q < PART_QUADS; q += 2 * width)
                s[q] = merge_halves(s[q], s[q + width]);
        row_parts[value_row(slice, line) * ROW_PARTS + part] = vec2(s[0].x, s[0].y);
    }
}

// What the tile knows of one of its rows. Only one invocation may ask for it, once.
RowState tile_state(const Tile t, const uint row) {
    [[dont_unroll]] for (uint width = 1; width < ROW_PARTS; width *= 2)
        [[dont_unroll]] for (uint part = 0; part < ROW_PARTS; part += 2 * width) {
            const RowState s = merge_halves(part_state(t, row, part, width),
                                            part_state(t, row, part + width, width));
            row_parts[row * ROW_PARTS + part] = vec2(s.x, s.y);
        }
    return part_state(t, row, 0, ROW_PARTS);
}

void store_slice(const Values values, const Tile t, const uint slice) {
    [[unroll]] for (uint i = 0; i < SLICE_VALUES; ++i) {
        if (!has_value(i)) continue;
        const uvec2 place = value_place(i);
        const uint line = value_row(slice, place.x);
        const uint row = t.row + line, col = t.col + place.y * 4;
        if (!is_inside(t, row, col)) continue;
        const vec4 d = row_result4(values.quad[slice * SLICE_VALUES + i],
                                   row_parts[line * ROW_PARTS], row_gamma4(col), row_shift4(col));
        store_d4(t, row, col, d);
    }
}

// Whether all rows of this invocation are known: their coefficients in row_parts, or their numbers
// stored.
bool finish_rows(const Tile t, const Panel panel, const uint stage, uint64_t batch) {
    bool known = true;
    uint left = p.spin_limit;
    for (uint row = gl_LocalInvocationIndex; row < TILE_M; row += LOCAL_SIZE) {
        RowState s = no_row_state();
        if (stage == ROW_STAGE_RESIDENT) s = tile_state(t, row);
        else if (!panel_state(panel, row, stage == ROW_STAGE_PANEL, left, s)) known = false;
        if (!ROW_HAS_SCALAR) row_parts[row * ROW_PARTS] = row_coefficients(s);
        else if (t.row + row < t.row_end) store_row_scalar(batch, t.row + row, s);
    }
    return known;
}

void main() {
    const uint stage = ROW_SHARED == 0 ? ROW_STAGE_RESIDENT : p.row_stage & ROW_STAGE_MASK;
    uint id = p.first_tile + gl_WorkGroupID.x, batch = p.first_batch + gl_WorkGroupID.y;
    if (stage == ROW_STAGE_PANEL) {
        const uint ticket = next_ticket(), tiles = tile_count();
        if (ticket >= tiles * p.batch) return;
        id = ticket % tiles;
        batch = ticket / tiles;
    }
    const Tile tile = tile_at(id, batch, 0);
    const Panel panel = panel_of(tile, batch);
    if (ROW_SHARED != 0)
        if ((p.row_stage & ROW_STAGE_GUARDED) != 0 && is_stored(panel)) return;

    Acc acc;
    acc_clear(acc);
    mma_tile(acc, tile);
    Values values;
    [[unroll]] for (uint slice = 0; slice < VALUE_SLICES; ++slice)
        take_slice(acc, tile, slice, values);
    barrier();

    if (stage == ROW_STAGE_PANEL || stage == ROW_STAGE_STATISTICS)
        for (uint row = gl_LocalInvocationIndex; row < TILE_M; row += LOCAL_SIZE)
            tell_panel(panel, row, tile_state(tile, row));
    // Of rows that give numbers D is what it is.
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
