// row_scalar.glsl: the number that a row is reduced to, from its state.
float row_scalar(const RowState s) {
    const float n = float(p.n);
    precise float v = s.x;  // sum, max, amax
    switch (ROW_OP) {
        case ROW_OP_LOGSUMEXP: v = is_infinite(s.x) ? s.x : s.x + log(s.y); break;
        case ROW_OP_MEAN: v = s.x / n; break;
        case ROW_OP_VARIANCE: v = s.y / n; break;
        case ROW_OP_QUANTISE: v = uintBitsToFloat(code_scale(floatBitsToUint(s.x))); break;
    }
    return v;
}

void store_row_scalar(uint64_t batch, uint row, const RowState s) {
    store1(element(p.row_values, ROW_VALUE_TYPE, 0, 0, 0) +
               (batch * p.m + row) * type_size(ROW_VALUE_TYPE),
           ROW_VALUE_TYPE, row_scalar(s));
}
