// Sets the p.m words that workgroups of the dispatches behind share to 0. But where a barrier had to be
// given up once, no other one is tried, also by what was recorded before.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "lib/device_barrier.glsl"

void main() {
    const uint i = gl_WorkGroupID.x * LOCAL_SIZE + gl_LocalInvocationIndex;
    uint value = 0;
    if (i == CONTROL_DONE && p.aborts != 0 && atomicLoad(SharedWord(p.aborts).x, RELAXED) != 0)
        value = POISONED;
    if (i < p.m) U32(control_word(i)).x = value;
}
