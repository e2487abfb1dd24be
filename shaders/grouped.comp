// D = epilogue(alpha * A·B) for groups of rows, each with its own B or all with one, or for groups
// of K, each with its own D. Where groups begin is read on the device.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS GroupedParams
#define IS_SLICE false
#define HAS_ROW_INDEX
#include "lib/contract.glsl"
#include "lib/schedule/grouped.glsl"

void main() {
    report_bad_offsets();
    uint id = first_tile_id();
    do {
        const Tile tile = grouped_tile(id);
        if (is_in_group(tile)) {
            Acc acc;
            acc_clear(acc);
            mma_tile(acc, tile);
            store_tile(acc, tile);
            store_amax(tile);
        }
        if (PERSISTENT != 0) barrier();  // before shared memory serves the next tile
        id += gl_NumWorkGroups.x;
    } while (PERSISTENT != 0 && id < tile_id_count());
}
