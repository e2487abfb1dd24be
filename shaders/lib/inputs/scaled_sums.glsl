// scaled_sums.glsl: products of A's elements and the codes of B, both without scales, over groups of K
// (staged_scales.glsl). Scales multiply the sum over a group, and accumulators add these products in f32. Sums of integers
// are exact.
#define HAS_SCALED_SUMS
#include "floats.glsl"
