// The second dispatch of split-K: adds the partial results and runs the epilogue. An invocation
// takes an x4; workgroup y is a matrix of the batch.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS GemmParams
#include "lib/common.glsl"
#include "lib/elements.glsl"
#include "lib/input_contract.glsl"
#include "lib/schedule/tile.glsl"
#include "lib/epilogue/epilogue.glsl"
#include "lib/schedule/sum_partials.glsl"

void main() {
    const uint64_t block = uint64_t(first_tile()) + gl_WorkGroupID.x;
    const uint64_t number = block * LOCAL_SIZE + gl_LocalInvocationIndex;
    const uint batch = first_batch() + gl_WorkGroupID.y;
    if (number >= partial_x4_count()) return;
    sum_numbered4(batch, number);
    store_amax(batch_tile(batch));
}
