// row_result.glsl: what a row reduction does to the elements of a row whose state is known.

// The coefficients of a row, see row_result4().
vec3 row_coefficients(const RowState s) {
    const float n = float(p.n);  // not a constant anywhere, so divided by in one way
    precise vec3 c = vec3(0.0, 1.0, 0.0);
    switch (ROW_OP) {
        case ROW_OP_RMS_NORM: c.y = 1.0 / sqrt(s.x / n + p.eps); break;
        case ROW_OP_LAYER_NORM:
            c.y = 1.0 / sqrt(s.y / n + p.eps);
            c.xz = vec2(s.x, -s.z * c.y);
            break;
        // An infinite maximum leaves no number in the row, as in PyTorch.
        case ROW_OP_SOFTMAX:
            c.x = s.x;
            c.y = is_infinite(s.x) ? uintBitsToFloat(0x7fc00000u) : 1.0 / s.y;
            break;
        case ROW_OP_L2_NORMALIZE: c.y = 1.0 / max_or_nan(sqrt(s.x), p.eps); break;
    }
    return c;
}

vec4 row_result4(const vec4 v, const vec3 c, const vec4 gamma, const vec4 shift) {
    precise vec4 d = v;
    switch (ROW_OP) {
        case ROW_OP_RMS_NORM:
        case ROW_OP_L2_NORMALIZE: d = v * c.y; break;
        case ROW_OP_LAYER_NORM: d = fma(v - vec4(c.x), vec4(c.y), vec4(c.z)); break;
        case ROW_OP_SOFTMAX: d = exponential(v - vec4(c.x)) * c.y; break;
    }
    if (ROW_GAMMA != 0) d *= gamma;
    if (ROW_SHIFT != 0) d += shift;
    return d;
}

// An x4 of a vector that all rows share.
vec4 row_gamma4(uint col) {
    if (ROW_GAMMA == 0) return vec4(1.0);
    return load4(element(p.gamma, ROW_VECTOR_TYPE, 0, 0, col), ROW_VECTOR_TYPE, false,
                 size_n() - col);
}
vec4 row_shift4(uint col) {
    if (ROW_SHIFT == 0) return vec4(0.0);
    return load4(element(p.shift, ROW_VECTOR_TYPE, 0, 0, col), ROW_VECTOR_TYPE, false,
                 size_n() - col);
}
