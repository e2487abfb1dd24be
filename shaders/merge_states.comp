// The numbers of rows from what the tiles of reduce_tiles.comp have told of them: an invocation a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "lib/tile.glsl"
#include "lib/epilogue.glsl"
#include "lib/row_statistics.glsl"
#include "lib/device_barrier.glsl"
#include "lib/row_panel.glsl"

void main() {
    const uint batch = p.first_batch + gl_WorkGroupID.y;
    const uint row = (p.first_tile + gl_WorkGroupID.x) * LOCAL_SIZE + gl_LocalInvocationIndex;
    if (row >= p.m) return;
    Tile t = batch_tile(batch);
    t.row = row / TILE_M * TILE_M;
    RowState s;
    uint never = 0;
    panel_state(panel_of(t, batch), row - t.row, false, never, s);
    store_row_scalar(batch, row, s);
}
