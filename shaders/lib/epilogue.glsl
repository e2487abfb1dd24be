// The elementwise epilogue of vkgemm/problem.hpp:
//   pre = alpha * acc + beta * C + bias,  aux = cast(pre),  D = cast(clamp(activation(pre)))
// Paths that see coordinates call epilogue_store4 on four neighbours of a row; the nv path, whose
// stores take whole matrices, calls epilogue_pre and epilogue_post on single elements.
#include "activation.glsl"
#include "convert.glsl"

uint64_t element(uint64_t base, const uint type, uint row, uint ld, uint col) {
    return base + (uint64_t(row) * ld + col) * type_size(type);
}

// The same of C, D and aux, which may be column-major, and how far apart neighbours of a row stand.
uint64_t element(uint64_t base, const uint type, const bool col_major, uint row, uint ld, uint col) {
    return element(base, type, col_major ? col : row, ld, col_major ? row : col);
}
uint64_t row_step(const uint type, const bool col_major, uint ld) {
    return uint64_t(col_major ? ld : 1) * type_size(type);
}

void store_d4(const Tile t, uint row, uint col, vec4 v) {
    const bool col_major = D_COL_MAJOR != 0;
    store4(element(t.d, D_TYPE, col_major, row, p.ldd, col), row_step(D_TYPE, col_major, p.ldd),
           D_TYPE, D_VECTOR != 0, size_n() - col, v);
}

void store_aux4(const Tile t, uint row, uint col, uint valid, vec4 v) {
    const bool col_major = C_COL_MAJOR != 0;
    store4(element(t.aux, AUX_TYPE, col_major, row, p.ld_aux, col),
           row_step(AUX_TYPE, col_major, p.ld_aux), AUX_TYPE, AUX_VECTOR != 0, valid, v);
}

float clamped(float v) {
    return CLAMP != 0 && !is_nan(v) ? clamp(v, p.clamp_min, p.clamp_max) : v;
}

float epilogue_post(float pre) { return clamped(activate(pre)); }

float epilogue_pre(const Tile t, uint row, uint col, float acc) {
    float v = t.alpha * acc;
    if (C_TYPE != TYPE_NONE)
        v += p.beta * load1(element(t.c, C_TYPE, C_COL_MAJOR != 0, row, p.ldc, col), C_TYPE);
    if (BIAS != BIAS_NONE)
        v += load1(element(t.bias, BIAS_TYPE, 0, 0, BIAS == BIAS_ALONG_N ? col : row), BIAS_TYPE);
    return v;
}

// Four neighbours of a row are handled at once. `row` and `col` are coordinates in D; col is a
// multiple of 4. Nothing is touched past the edges.
bool is_inside(const Tile t, uint row, uint col) {
    return EDGES == 0 || (row < t.row_end && col < size_n());
}

// What is added to them is loaded by itself, so that a caller can have many of these loads on their
// way at once, or use one more than once.
vec4 epilogue_c4(const Tile t, uint row, uint col) {
    if (C_TYPE == TYPE_NONE || !is_inside(t, row, col)) return vec4(0.0);
    const bool col_major = C_COL_MAJOR != 0;
    return load4(element(t.c, C_TYPE, col_major, row, p.ldc, col),
                 row_step(C_TYPE, col_major, p.ldc), C_TYPE, C_VECTOR != 0, size_n() - col);
}

// Along N it is that of all rows.
vec4 epilogue_bias4(const Tile t, uint row, uint col) {
    if (BIAS == BIAS_NONE || !is_inside(t, row, col)) return vec4(0.0);
    if (BIAS == BIAS_ALONG_M)
        return vec4(load1(element(t.bias, BIAS_TYPE, 0, 0, row), BIAS_TYPE));
    return load4(element(t.bias, BIAS_TYPE, 0, 0, col), BIAS_TYPE, false, size_n() - col);
}

// What D is before the cast, of elements that exist; stores aux.
vec4 epilogue_value4(const Tile t, uint row, uint col, vec4 acc, vec4 c, vec4 bias) {
    // Precise: in whichever pipeline this is compiled, it gives the same bits.
    precise vec4 v = t.alpha * acc;
    if (C_TYPE != TYPE_NONE) v = fma(vec4(p.beta), c, v);
    if (BIAS != BIAS_NONE) v += bias;
    if (AUX_TYPE != TYPE_NONE) store_aux4(t, row, col, size_n() - col, v);
    [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = epilogue_post(v[e]);
    return v;
}

void epilogue_store4(const Tile t, uint row, uint col, vec4 acc, vec4 c, vec4 bias) {
    if (!is_inside(t, row, col)) return;
    store_d4(t, row, col, epilogue_value4(t, row, col, acc, c, bias));
}

void epilogue_store4(const Tile t, uint row, uint col, vec4 acc) {
    epilogue_store4(t, row, col, acc, epilogue_c4(t, row, col), epilogue_bias4(t, row, col));
}

// What a path does with four of its accumulators: the epilogue, or with split-K a partial result,
// whose rows are padded to multiples of 4.
vec4 tile_c4(const Tile t, uint row, uint col) {
    return SPLIT == SPLIT_NONE ? epilogue_c4(t, row, col) : vec4(0.0);
}
vec4 tile_bias4(const Tile t, uint row, uint col) {
    return SPLIT == SPLIT_NONE ? epilogue_bias4(t, row, col) : vec4(0.0);
}
void tile_store4(const Tile t, uint row, uint col, vec4 acc, vec4 c, vec4 bias) {
    if (SPLIT == SPLIT_NONE)
        epilogue_store4(t, row, col, acc, c, bias);
    else if (is_inside(t, row, col))
        Partial4(element(t.partial, TYPE_F32, row, partial_ld(), col)).x = acc;
}

#include "gated.glsl"

// Adds the slices of four neighbours of D, from the matrix of slice 0 on.
void sum_store4(const Tile t, uint64_t partial, uint row, uint col) {
    const uint64_t first = element(partial, TYPE_F32, row, partial_ld(), col);
    const vec4 sum = sum_of_slices(first);
    if (GATED) gated_store4(t, row, col, Pair4(sum, sum_of_slices(first + partial_row_bytes())));
    else epilogue_store4(t, row, col, sum);
}

// The same for a matrix that holds so many quads of D.
uint64_t partial_quads() { return uint64_t(p.m) * (partial_row() / 4); }
void sum_quad(uint64_t batch, uint64_t quad) {
    const uint quads_per_row = partial_row() / 4;
    sum_store4(batch_tile(batch), partial_base(batch, 0), uint(quad / quads_per_row),
               uint(quad % quads_per_row) * 4);
}
