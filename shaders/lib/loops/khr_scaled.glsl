// khr_scaled.glsl: the product of a k-tile, whose sums over groups of K have scales (staged_scales.glsl). A sum
// has accumulators of its own, a column of fragments at a time: there are few of them beside the others. A of a whole sum
// stays in registers meanwhile. Matrices whose lines are all the same, loaded with a stride of 0, bring scales to the
// elements of accumulators.
#define SUM_FRAGMENT coopmat<SUM_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_N, gl_MatrixUseAccumulator>
const uint SUM_STEPS = SCALED_DEPTH / FRAGMENT_K;
const uint SCALES_AT = STAGE_SIZE;

void set_staged_scale(const uint place, const float value) { sh[SCALES_AT + place / 4][place % 4] = floatBitsToUint(value); }

// Scales of a row or a column of fragments. `first`: the place of the first of them.
void load_row_scales(inout ACC_FRAGMENT scales, const uint first) {
    coopMatLoad(scales, sh, SCALES_AT + first / 4, 0, gl_CooperativeMatrixLayoutColumnMajor);
}
void load_column_scales(inout ACC_FRAGMENT scales, const uint first) {
    coopMatLoad(scales, sh, SCALES_AT + first / 4, 0, gl_CooperativeMatrixLayoutRowMajor);
}

void multiply(inout Acc acc) {
    const uvec2 at = subgroup_position() * uvec2(SUBGROUP_M, SUBGROUP_N);
    [[unroll]] for (uint s = 0; s < TILE_SUMS; ++s) {
        const uint rows_at = s * SCALE_LINE + at.x, columns_at = s * SCALE_LINE + SCALED_ROWS + at.y;
        FRAGMENT_OF_A a[ROWS * SUM_STEPS];
        ACC_FRAGMENT row_scales[ROWS], sums_of_a[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
            [[unroll]] for (uint step = 0; step < SUM_STEPS; ++step)
                load_a_fragment(a[i * SUM_STEPS + step], i, 0, s * SCALED_DEPTH + step * FRAGMENT_K);
            if (A_GROUP_K != 0) load_row_scales(row_scales[i], rows_at + i * FRAGMENT_M);
            if (HAS_MINIMA) {
                SUM_FRAGMENT sum = SUM_FRAGMENT(SUM_SCALAR(0));
                [[unroll]] for (uint step = 0; step < SUM_STEPS; ++step)
                    sum = coopMatMulAdd(a[i * SUM_STEPS + step], FRAGMENT_OF_B(IN_SCALAR(1)), sum);
                sums_of_a[i] = ACC_FRAGMENT(sum);
                if (A_GROUP_K != 0) sums_of_a[i] *= row_scales[i];
            }
        }
        [[unroll]] for (uint j = 0; j < COLS; ++j) {
            SUM_FRAGMENT sum[ROWS];
            [[unroll]] for (uint i = 0; i < ROWS; ++i) sum[i] = SUM_FRAGMENT(SUM_SCALAR(0));
            [[unroll]] for (uint step = 0; step < SUM_STEPS; ++step) {
                FRAGMENT_OF_B b;
                load_b_fragment(b, j, 0, s * SCALED_DEPTH + step * FRAGMENT_K);
                [[unroll]] for (uint i = 0; i < ROWS; ++i)
                    sum[i] = coopMatMulAdd(a[i * SUM_STEPS + step], b, sum[i]);
            }
            ACC_FRAGMENT scales, minima;
            load_column_scales(scales, columns_at + j * FRAGMENT_N);
            if (HAS_MINIMA) load_column_scales(minima, columns_at + TILE_N + j * FRAGMENT_N);
            [[unroll]] for (uint i = 0; i < ROWS; ++i) {
                ACC_FRAGMENT scaled = ACC_FRAGMENT(sum[i]);
                if (A_GROUP_K != 0) scaled *= row_scales[i];
                acc.fragment[i][j] += scaled * scales;
                if (HAS_MINIMA) acc.fragment[i][j] += sums_of_a[i] * minima;
            }
        }
    }
}
