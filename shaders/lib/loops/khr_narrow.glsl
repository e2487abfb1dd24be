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

// v as float_to_bf16 rounds it, by float instructions, of which there are more units: added to
// 1.5·2^16 times its power of two it keeps the bits that bf16 has, rounded to nearest even (after
// Dekker, A floating-point technique for extending the available precision, 1971). Not of zero,
// which would lose its sign, of subnormals, and from 2^111 on, where the sum may be infinite.
uint rounded_to_bf16(const float v) {
    const float power = uintBitsToFloat(floatBitsToUint(v) & 0x7f800000u);
    precise const float sum = fma(power, 98304.0, v);
    precise const float nearest = fma(power, -98304.0, sum);
    return floatBitsToUint(nearest);
}

// Grows with the exponent, from that of the smallest normal number on; of zero and subnormals larger
// than of all others.
uint exponent_place(const float v) { return (floatBitsToUint(v) << 1) - 0x01000000u; }
const uint LEAST_LARGE = (0x77000000u << 1) - 0x01000000u;  // 2^111

float narrow_input(const ACC_FRAGMENT fragment, const uint e, const Tile t) {
    return epilogue_pre4(t, vec4(fragment[e]), vec4(0.0), vec4(0.0)).x;
}

NARROW_FRAGMENT narrowed(const ACC_FRAGMENT fragment, const Tile t) {
    NARROW_FRAGMENT narrow;
    uint most = 0;
    if (D_TYPE == TYPE_BF16) {
        [[unroll]] for (uint e = 0; e < FRAGMENT_VALUES; ++e)
            most = max(most, exponent_place(narrow_input(fragment, e, t)));
    }
    [[unroll]] for (uint e = 0; e < FRAGMENT_VALUES; e += 2) {
        const vec2 v = vec2(narrow_input(fragment, e, t), narrow_input(fragment, e + 1, t));
        uint word;
        if (D_TYPE != TYPE_BF16)
            word = packFloat2x16(f16vec2(v));
        else if (most >= LEAST_LARGE)
            word = float_to_bf16(v.x) | float_to_bf16(v.y) << 16;
        else
            word = rounded_to_bf16(v.x) >> 16 | rounded_to_bf16(v.y) & 0xffff0000u;
        const f16vec2 pair = unpackFloat2x16(word);
        narrow[e] = pair.x;
        narrow[e + 1] = pair.y;
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
