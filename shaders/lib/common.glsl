// What every kernel of every path includes first: extensions, the parameter block, the
// specialization constants, and typed views of device addresses.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "gemm_params.h"

layout(push_constant, std430) uniform Push { GemmParams p; };

layout(local_size_x_id = SPEC_LOCAL_SIZE, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = SPEC_LOCAL_SIZE) const uint LOCAL_SIZE = 128;
layout(constant_id = SPEC_TILE_M) const uint TILE_M = 128;
layout(constant_id = SPEC_TILE_N) const uint TILE_N = 128;
layout(constant_id = SPEC_TILE_K) const uint TILE_K = 32;
layout(constant_id = SPEC_FRAGMENT_M) const uint FRAGMENT_M = 16;
layout(constant_id = SPEC_FRAGMENT_N) const uint FRAGMENT_N = 16;
layout(constant_id = SPEC_FRAGMENT_K) const uint FRAGMENT_K = 16;
layout(constant_id = SPEC_SUBGROUPS_M) const uint SUBGROUPS_M = 2;
layout(constant_id = SPEC_SUBGROUPS_N) const uint SUBGROUPS_N = 2;
layout(constant_id = SPEC_SUBTILES) const uint SUBTILES = 4;
layout(constant_id = SPEC_SWIZZLE) const uint SWIZZLE = 8;
layout(constant_id = SPEC_UNROLL_K) const uint UNROLL_K = 1;
layout(constant_id = SPEC_PEEL) const uint PEEL = 1;
layout(constant_id = SPEC_STAGES) const uint STAGES = 1;
layout(constant_id = SPEC_SPLIT) const uint SPLIT = SPLIT_NONE;
layout(constant_id = SPEC_A_COL_MAJOR) const uint A_COL_MAJOR = 0;
layout(constant_id = SPEC_B_COL_MAJOR) const uint B_COL_MAJOR = 0;
layout(constant_id = SPEC_A_VECTOR) const uint A_VECTOR = 8;
layout(constant_id = SPEC_B_VECTOR) const uint B_VECTOR = 8;
layout(constant_id = SPEC_A_PADDED) const uint A_PADDED = 0;
layout(constant_id = SPEC_B_PADDED) const uint B_PADDED = 0;
layout(constant_id = SPEC_C_VECTOR) const uint C_VECTOR = 1;
layout(constant_id = SPEC_D_VECTOR) const uint D_VECTOR = 1;
layout(constant_id = SPEC_AUX_VECTOR) const uint AUX_VECTOR = 1;
layout(constant_id = SPEC_STATIC_N) const uint STATIC_N = 0;
layout(constant_id = SPEC_STATIC_K) const uint STATIC_K = 0;
layout(constant_id = SPEC_STATIC_LDA) const uint STATIC_LDA = 0;
layout(constant_id = SPEC_STATIC_LDB) const uint STATIC_LDB = 0;
layout(constant_id = SPEC_EDGES) const uint EDGES = 1;
layout(constant_id = SPEC_K_TAIL) const uint K_TAIL = 1;
layout(constant_id = SPEC_C_TYPE) const uint C_TYPE = TYPE_NONE;
layout(constant_id = SPEC_D_TYPE) const uint D_TYPE = TYPE_F32;
layout(constant_id = SPEC_AUX_TYPE) const uint AUX_TYPE = TYPE_NONE;
layout(constant_id = SPEC_BIAS_TYPE) const uint BIAS_TYPE = TYPE_NONE;
layout(constant_id = SPEC_BIAS) const uint BIAS = BIAS_NONE;
layout(constant_id = SPEC_ACTIVATION) const uint ACTIVATION = ACTIVATION_NONE;
layout(constant_id = SPEC_CLAMP) const uint CLAMP = 0;
layout(constant_id = SPEC_GUARDED) const uint GUARDED = 0;
layout(constant_id = SPEC_GROUPED) const uint GROUPED = GROUPED_NONE;
layout(constant_id = SPEC_OFFSETS_64) const uint OFFSETS_64 = 0;
layout(constant_id = SPEC_PERSISTENT) const uint PERSISTENT = 0;
layout(constant_id = SPEC_GATE) const uint GATE = GATE_NONE;
layout(constant_id = SPEC_GATE_INTERLEAVED) const uint GATE_INTERLEAVED = 0;
layout(constant_id = SPEC_ROW_OP) const uint ROW_OP = ROW_OP_NONE;
layout(constant_id = SPEC_ROW_GAMMA) const uint ROW_GAMMA = 0;
layout(constant_id = SPEC_ROW_SHIFT) const uint ROW_SHIFT = 0;
layout(constant_id = SPEC_ROW_VECTOR_TYPE) const uint ROW_VECTOR_TYPE = TYPE_F32;
layout(constant_id = SPEC_ROW_VALUE_TYPE) const uint ROW_VALUE_TYPE = TYPE_F32;
layout(constant_id = SPEC_ROW_SHARED) const uint ROW_SHARED = 0;
layout(constant_id = SPEC_C_COL_MAJOR) const uint C_COL_MAJOR = 0;
layout(constant_id = SPEC_D_COL_MAJOR) const uint D_COL_MAJOR = 0;

// A static size is a constant to the compiler, a dynamic one is read from the parameters.
uint size_n() { return STATIC_N != 0 ? STATIC_N : p.n; }
uint size_k() { return STATIC_K != 0 ? STATIC_K : p.k; }
uint size_lda() { return STATIC_LDA != 0 ? STATIC_LDA : p.lda; }
uint size_ldb() { return STATIC_LDB != 0 ? STATIC_LDB : p.ldb; }

layout(buffer_reference, std430, buffer_reference_align = 2) buffer F16 { float16_t x; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer F16x4 { f16vec4 x; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer U16 { uint16_t x; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer F32 { float x; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer U32 { uint x; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer F32x4 { vec4 x; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer U32x2 { uvec2 x; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer U32x4 { uvec4 x; };

uint type_size(const uint type) { return type == TYPE_F32 ? 4 : 2; }
