// khr_narrow.glsl: D of a plain product, alpha * A·B in 16 bits, in slices of D's own type. Half the
// bytes go through shared memory, and stores are 16 bytes wide: a tile of short K costs little else
// (H200, driver 580.159.04; bench/NOTES.md, "Short K").
//
// Matrices of bf16 accumulators are not listed by devices, so a matrix of f16 carries the bits of
// either type. Its elements are taken one by one from those of the f32 matrix of the same size: that
// both show an invocation the same elements in the same order is proved by the self-test, with the
// order of fragments (fragment_words.glsl).
#define NARROW_FRAGMENT \
    coopmat<float16_t, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_N, gl_MatrixUseAccumulator>

const uint LANES = LOCAL_SIZE / SUBGROUPS_MN;
const uint FRAGMENT_VALUES = FRAGMENT_M * FRAGMENT_N / LANES;
const uint NARROW_STRIDE = KHR_LINE(TILE_N, 2);

// The x8s of a subgroup's part of a slice.
const uint NARROW_ROW = SUBGROUP_N / 8;
const uint NARROW_X8 = SLICE_SUBGROUP_ROWS * NARROW_ROW;

// A normal number below 2^111 as float_to_bf16 rounds it, by float instructions, of which there are
// more units: added to 1.5·2^16 times its power of two it keeps the bits that bf16 has, rounded to
// nearest even (after Dekker, A floating-point technique for extending the available precision,
// 1971).
uint normal_to_bf16(const float v) {
    const float power = uintBitsToFloat(floatBitsToUint(v) & 0x7f800000u);
    precise const float sum = fma(power, 98304.0, v);
    precise const float nearest = fma(power, -98304.0, sum);
    return floatBitsToUint(nearest) >> 16;
}

// Grows with the exponent, from that of the smallest normal number on; of zero and subnormals larger
// than of all others.
uint exponent_place(const float v) { return (floatBitsToUint(v) << 1) - 0x01000000u; }

uvec2 narrow_words(const vec4 v) {
    if (D_TYPE != TYPE_BF16)
        return uvec2(packFloat2x16(f16vec2(v.xy)), packFloat2x16(f16vec2(v.zw)));
    const uint most = max(max(exponent_place(v.x), exponent_place(v.y)),
                          max(exponent_place(v.z), exponent_place(v.w)));
    const uint least_huge = (0x77000000u << 1) - 0x01000000u;  // 2^111
    if (most >= least_huge)
        return uvec2(float_to_bf16(v.x) | float_to_bf16(v.y) << 16,
                     float_to_bf16(v.z) | float_to_bf16(v.w) << 16);
    return uvec2(normal_to_bf16(v.x) | normal_to_bf16(v.y) << 16,
                 normal_to_bf16(v.z) | normal_to_bf16(v.w) << 16);
}

NARROW_FRAGMENT narrowed(const ACC_FRAGMENT fragment, const Tile t) {
    NARROW_FRAGMENT narrow;
    [[unroll]] for (uint e = 0; e < FRAGMENT_VALUES; e += 4) {
        const vec4 acc = vec4(fragment[e], fragment[e + 1], fragment[e + 2], fragment[e + 3]);
        const vec4 pre = epilogue_pre4(t, acc, vec4(0.0), vec4(0.0));
        const uvec2 words = narrow_words(pre);
        const f16vec2 low = unpackFloat2x16(words.x), high = unpackFloat2x16(words.y);
        narrow[e] = low.x;
        narrow[e + 1] = low.y;
        narrow[e + 2] = high.x;
        narrow[e + 3] = high.y;
    }
    return narrow;
}

void store_narrow(const Acc acc, const Tile t) {
    const uvec2 position = subgroup_position();
    const uint first = position.x * SLICE_SUBGROUP_ROWS * NARROW_STRIDE + position.y * NARROW_ROW;
    const uint row = t.row + position.x * SUBGROUP_M, col = t.col + position.y * SUBGROUP_N;
    EACH_SLICE(slice) {
        subgroupBarrier();
        EACH_FRAGMENT(i, j) {
            if (i / SLICE_FRAGMENTS == slice)
                coopMatStore(narrowed(acc.fragment[i][j], t), sh,
                             first + i % SLICE_FRAGMENTS * FRAGMENT_M * NARROW_STRIDE +
                                 j * FRAGMENT_N / 8,
                             NARROW_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        }
        subgroupBarrier();
        [[unroll]] for (uint i = 0; i < (NARROW_X8 + LANES - 1) / LANES; ++i) {
            const uint x = i * LANES + gl_SubgroupInvocationID;
            if (NARROW_X8 % LANES != 0 && x >= NARROW_X8) continue;
            const uvec2 at = uvec2(x / NARROW_ROW, x % NARROW_ROW);
            const uint d_row = row + slice * SLICE_SUBGROUP_ROWS + at.x, d_col = col + at.y * 8;
            // N is a multiple of 8.
            if (is_inside(t, d_row, d_col))
                U32x4(element(t.d, D_TYPE, d_row, p.ldd, d_col)).x =
                    sh[first + at.x * NARROW_STRIDE + at.y];
        }
    }
}
