// scaled_integers.glsl: products of integers, A's and the codes of B, over groups of K (staged_scales.glsl). The sum over a
// group is exact. Scales multiply it, and accumulators add these products in f32.
#define ACC_SCALAR float
#define ACC4 vec4
#define HAS_SCALED_SUMS
#define SUM_SCALAR int
#define D_IS_SUM false
#define HAS_CODES (CODES != CODES_NONE)

ACC4 multiply_add(ACC4 a, ACC4 b, ACC4 sum) { return fma(a, b, sum); }
ACC4 acc_of_bits(uvec4 bits) { return uintBitsToFloat(bits); }
uvec4 bits_of_acc(ACC4 acc) { return floatBitsToUint(acc); }
