// A glslang that compiles this is new enough for every shader of vkgemm (third_party/dependencies.cmake).
#version 460
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_float_e4m3 : require
#extension GL_EXT_integer_dot_product : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require

layout(local_size_x = 128) in;

float twice(const in uint row, const in uint column, const in float element) { return 2.0 * element; }

void main() {
  coopmat<bfloat16_t, gl_ScopeWorkgroup, 64, 16, gl_MatrixUseA> a =
      coopmat<bfloat16_t, gl_ScopeWorkgroup, 64, 16, gl_MatrixUseA>(bfloat16_t(1.0));
  coopmat<bfloat16_t, gl_ScopeWorkgroup, 16, 64, gl_MatrixUseB> b =
      coopmat<bfloat16_t, gl_ScopeWorkgroup, 16, 64, gl_MatrixUseB>(bfloat16_t(1.0));
  coopmat<float, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator> c =
      coopmat<float, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator>(0.0);
  c = coopMatMulAdd(a, b, c);
  coopMatPerElementNV(c, c, twice);
  coopmat<floate4m3_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> bytes =
      coopmat<floate4m3_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>(floate4m3_t(1.0));
  const int sum = dotPacked4x8EXT(1, 1);
}
