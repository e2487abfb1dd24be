// The numbers of rows from the states that the tiles of reduce_tiles.comp have told: an invocation
// a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS MergeParams
#include "lib/common.glsl"
#include "lib/elements.glsl"
#include "lib/schedule/shared_word.glsl"
#include "lib/rows/row_state.glsl"
#include "lib/rows/row_panel_state.glsl"
#include "lib/rows/row_scalar.glsl"

// Nobody waits: an earlier dispatch has told them.
void give_up() {}
bool has_given_up() { return true; }

void main() {
    const uint64_t batch = first_batch() + gl_WorkGroupID.y;
    const uint row = (first_tile() + gl_WorkGroupID.x) * LOCAL_SIZE + gl_LocalInvocationIndex;
    if (row >= p.m) return;
    const uint64_t states = panel_states(batch * panel_count() + row / TILE_M);
    uint never = 0;
    RowState s = no_row_state();
    panel_state(states, row % TILE_M, false, never, s);
    store_row_scalar(batch, row, s);
}
