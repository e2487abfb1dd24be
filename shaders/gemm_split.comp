// The same as gemm.comp with split-K in one dispatch: those who have multiplied the slices of K add
// them, too. SPLIT says who adds: see lib/schedule/split_k.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS SplitParams
#define IS_SLICE true
#include "lib/contract.glsl"
#define CLAMPS_SLICES
#include "lib/schedule/sum_partials.glsl"
#include "lib/schedule/device_barrier.glsl"

// To be called again in the same workgroup only after a barrier().
void compute(const Tile tile) {
    Acc acc;
    acc_clear(acc);
    mma_tile(acc, tile);
    store_tile(acc, tile);
}

// Adds the slices of a tile.
void sum_tile(const Tile tile) {
    const uint per_row = TILE_COLUMNS / 4;
    for (uint i = gl_LocalInvocationIndex; i < TILE_M * per_row; i += LOCAL_SIZE) {
        const uint row = tile.row + i / per_row, col = tile.col + i % per_row * 4;
        if (!is_inside(tile, row, col)) continue;
        sum_store4(tile, tile.first_partial, row, col);
    }
}

// Adds this workgroup's share of the slices of all tiles.
void sum_all(const Participants participants) {
    const uint64_t count = partial_x4_count();
    const uint64_t step = uint64_t(participants.count) * LOCAL_SIZE;
    uint64_t i = uint64_t(participants.number) * LOCAL_SIZE + gl_LocalInvocationIndex;
    for (; i < count * p.batch; i += step) sum_numbered4(i / count, i % count);
}

// The word that counts the slices of this workgroup's tile that are done.
uint64_t tile_counter() {
    return CONTROL_WORD(CONTROL_WORDS + uint64_t(dense_batch()) * tile_count() + dense_id());
}

// Slices of tiles, which workgroups that stand in for one another take as they come.
uint item_count() { return tile_count() * p.batch * p.slices; }
Tile item_tile(const uint item) {
    const uint tiles = tile_count();
    return tile_at(item % tiles, item / tiles % p.batch, item / tiles / p.batch);
}

void main() {
    if (GUARDED != 0 && !is_poisoned()) return;
    const bool by_ticket = SPLIT == SPLIT_DEVICE_BARRIER;
    uint items = 0;
    Tile tile;
    if (!by_ticket) tile = dense_tile();
    [[dont_unroll]] while (true) {
        if (by_ticket) {
            const uint item = take_ticket();
            if (item >= item_count()) break;
            tile = item_tile(item);
        }
        compute(tile);
        ++items;
        if (!by_ticket) break;
    }
    if (SPLIT == SPLIT_LAST_ARRIVER && is_last_of(p.slices, tile_counter())) {
        sum_tile(tile);
        store_amax(tile);
    }
    if (SPLIT == SPLIT_DEVICE_BARRIER && items != 0) {
        const Participants participants = wait_for_all(items, item_count());
        if (participants.count != 0) {
            sum_all(participants);
            store_amax(batch_tile(0));
        }
    }
}
