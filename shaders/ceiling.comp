// The yardstick: the rate that subgroup-scope cooperative matrices (f16 in, f32 out) reach from
// registers alone, no memory in the loop. Benchmarks report every kernel as a fraction of it.
//
// FLOPs of a workgroup: 2 * M * N * K * FRAGMENTS_M * FRAGMENTS_N * ITERATIONS per subgroup.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint LOCAL_SIZE = 128;
layout(constant_id = 1) const uint M = 16;
layout(constant_id = 2) const uint N = 16;
layout(constant_id = 3) const uint K = 16;
layout(constant_id = 4) const uint ITERATIONS = 512;
layout(constant_id = 5) const uint FRAGMENTS_M = 4;
layout(constant_id = 6) const uint FRAGMENTS_N = 4;

layout(buffer_reference, std430, buffer_reference_align = 16) buffer Out { float x[]; };
layout(push_constant, std430) uniform Push { uint64_t result; };  // at least 1 MiB

// Pseudo-random values in [-1, 1): zeros or constants would draw less power and run faster.
float16_t noise(uint seed) {
    seed = seed * 747796405u + 2891336453u;
    seed = (seed >> ((seed >> 28) + 4u) ^ seed) * 277803737u;
    return float16_t(float(seed >> 8) * (2.0 / 16777216.0) - 1.0);
}

void main() {
    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a[FRAGMENTS_M];
    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b[FRAGMENTS_N];
    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> acc[FRAGMENTS_M][FRAGMENTS_N];
    const uint seed = gl_GlobalInvocationID.x * 64;
    [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i)
        for (int e = 0; e < a[i].length(); ++e) a[i][e] = noise(seed + i * 8 + e);
    [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j)
        for (int e = 0; e < b[j].length(); ++e) b[j][e] = noise(seed + j * 8 + e + 32);
    [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i)
        [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j)
            acc[i][j] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);

    for (uint iteration = 0; iteration < ITERATIONS; ++iteration)
        [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i)
            [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j)
                acc[i][j] = coopMatMulAdd(a[i], b[j], acc[i][j]);

    // One store keeps all of it alive. Workgroups share 256 places: the values are never read.
    [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i)
        [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j)
            if (i + j != 0) acc[0][0] += acc[i][j];
    coopMatStore(acc[0][0], Out(result).x, (gl_WorkGroupID.x % 256) * M * N, N,
                 gl_CooperativeMatrixLayoutRowMajor);
}
