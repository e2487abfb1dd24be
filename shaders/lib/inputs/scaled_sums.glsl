// scaled_sums.glsl: products of A's elements and the codes of B, both without scales, over groups of K
// (staged_scales.glsl). Scales multiply the sum over a group, and accumulators add these products in f32. Sums of integers
// are exact.
#define ACC_SCALAR float
#define ACC4 vec4
#define HAS_SCALED_SUMS
#define D_IS_SUM false
#define HAS_CODES (CODES != CODES_NONE)

ACC4 multiply_add(ACC4 a, ACC4 b, ACC4 sum) { return fma(a, b, sum); }
ACC4 acc_of_bits(uvec4 bits) { return uintBitsToFloat(bits); }
uvec4 bits_of_acc(ACC4 acc) { return floatBitsToUint(acc); }
