// fragments.glsl: how the direct loop multiplies fragments of whole elements and of parts (parts.glsl), and
// whether it can store D in narrow slices (khr_narrow.glsl).
//
// Part q of A is multiplied by part r of B if q + r is at most LAST_ORDER. Matrix units truncate their sums,
// which shows in long sums (bench/NOTES.md). So the products of a step have their own accumulators, small
// products come first, and the step's sum is added as any f32. The product of the largest parts comes last.
// With F32_LARGEST_APART it has its own accumulators, so that its sum with the others is rounded to nearest.
// A LAST_ORDER beyond all parts adds this product once more, from minus itself on: the sum gets back the bits
// that truncation took.
#extension GL_KHR_shader_subgroup_vote : require

#ifdef HAS_FLOAT_SUMS
#define HAS_NARROW_SLICES
#include "../loops/khr_narrow.glsl"
#endif

void multiply_whole(inout Acc acc, const Fragments f, const bool largest_alone) {
    multiply(acc, f);
}

void multiply_parts(inout Acc acc, const Fragments f, const bool largest_alone) {
    const bool with_rest = LAST_ORDER > 2 * (IN_PARTS - 1) && !largest_alone;
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
        ACC_FRAGMENT sum[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) sum[i] = ACC_FRAGMENT(ACC_SCALAR(0));
        [[unroll]] for (uint order = 2 * (IN_PARTS - 1); order != 0; --order) {
            [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) {
                const uint r = order - q;  // may wrap
                if (largest_alone || order > LAST_ORDER || r >= IN_PARTS) continue;
                [[unroll]] for (uint i = 0; i < ROWS; ++i)
                    sum[i] = coopMatMulAdd(f.a[i * IN_PARTS + q], f.b[j * IN_PARTS + r], sum[i]);
            }
        }
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
#ifdef F32_LARGEST_APART
            ACC_FRAGMENT largest =
                coopMatMulAdd(f.a[i * IN_PARTS], f.b[j * IN_PARTS], ACC_FRAGMENT(ACC_SCALAR(0)));
            if (with_rest) sum[i] += coopMatMulAdd(f.a[i * IN_PARTS], f.b[j * IN_PARTS], -largest);
            sum[i] += largest;
#else
            sum[i] = coopMatMulAdd(f.a[i * IN_PARTS], f.b[j * IN_PARTS], sum[i]);
#endif
            acc.fragment[i][j] += sum[i];
        }
    }
}

// The loop supplies it: `acc` += the tile's product, or the product of the largest parts alone.
void multiply_tile(inout Acc acc, const Tile t, const bool largest_alone);

void mma_whole(inout Acc acc, const Tile t) { multiply_tile(acc, t, false); }

// A sum may be NaN because the largest parts' product is Inf and the others' products 0 * Inf or -Inf. So if
// there is a NaN, the largest parts are multiplied alone: they are finite, Inf or NaN as their f32 are.
void mma_parts(inout Acc acc, const Tile t) {
    multiply_tile(acc, t, false);
    bool found = false;
    EACH_FRAGMENT(i, j)
        [[unroll]] for (uint e = 0; e < acc.fragment[i][j].length(); ++e)
            found = found || is_nan(float(acc.fragment[i][j][e]));
    if (!subgroupAny(found)) return;
    Acc largest;
    acc_clear(largest);
    multiply_tile(largest, t, true);
    EACH_FRAGMENT(i, j)
        [[unroll]] for (uint e = 0; e < acc.fragment[i][j].length(); ++e)
            if (is_nan(float(acc.fragment[i][j][e]))) acc.fragment[i][j][e] = largest.fragment[i][j][e];
}
