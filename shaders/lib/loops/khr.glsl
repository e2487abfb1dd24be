// khr.glsl: VK_KHR_cooperative_matrix, one k-tile at a time staged in shared
// memory.
const uint STAGE_DEPTH = TILE_K;
#define STAGE_SIZE KHR_STAGE(A_K_INNER, B_K_INNER, TILE_M, TILE_N, TILE_K, IN_SIZE)
#define STAGES_SIZE (STAGE_SIZE + STAGED_SCALES_SIZE)
#include "khr_fragments.glsl"

void store_group(const uint i) {
    const uint at = group_line(i) * (is_a(i) ? A_STRIDE : B_STRIDE) + group_column(i) / GROUP;
    sh[(is_a(i) ? 0 : B_OFFSET) + at] = stage_data[i];
}

#ifdef HAS_SCALED_SUMS
#include "khr_scaled.glsl"
#else
void multiply(inout Acc acc) {
    [[unroll]] for (uint k = 0; k < TILE_K; k += FRAGMENT_K) {
        Fragments f;
        load_fragments(f, 0, k);
        multiply(acc, f);
    }
}
#endif

#include "one_stage.glsl"
