// The yardstick of path fma: the rate that f32 multiply-adds reach from registers alone, no memory
// in the loop. Benchmarks report every kernel of that path as a fraction of it.
//
// FLOPs of an invocation: 2 * 65 * ITERATIONS, an even number.
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

    // Outer products, as kernels compute them. A changes, so that no compiler takes products out of
    // the loop. Every other column is taken backwards: 54.1 TFLOP/s, forwards 44.5, with the
    // accumulator as a factor 47.1 (H200, driver 580.159.04).
    for (uint iteration = 0; iteration < ITERATIONS; iteration += 2)
        [[unroll]] for (uint changed = 0; changed < 2; ++changed) {
            a[changed] = fma(a[changed], b[changed], b[7 - changed]);
            [[unroll]] for (uint j = 0; j < 8; ++j)
                [[unroll]] for (uint at = 0; at < 8; ++at) {
                    const uint i = j % 2 == 0 ? at : 7 - at;
                    acc[i][j] = fma(a[i], b[j], acc[i][j]);
                }
        }

    // One store keeps all of it alive. Workgroups share 256 places: the values are never read.
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < 8; ++i)
        [[unroll]] for (uint j = 0; j < 8; ++j) sum += acc[i][j];
    Out(result).x[(gl_WorkGroupID.x % 256) * 128 + gl_LocalInvocationIndex] = sum;
}
