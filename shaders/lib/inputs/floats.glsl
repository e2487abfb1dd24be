// floats.glsl: products of floats, which are added up in f32.
#define ACC_SCALAR float
#define ACC4 vec4
#define HAS_FLOAT_SUMS
#define D_IS_SUM false
#define HAS_CODES (CODES != CODES_NONE)

ACC4 acc_of_bits(uvec4 bits) { return uintBitsToFloat(bits); }
uvec4 bits_of_acc(ACC4 acc) { return floatBitsToUint(acc); }
