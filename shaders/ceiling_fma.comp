// The yardstick of path fma: the rate that f32 multiply-adds reach from registers alone, no memory
// in the loop. Benchmarks report every kernel of that path as a fraction of it.
//
// FLOPs of a workgroup: 2 * 64 * ITERATIONS per invocation.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 128, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint ITERATIONS = 512;

layout(buffer_reference, std430, buffer_reference_align = 16) buffer Out { float x[]; };
layout(push_constant, std430) uniform Push { uint64_t result; };  // at least 1 MiB

// Pseudo-random values in [-0.5, 0.5): zeros or constants would draw less power and run faster.
float noise(uint seed) {
    seed = seed * 747796405u + 2891336453u;
    seed = (seed >> ((seed >> 28) + 4u) ^ seed) * 277803737u;
    return float(seed >> 8) * (1.0 / 16777216.0) - 0.5;
}

void main() {
    float a[8], b[8], acc[8][8];
    const uint seed = gl_GlobalInvocationID.x * 16;
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        a[i] = noise(seed + i);
        b[i] = noise(seed + i + 8);
        [[unroll]] for (uint j = 0; j < 8; ++j) acc[i][j] = 0.0;
    }

    // The accumulator is a factor: a compiler that takes fma apart can't move the product out.
    for (uint iteration = 0; iteration < ITERATIONS; ++iteration)
        [[unroll]] for (uint i = 0; i < 8; ++i)
            [[unroll]] for (uint j = 0; j < 8; ++j) acc[i][j] = fma(acc[i][j], a[i], b[j]);

    // One store keeps all of it alive. Workgroups share 256 places: the values are never read.
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < 8; ++i)
        [[unroll]] for (uint j = 0; j < 8; ++j) sum += acc[i][j];
    Out(result).x[(gl_WorkGroupID.x % 256) * 128 + gl_LocalInvocationIndex] = sum;
}
