// Brings parameters from push constants to memory, for the kernels that read theirs there: as many
// words as fit at a time.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS CarryParams
#include "lib/common.glsl"

void main() {
    const uint i = gl_LocalInvocationIndex;
    if (i < p.count) U32(p.parameters + i * 4).x = p.words[i];
}
