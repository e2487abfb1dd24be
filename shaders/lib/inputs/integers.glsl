// integers.glsl: products of integers, which are added up in s32.
#define ACC_SCALAR int
#define ACC4 ivec4
#define D_IS_SUM (D_TYPE == TYPE_S32)
#define HAS_CODES false

ACC4 acc_of_bits(uvec4 bits) { return ACC4(bits); }
uvec4 bits_of_acc(ACC4 acc) { return uvec4(acc); }
