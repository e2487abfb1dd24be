// fma_numbers.glsl: main loop fma on numbers of its arithmetic, one step after the other.
#define TERMS4 vec4
#define SUM4 vec4
#define ONE_TERM 1.0

TERMS4 terms_of(const uvec4 staged, const bool k_inner) { return uintBitsToFloat(staged); }

SUM4 multiply_terms(const float a, const TERMS4 b, const SUM4 sum) { return fma(vec4(a), b, sum); }

void store_pairs(const uint i) {
    const uint at = B_OFFSET + group_line(i) * B_STRIDE, column = group_column(i) / 2;
    [[unroll]] for (uint e = 0; e < GROUP; ++e) {
        const uint to = column + e / 2 + e % 2 * HALF_N;
        sh[at + to / 4][to % 4] = floatBitsToUint(group_element(stage_data[i], e));
    }
}

void store_lines(const uint i, const uint to, const uint stride) {
    const uint line = group_line(i), column = group_column(i);
    if (k_inner(i)) {
        [[unroll]] for (uint e = 0; e < GROUP; ++e)
            sh[to + (column + e) * stride + line / 4][line % 4] = floatBitsToUint(group_element(stage_data[i], e));
    } else {
        [[unroll]] for (uint e = 0; e < GROUP; e += 4)
            sh[to + line * stride + (column + e) / 4] = floatBitsToUint(
                vec4(group_element(stage_data[i], e), group_element(stage_data[i], e + 1),
                     group_element(stage_data[i], e + 2), group_element(stage_data[i], e + 3)));
    }
}
