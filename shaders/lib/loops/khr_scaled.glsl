// khr_scaled.glsl: the product of a k-tile, whose sums over groups of K have scales (staged_scales.glsl). Sums
// have their own accumulators. If KEEPS_SUMS (footprint.h) is 1, all columns have sums, which stay in registers across
// k-tiles. Otherwise one column of fragments has sums at a time, and A of a whole sum stays in registers. A load with a
// stride of 0 makes a matrix of equal lines, which brings scales to the elements of accumulators.
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

// The scales of rows of fragments, and sums of A, which minima of columns multiply.
struct RowFactors {
    ACC_FRAGMENT scales[ROWS], sums_of_a[ROWS];
};
// `line`: where the scales of the group begin.
void take_row_scales(inout RowFactors rows, const uint line) {
    const uint at = line + subgroup_position().x * SUBGROUP_M;
    [[unroll]] for (uint i = 0; i < ROWS; ++i)
        if (A_GROUP_K != 0) load_row_scales(rows.scales[i], at + i * FRAGMENT_M);
}
void take_sum_of_a(inout RowFactors rows, const uint i, const SUM_FRAGMENT sum) {
    rows.sums_of_a[i] = ACC_FRAGMENT(sum);
    if (A_GROUP_K != 0) rows.sums_of_a[i] *= rows.scales[i];
}
// Adds the sums of column `j`, times their scales.
void add_scaled(inout Acc acc, const uint j, const SUM_FRAGMENT sum[ROWS], const RowFactors rows, const uint line) {
    const uint at = line + SCALED_ROWS + subgroup_position().y * SUBGROUP_N + j * FRAGMENT_N;
    ACC_FRAGMENT scales, minima;
    load_column_scales(scales, at);
    if (HAS_MINIMA) load_column_scales(minima, at + TILE_N);
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
        ACC_FRAGMENT scaled = ACC_FRAGMENT(sum[i]);
        if (A_GROUP_K != 0) scaled *= rows.scales[i];
        acc.fragment[i][j] += scaled * scales;
        if (HAS_MINIMA) acc.fragment[i][j] += rows.sums_of_a[i] * minima;
    }
}

// Sums of groups that end in the k-tile, a column of fragments at a time.
void multiply_groups(inout Acc acc) {
    [[unroll]] for (uint s = 0; s < TILE_SUMS; ++s) {
        FRAGMENT_OF_A a[ROWS * SUM_STEPS];
        RowFactors rows;
        take_row_scales(rows, s * SCALE_LINE);
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
            [[unroll]] for (uint step = 0; step < SUM_STEPS; ++step)
                load_a_fragment(a[i * SUM_STEPS + step], i, 0, s * SCALED_DEPTH + step * FRAGMENT_K);
            if (HAS_MINIMA) {
                SUM_FRAGMENT sum = SUM_FRAGMENT(SUM_SCALAR(0));
                [[unroll]] for (uint step = 0; step < SUM_STEPS; ++step)
                    sum = coopMatMulAdd(a[i * SUM_STEPS + step], FRAGMENT_OF_B(IN_SCALAR(1)), sum);
                take_sum_of_a(rows, i, sum);
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
            add_scaled(acc, j, sum, rows, s * SCALE_LINE);
        }
    }
}

// Sums that are kept.
#define HAS_KEPT_SUMS
const bool KEEPS = KEEPS_SUMS(TILE_M, TILE_N, TILE_K, LOCAL_SIZE, A_GROUP_K, CODE_GROUP_K) != 0;
SUM_FRAGMENT kept_sums[COLS][ROWS], kept_sums_of_a[ROWS];
uint kept_from, kept_to;  // of K

void clear_sums(const uint k) {
    kept_from = kept_to = k;
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
        kept_sums_of_a[i] = SUM_FRAGMENT(SUM_SCALAR(0));
        [[unroll]] for (uint j = 0; j < COLS; ++j) kept_sums[j][i] = SUM_FRAGMENT(SUM_SCALAR(0));
    }
}

void begin_sums(const uint k) {
    if (KEEPS) clear_sums(k);
}

void end_sums(inout Acc acc) {
    if (!KEEPS || kept_from == kept_to) return;
    RowFactors rows;
    take_row_scales(rows, 0);
    if (HAS_MINIMA) [[unroll]] for (uint i = 0; i < ROWS; ++i) take_sum_of_a(rows, i, kept_sums_of_a[i]);
    [[unroll]] for (uint j = 0; j < COLS; ++j) add_scaled(acc, j, kept_sums[j], rows, 0);
}

bool is_group_end(const uint k, const uint group) { return group != 0 && k % CODE_DIVISOR(group) == 0; }

void multiply(inout Acc acc) {
    if (!KEEPS) {
        multiply_groups(acc);
        return;
    }
    [[unroll]] for (uint k = 0; k < TILE_K; k += FRAGMENT_K) {
        FRAGMENT_OF_A a[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
            load_a_fragment(a[i], i, 0, k);
            if (HAS_MINIMA)
                kept_sums_of_a[i] = coopMatMulAdd(a[i], FRAGMENT_OF_B(IN_SCALAR(1)), kept_sums_of_a[i]);
        }
        [[unroll]] for (uint j = 0; j < COLS; ++j) {
            FRAGMENT_OF_B b;
            load_b_fragment(b, j, 0, k);
            [[unroll]] for (uint i = 0; i < ROWS; ++i) kept_sums[j][i] = coopMatMulAdd(a[i], b, kept_sums[j][i]);
        }
    }
    kept_to += TILE_K;
    if (is_group_end(kept_to, A_GROUP_K) || is_group_end(kept_to, CODE_GROUP_K) ||
        kept_to - kept_from >= KEPT_DEPTH_MOST) {
        end_sums(acc);
        clear_sums(kept_to);
    }
}
