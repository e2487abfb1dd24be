// The second dispatch of split-K: adds the partial results and runs the epilogue. An invocation
// takes four neighbours of a row; workgroup y is a matrix of the batch.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "lib/tile.glsl"
#include "lib/epilogue.glsl"

void main() {
    const uint64_t block = uint64_t(p.first_tile) + gl_WorkGroupID.x;
    const uint64_t quad = block * LOCAL_SIZE + gl_LocalInvocationIndex;
    if (quad < partial_quads()) sum_quad(p.first_batch + gl_WorkGroupID.y, quad);
}
