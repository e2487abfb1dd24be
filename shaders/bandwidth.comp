// The other yardstick: the bandwidth of memory. Copies blocks of PIECES_AT_ONCE * LOCAL_SIZE pieces
// of 16 bytes, one a workgroup. vkCmdCopyBuffer is no measure of it: drivers may give it to a copy
// engine (H200, driver 580.159.04: 850 GB/s).
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

const uint LOCAL_SIZE = 256;
const uint PIECES_AT_ONCE = 8;
layout(local_size_x = LOCAL_SIZE) in;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer From { uvec4 x[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer To { uvec4 x[]; };
layout(push_constant, std430) uniform Push { uint64_t from, to; };

void main() {
    const uint first = gl_WorkGroupID.x * LOCAL_SIZE * PIECES_AT_ONCE + gl_LocalInvocationIndex;
    uvec4 piece[PIECES_AT_ONCE];
    [[unroll]] for (uint i = 0; i < PIECES_AT_ONCE; ++i)
        piece[i] = From(from).x[first + i * LOCAL_SIZE];
    [[unroll]] for (uint i = 0; i < PIECES_AT_ONCE; ++i)
        To(to).x[first + i * LOCAL_SIZE] = piece[i];
}
