// The second step of split-K: adds the partial results of all slices of K in their order and runs the
// epilogue. An invocation takes four neighbours of a row; workgroup y is a matrix of the batch.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "lib/tile.glsl"
#include "lib/epilogue.glsl"

void main() {
    const uint quads_per_row = partial_ld() / 4;
    const uint64_t quads = uint64_t(p.m) * quads_per_row;
    const uint64_t block = uint64_t(p.first_tile) + gl_WorkGroupID.x;
    const uint64_t quad = block * LOCAL_SIZE + gl_LocalInvocationIndex;
    if (quad >= quads) return;

    const uint64_t batch = p.first_batch + gl_WorkGroupID.y;
    const uint64_t first = partial_base(batch, 0) + quad * 16;
    vec4 sum = F32x4(first).x;
    // Many loads on their way at once: their latency is what a thin sum costs.
    uint slice = 1;
    for (; slice + SUM_UNROLL <= p.slices; slice += SUM_UNROLL) {
        vec4 part[SUM_UNROLL];
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i)
            part[i] = F32x4(first + (slice + i) * quads * 16).x;
        [[unroll]] for (uint i = 0; i < SUM_UNROLL; ++i) sum += part[i];
    }
    for (; slice < p.slices; ++slice) sum += F32x4(first + slice * quads * 16).x;

    epilogue_store4(batch_tile(batch), uint(quad / quads_per_row),
                    uint(quad % quads_per_row) * 4, sum);
}
