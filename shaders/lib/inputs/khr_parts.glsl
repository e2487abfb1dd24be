// khr_parts.glsl: products of f32 whose parts (f32_parts.glsl) cooperative matrices multiply: those of
// part q of A and part r of B, for q + r up to LAST_ORDER. Without parts: of all there is.
//
// Matrix units truncate what they add, which shows where sums are long (bench/NOTES.md). So the products
// of a step have accumulators of their own, the small ones come first, and the step's sum is added as any
// f32 is. The product of the largest parts comes last; of bf16 it has its own accumulators, too, so that
// its sum with the others is rounded to nearest. A LAST_ORDER beyond all parts has it once more, from minus
// itself on: what truncation took comes back.
#if IN_PARTS == 1
uint64_t scales_bytes(const uint lines) { return 0; }
void multiply(inout Acc acc, const Fragments f, const bool largest_alone) { multiply(acc, f); }
#else
#extension GL_KHR_shader_subgroup_vote : require
#include "f32_parts.glsl"

// The scales in front of a matrix's fragments.
uint64_t scales_bytes(const uint lines) {
#ifdef SCALES_IN_FRONT
    return uint64_t(lines) * 4;
#else
    return 0;
#endif
}

void multiply(inout Acc acc, const Fragments f, const bool largest_alone) {
    const bool with_rest = LAST_ORDER > 2 * (IN_PARTS - 1) && !largest_alone;
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
        ACC_FRAGMENT sum[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) sum[i] = ACC_FRAGMENT(0.0);
        [[unroll]] for (uint order = 2 * (IN_PARTS - 1); order != 0; --order) {
            [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) {
                const uint r = order - q;  // may wrap
                if (largest_alone || order > LAST_ORDER || r >= IN_PARTS) continue;
                [[unroll]] for (uint i = 0; i < ROWS; ++i)
                    sum[i] = coopMatMulAdd(f.a[i * IN_PARTS + q], f.b[j * IN_PARTS + r], sum[i]);
            }
        }
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
#if IN_TYPE == TYPE_BF16
            ACC_FRAGMENT largest = coopMatMulAdd(f.a[i * IN_PARTS], f.b[j * IN_PARTS], ACC_FRAGMENT(0.0));
            if (with_rest) sum[i] += coopMatMulAdd(f.a[i * IN_PARTS], f.b[j * IN_PARTS], -largest);
            sum[i] += largest;
#else
            sum[i] = coopMatMulAdd(f.a[i * IN_PARTS], f.b[j * IN_PARTS], sum[i]);
#endif
            acc.fragment[i][j] += sum[i];
        }
    }
}
#endif
