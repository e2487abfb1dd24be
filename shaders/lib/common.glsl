// common.glsl: included by every kernel first: extensions, the specialization constants, the
// parameter block and typed views of device addresses. A kernel says by PARAMS which block it has.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "abi.h"
#include "footprint.h"

// The parameters are push constants, or stand in memory, where carry.comp has brought them: for a
// device that has fewer push constants than some kernels have parameters.
#ifdef PARAMS_IN_MEMORY
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Block { PARAMS params; };
layout(push_constant, std430) uniform Push { InMemoryParams push; };
PARAMS p = Block(push.parameters).params;  // once, by all invocations
uint first_tile() { return push.first_tile; }
uint first_batch() { return push.first_batch; }
#else
layout(push_constant, std430) uniform Push { PARAMS p; };
uint first_tile() { return p.first_tile; }
uint first_batch() { return p.first_batch; }
#endif

layout(buffer_reference, std430, buffer_reference_align = 2) buffer F16 { float16_t x; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer F16x4 { f16vec4 x; };
layout(buffer_reference, std430, buffer_reference_align = 1) buffer U8 { uint8_t x; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer U16 { uint16_t x; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer F32 { float x; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer U32 { uint x; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer F32x4 { vec4 x; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer U32x2 { uvec2 x; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer U32x4 { uvec4 x; };
