// gated.glsl: the epilogue of gated products, on x4s of D. Bias along N and aux have 2N columns, in
// the order of B: first all of l, then all of r, or by turns.

float sigmoid_of_gate(float x) {
    if (GATE_SLOPE != 0x3f800000u) x *= uintBitsToFloat(GATE_SLOPE);
    return activation_sigmoid(x);
}

// The half that is activated: vkgemm/epilogue.hpp, Gate.
float gate_of_halves(float l, float r) {
    switch (GATE) {
        case GATE_SIGMOID_TANH: return sigmoid_of_gate(l) * activation_tanh(r);
        case GATE_GEGLU_ERF: return l * activation_gelu_erf(r);
        case GATE_GEGLU_TANH: return l * activation_gelu_tanh(r);
        case GATE_SWIGLU: return l * sigmoid_of_gate(l) * r;
        case GATE_REGLU: return l * activation_relu(r);
        case GATE_GLU: return l * sigmoid_of_gate(r);
    }
    return l;
}

// The parameters of a gate, in their order: vkgemm/epilogue.hpp, Gated.
float limited(float x, const bool is_activated) {
    const float limit = uintBitsToFloat(GATE_LIMIT);
    if (is_nan(x)) return x;
    return is_activated ? min(x, limit) : clamp(x, -limit, limit);
}
float gate(float l, float r) {
    const bool activates_l = GATE == GATE_SWIGLU;
    if (GATE_SWAPPED != 0) {
        const float left = l;
        l = r;
        r = left;
    }
    if (GATE_LIMIT != 0) {
        l = limited(l, activates_l);
        r = limited(r, !activates_l);
    }
    if (GATE_OFFSET != 0) {
        const float offset = uintBitsToFloat(GATE_OFFSET);
        if (activates_l) r += offset;
        else l += offset;
    }
    return gate_of_halves(l, r);
}

// Where among 2N the columns of an x4 of l (side 0) or r stand.
uvec4 gated_columns4(uint col, const uint side) {
    const uvec4 j = columns4(col);
    return GATE_INTERLEAVED != 0 ? 2 * j + side : j + side * size_n();
}

// The same of factors: those of parts stand with each half of B.
uvec4 scale_columns4(uint col, const uint side) {
    return COLUMN_SCALES == SCALES_OF_PARTS ? columns4(col) : gated_columns4(col, side);
}

Pair4 gated_bias4(const Tile t, uint row, uint col) {
    Pair4 bias = Pair4(vec4(0.0), vec4(0.0));
    if (BIAS == BIAS_NONE || !is_inside(t, row, col)) return bias;
    if (BIAS == BIAS_ALONG_M) {
        bias.l = bias.r = vec4(load1(element(t.bias, BIAS_TYPE, 0, 0, row), BIAS_TYPE));
        return bias;
    }
    const uvec4 l = gated_columns4(col, 0), r = gated_columns4(col, 1);
    [[unroll]] for (uint e = 0; e < 4; ++e) {
        bias.l[e] = load1(element(t.bias, BIAS_TYPE, 0, 0, l[e]), BIAS_TYPE);
        bias.r[e] = load1(element(t.bias, BIAS_TYPE, 0, 0, r[e]), BIAS_TYPE);
    }
    return bias;
}

void gated_aux4(const Tile t, uint row, uint col, uint valid, const Pair4 v) {
    const bool by_turns = GATE_INTERLEAVED != 0;
    store_aux4(t, row, by_turns ? 2 * col : col, by_turns ? 2 * valid : valid,
               by_turns ? vec4(v.l.x, v.r.x, v.l.y, v.r.y) : v.l);
    if (!by_turns || valid > 2)
        store_aux4(t, row, by_turns ? 2 * col + 4 : col + size_n(),
                   by_turns ? 2 * valid - 4 : valid,
                   by_turns ? vec4(v.l.z, v.r.z, v.l.w, v.r.w) : v.r);
}

// The value before the steps, of elements that exist; stores aux.
vec4 gated_value4(const Tile t, uint row, uint col, const AccPair4 acc, const Pair4 bias) {
    // Gated products have no C.
    Tile right = t;
    if (COLUMN_SCALES == SCALES_OF_PARTS) right.column_scales += p.b_right;
    const vec4 scaled_l = scaled4(t, row, scale_columns4(col, 0), acc.l);
    const vec4 scaled_r = scaled4(right, row, scale_columns4(col, 1), acc.r);
    const vec4 l = epilogue_pre4(t, scaled_l, vec4(0.0), bias.l);
    const vec4 r = epilogue_pre4(t, scaled_r, vec4(0.0), bias.r);
    if (AUX_TYPE != TYPE_NONE) gated_aux4(t, row, col, size_n() - col, Pair4(l, r));
    vec4 v;
    [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = gate(l[e], r[e]);
    return v;
}
