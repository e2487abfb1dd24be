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

// D in f32: alpha * A·B. Where bf16 comes next NaNs are changed to one that number_to_bf16 keeps. A
// sum tells whether there are any, so that what they take is seldom run.
void finish(const Acc product, inout Acc acc, const Tile t) {
    float sum = 0.0;
    EACH_FRAGMENT(i, j) {
        acc.fragment[i][j] = product.fragment[i][j];
        [[unroll]] for (uint e = 0; e < FRAGMENT_VALUES; e += 4) {
            const vec4 own = vec4(acc.fragment[i][j][e], acc.fragment[i][j][e + 1],
                                  acc.fragment[i][j][e + 2], acc.fragment[i][j][e + 3]);
            const vec4 d = epilogue_pre4(t, own, vec4(0.0), vec4(0.0));
            [[unroll]] for (uint x = 0; x < 4; ++x) acc.fragment[i][j][e + x] = d[x];
            sum += (d.x + d.y) + (d.z + d.w);
        }
    }
    if (D_TYPE != TYPE_BF16 || (floatBitsToUint(sum) & 0x7f800000u) != 0x7f800000u) return;
    EACH_FRAGMENT(i, j) {
        [[unroll]] for (uint e = 0; e < FRAGMENT_VALUES; ++e) {
            if (is_nan(acc.fragment[i][j][e]))
                acc.fragment[i][j][e] = uintBitsToFloat(0x7fc00000u);
        }
    }
}

uint narrow_pair(const float low, const float high) {
    return D_TYPE == TYPE_BF16 ? bf16_pair(number_to_bf16(low), number_to_bf16(high))
                               : packFloat2x16(f16vec2(low, high));
}

NARROW_FRAGMENT narrowed(const ACC_FRAGMENT fragment) {
    NARROW_FRAGMENT narrow;
    [[unroll]] for (uint e = 0; e < FRAGMENT_VALUES; e += 2) {
        const f16vec2 pair = unpackFloat2x16(narrow_pair(fragment[e], fragment[e + 1]));
        narrow[e] = pair.x;
        narrow[e + 1] = pair.y;
    }
    return narrow;
}

void store_narrow(const Acc product, const Tile t) {
    Acc acc;
    finish(product, acc, t);
    const uvec2 position = subgroup_position();
    const uint first = position.x * SLICE_SUBGROUP_ROWS * NARROW_STRIDE + position.y * NARROW_ROW;
    const uint row = t.row + position.x * SUBGROUP_M, col = t.col + position.y * SUBGROUP_N;
    EACH_SLICE(slice) {
        subgroupBarrier();
        EACH_FRAGMENT(i, j) {
            if (i / SLICE_FRAGMENTS == slice)
                coopMatStore(narrowed(acc.fragment[i][j]), sh,
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
