// Sets the words that workgroups of the dispatches behind share: p.m words to 0, but to p.n the one
// that may be poisoned.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

void main() {
    const uint i = gl_WorkGroupID.x * LOCAL_SIZE + gl_LocalInvocationIndex;
    if (i < p.m) U32(p.control + uint64_t(i) * 4).x = i == CONTROL_DONE ? p.n : 0;
}
