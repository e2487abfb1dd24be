// Prepares memory for the dispatches behind: words that their workgroups share become 0, and states
// of rows become such that were not told. But where a barrier had to be given up once, no other one
// is tried, also by what was recorded before.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS ResetParams
#include "lib/common.glsl"
#include "lib/schedule/shared_word.glsl"

void main() {
    const uint i = (first_tile() + gl_WorkGroupID.x) * LOCAL_SIZE + gl_LocalInvocationIndex;
    uint value = 0;
    // A CPU's driver loads the word also where nobody counts: then it is one that is there.
    const uint64_t words =
        p.amax != 0 ? p.amax : p.control != 0 ? CONTROL_WORD(CONTROL_DONE) : p.partial;
    const uint64_t aborts = p.aborts != 0 ? p.aborts : words;
    if (i == CONTROL_DONE && atomicLoad(SharedWord(aborts).x, RELAXED) != 0 && p.aborts != 0)
        value = POISONED;
    if (i < p.control_words) U32(CONTROL_WORD(i)).x = value;
    if (i == CONTROL_DONE && p.amax != 0) U32(p.amax).x = 0;
    if (i < p.row_state_pieces) U32x4(p.partial + uint64_t(i) * RESET_PIECE_BYTES).x = uvec4(0xffffffffu);
}
