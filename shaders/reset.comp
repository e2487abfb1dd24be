// Sets the p.m words that workgroups of the dispatches behind share to 0, and p.n states of rows to
// what says that they were not told. But where a barrier had to be given up once, no other one is
// tried, also by what was recorded before.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "lib/device_barrier.glsl"

void main() {
    const uint i = (p.first_tile + gl_WorkGroupID.x) * LOCAL_SIZE + gl_LocalInvocationIndex;
    uint value = 0;
    // Where nobody counts, the word that this invocation writes: a CPU's driver loads it anyway.
    const uint64_t aborts = p.aborts != 0 ? p.aborts : control_word(CONTROL_DONE);
    if (i == CONTROL_DONE && atomicLoad(SharedWord(aborts).x, RELAXED) != 0 && p.aborts != 0)
        value = POISONED;
    if (i < p.m) U32(control_word(i)).x = value;
    if (i < p.n) U32x4(p.row_states + uint64_t(i) * 16).x = uvec4(0xffffffffu);
}
