// row_result.glsl: what a row reduction does to the elements of a row whose state is known.

// Against division by 0.
float row_eps() { return uintBitsToFloat(ROW_EPS); }

// The coefficients of a row, see row_result4().
vec3 row_coefficients(const RowState s) {
    const float n = float(p.n);  // not a constant anywhere, so divided by in one way
    precise vec3 c = vec3(0.0, 1.0, 0.0);
    switch (ROW_OP) {
        case ROW_OP_RMS_NORM: c.y = 1.0 / sqrt(s.x / n + row_eps()); break;
        case ROW_OP_LAYER_NORM:
            c.y = 1.0 / sqrt(s.y / n + row_eps());
            c.xz = vec2(s.x, -s.z * c.y);
            break;
        // An infinite maximum leaves no number in the row, as in PyTorch.
        case ROW_OP_SOFTMAX:
            c.x = s.x;
            c.y = is_infinite(s.x) ? uintBitsToFloat(0x7fc00000u) : 1.0 / s.y;
            break;
        case ROW_OP_L2_NORMALIZE: c.y = 1.0 / max_or_nan(sqrt(s.x), row_eps()); break;
        case ROW_OP_QUANTISE:
            c.y = has_codes(floatBitsToUint(s.x)) ? code_factor(floatBitsToUint(s.x)) : 0.0;
            break;
    }
    return c;
}

// x4s of the vectors that all rows share.
struct RowVectors {
    vec4 gamma;
    vec4 shift;
};
vec4 row_vector4(const bool given, uint64_t vector, float otherwise, uint col) {
    if (!given) return vec4(otherwise);
    return load4(element(vector, ROW_VECTOR_TYPE, 0, 0, col), ROW_VECTOR_TYPE, false, size_n() - col);
}
RowVectors row_vectors4(uint col) {
    return RowVectors(row_vector4(ROW_GAMMA != 0, p.gamma, 1.0, col),
                      row_vector4(ROW_SHIFT != 0, p.shift, 0.0, col));
}

vec4 row_result4(const vec4 v, const vec3 c, const RowVectors vectors) {
    precise vec4 d = v;
    switch (ROW_OP) {
        case ROW_OP_RMS_NORM:
        case ROW_OP_L2_NORMALIZE:
        case ROW_OP_QUANTISE: d = v * c.y; break;  // the cast makes 0 of NaN
        case ROW_OP_LAYER_NORM: d = fma(v - vec4(c.x), vec4(c.y), vec4(c.z)); break;
        case ROW_OP_SOFTMAX: d = exponential(v - vec4(c.x)) * c.y; break;
    }
    if (ROW_GAMMA != 0) d *= vectors.gamma;
    if (ROW_SHIFT != 0) d += vectors.shift;
    return d;
}
