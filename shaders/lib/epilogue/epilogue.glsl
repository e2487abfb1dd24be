// epilogue.glsl: the elementwise epilogue of vkgemm/epilogue.hpp:
//   pre = alpha * scaled acc + beta * C + bias,  aux = cast(pre)
//   D = cast(clamp(steps(activation(pre))))
// Main loops that see coordinates run it on x4s (store_tile.glsl); nv, whose stores take whole
// matrices, calls epilogue_pre and what follows on single elements.
#include "activation.h"
#include "steps.glsl"
#include "store_d.glsl"

// The formula, for all kernels and main loops. Precise: in whichever pipeline this is compiled, it
// gives the same bits.
vec4 epilogue_pre4(const Tile t, vec4 acc, vec4 c, vec4 bias) {
    precise vec4 v = t.alpha * acc;
    if (C_TYPE != TYPE_NONE) v = fma(vec4(p.beta), c, v);
    if (BIAS != BIAS_NONE) v += bias;
    return v;
}

// Accumulators times the factors of their row and their columns. An empty sum is 0, also times Inf.
bool is_empty_sum(const Tile t) { return GROUPED == GROUPED_ALONG_K && t.k_begin == t.k_end; }
// Rows of A that have a scale for each group of K: sums over groups have them (staged_scales.glsl).
const uint FACTORS_OF_ROWS = A_GROUP_K == 0 ? ROW_SCALES : SCALES_NONE;
float row_scale(const Tile t, uint row) {
    // Parts of groups' rows lie in slots.
    if (ROW_SCALES == SCALES_OF_PARTS) row = row - t.row + t.a_row;
    else row = row_of_a(row);
    return F32(t.row_scales + uint64_t(row) * 4).x;
}
float column_scale(const Tile t, uint col) { return F32(t.column_scales + uint64_t(col) * 4).x; }

// The product with the larger one of two scales that are far apart may overflow.
float scaled_by(const float acc, const float row_scale, const float column_scale) {
    precise float v = acc;
    if (ROW_SCALES == SCALES_OF_PARTS) {
        v *= min(row_scale, column_scale);
        v *= max(row_scale, column_scale);
        return v;
    }
    if (FACTORS_OF_ROWS != SCALES_NONE) v *= row_scale;
    if (COLUMN_SCALES != SCALES_NONE) v *= column_scale;
    return v;
}

float scaled(const Tile t, uint row, uint col, float acc) {
    if (is_empty_sum(t)) return acc;
    float of_row = 1.0, of_column = 1.0;
    if (FACTORS_OF_ROWS != SCALES_NONE) of_row = row_scale(t, row);
    if (COLUMN_SCALES != SCALES_NONE) of_column = column_scale(t, col);
    return scaled_by(acc, of_row, of_column);
}

float clamped(float v) {
    return CLAMP != 0 && !is_nan(v) ? clamp(v, p.clamp_min, p.clamp_max) : v;
}

// The same of one element, which exists, with what is added to it.
float epilogue_pre(const Tile t, uint row, uint col, float acc) {
    float c = 0.0, bias = 0.0;
    if (C_TYPE != TYPE_NONE)
        c = load1(element(t.c, C_TYPE, C_COL_MAJOR != 0, row, p.ldc, col), C_TYPE);
    if (BIAS != BIAS_NONE)
        bias = load1(element(t.bias, BIAS_TYPE, 0, 0, BIAS == BIAS_ALONG_N ? col : row), BIAS_TYPE);
    return epilogue_pre4(t, vec4(scaled(t, row, col, acc)), vec4(c), vec4(bias)).x;
}

// x4s, from here on: `row` and `col` are coordinates in D. Nothing is touched past the edges.
bool is_inside(const Tile t, uint row, uint col) {
    return EDGES == 0 || (row < t.row_end && col < size_n());
}

// An x4 of accumulators, and where among those of columns their factors stand.
vec4 scaled4(const Tile t, uint row, const uvec4 cols, const ACC4 acc) {
    vec4 v = vec4(acc);
    if (is_empty_sum(t)) return v;
    float of_row = 1.0;
    vec4 of_column = vec4(1.0);
    if (FACTORS_OF_ROWS != SCALES_NONE) of_row = row_scale(t, row);
    if (COLUMN_SCALES != SCALES_NONE)
        [[unroll]] for (uint e = 0; e < 4; ++e) of_column[e] = column_scale(t, cols[e]);
    [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = scaled_by(v[e], of_row, of_column[e]);
    return v;
}
// Columns past the edge repeat the last one: no branches around loads.
uvec4 columns4(uint col) { return min(col + uvec4(0, 1, 2, 3), uvec4(size_n() - 1)); }

// C and bias of an x4 are loaded apart from the rest, so that a caller can have many of these loads
// on their way at once, or use one more than once. A step's matrix may be in place of C.
vec4 epilogue_c4(const Tile t, uint row, uint col) {
    if ((C_TYPE == TYPE_NONE && C_STEP == 0) || !is_inside(t, row, col)) return vec4(0.0);
    if (C_STEP != 0) return step_operand4(t, step_of(C_STEP - 1), row, col);
    const bool col_major = C_COL_MAJOR != 0;
    return load4(element(t.c, C_TYPE, col_major, row, p.ldc, col),
                 row_step(C_TYPE, col_major, p.ldc), C_TYPE, C_VECTOR != 0, size_n() - col);
}

// Along N the bias is that of all rows.
vec4 epilogue_bias4(const Tile t, uint row, uint col) {
    if (BIAS == BIAS_NONE || !is_inside(t, row, col)) return vec4(0.0);
    if (BIAS == BIAS_ALONG_M)
        return vec4(load1(element(t.bias, BIAS_TYPE, 0, 0, row), BIAS_TYPE));
    return load4(element(t.bias, BIAS_TYPE, 0, 0, col), BIAS_TYPE, false, size_n() - col);
}

void store_aux4(const Tile t, uint row, uint col, uint valid, vec4 v) {
    const bool col_major = C_COL_MAJOR != 0;
    store4(element(t.aux, AUX_TYPE, col_major, row, p.ld_aux, col),
           row_step(AUX_TYPE, col_major, p.ld_aux), AUX_TYPE, AUX_VECTOR != 0, valid, v);
}

// The value before the steps, of elements that exist; stores aux.
vec4 epilogue_value4(const Tile t, uint row, uint col, ACC4 acc, vec4 c, vec4 bias) {
    vec4 v = epilogue_pre4(t, scaled4(t, row, columns4(col), acc), c, bias);
    if (AUX_TYPE != TYPE_NONE) store_aux4(t, row, col, size_n() - col, v);
    if (ACTIVATION != ACTIVATION_NONE)
        [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = activated(v[e]);
    return v;
}

// D before the cast. `c`: epilogue_c4().
vec4 finished4(const Tile t, uint row, uint col, vec4 v, const vec4 c) {
    v = with_steps4(t, row, col, v, c);
    if (CLAMP != 0)
        [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = clamped(v[e]);
    return v;
}

#include "gated.glsl"

// The bias of the left and the right product, or of the only one.
Pair4 bias4(const Tile t, uint row, uint col) {
    if (GATED) return gated_bias4(t, row, col);
    return Pair4(epilogue_bias4(t, row, col), vec4(0.0));
}

// Stores an x4 of D, made of the sums of the left and the right product, or of the only one.
void epilogue_store4(const Tile t, uint row, uint col, const AccPair4 acc, vec4 c,
                     const Pair4 bias) {
    if (!is_inside(t, row, col)) return;
    const uint to = row_of_d(row);
    if (D_IS_SUM) {
        if (to != NO_ROW) store_bits4(t.d, to, col, bits_of_acc(acc.l));
        return;
    }
    vec4 v;
    if (GATED) v = gated_value4(t, row, col, acc, bias);
    else v = epilogue_value4(t, row, col, acc.l, c, bias.l);
    v = finished4(t, row, col, v, c);
    if (to != NO_ROW) store_d4(t.d, to, col, v);
}
