// steps.glsl: the steps of an epilogue (vkgemm/epilogue.hpp, EpilogueStep), in their order. Each is a constant
// (constants.h, STEP_*), so that a pipeline has the code of its own steps alone.

#include "../schedule/shared_word.glsl"

#define NTH_STEP(name)          \
    switch (i) {                \
        case 1: return name##1; \
        case 2: return name##2; \
        case 3: return name##3; \
        case 4: return name##4; \
        case 5: return name##5; \
        case 6: return name##6; \
        case 7: return name##7; \
    }                           \
    return name##0;
uint step_word(const uint i) { NTH_STEP(STEP) }
uint step_number(const uint i) { NTH_STEP(STEP_NUMBER) }

struct Step {
    uint op, activation, operand, type, place;
    bool col_major, vector;
    float number;
};

Step step_of(const uint i) {
    const uint word = step_word(i);
    Step s;
    s.op = word & 15u;
    s.activation = word >> STEP_ACTIVATION_SHIFT & 31u;
    s.operand = word >> STEP_OPERAND_SHIFT & 7u;
    s.type = word >> STEP_TYPE_SHIFT & 15u;
    s.place = word >> STEP_PLACE_SHIFT & 3u;
    s.col_major = (word >> STEP_COL_MAJOR_SHIFT & 1u) != 0;
    s.vector = (word >> STEP_VECTOR_SHIFT & 1u) != 0;
    s.number = uintBitsToFloat(step_number(i));
    return s;
}

// The last x4 of D that a step which sums columns saw: column_sums.glsl.
const bool SUMS_COLUMNS = HAS_COLUMN_SUMS != 0;
vec4 summed;

// The largest |v| that a step (StepOp::amax) of this invocation saw, by bits: NaN is larger than all numbers.
const bool FINDS_AMAX = HAS_AMAX != 0;
uint amax_bits = 0;

uint64_t place_base(const Tile t, const uint place) {
    return place == PLACE_AUX     ? t.aux
           : place == PLACE_BIAS  ? t.bias
           : place == PLACE_EXTRA ? t.extra
                                : t.c;
}
uint place_ld(const uint place) {
    return place == PLACE_AUX     ? p.ld_aux
           : place == PLACE_BIAS  ? p.ld_bias
           : place == PLACE_EXTRA ? p.ld_extra
                                : p.ldc;
}

// Element (row, col) of a step's tensor, and how far apart neighbours of a row stand.
uint64_t step_element(const Tile t, const Step s, uint row, uint col) {
    const uint64_t base = place_base(t, s.place);
    switch (s.operand) {
        case OPERAND_SCALAR: return base;
        case OPERAND_ALONG_N: return element(base, s.type, 0, 0, col);
        case OPERAND_ALONG_M: return element(base, s.type, 0, 0, row);
    }
    return element(base, s.type, s.col_major, row, place_ld(s.place), col);
}
uint64_t step_row_step(const Step s) { return row_step(s.type, s.col_major, place_ld(s.place)); }

// The word of a mask that has the bits of an x4 of D, which begin at bit col % 32.
uint64_t mask_word(const Tile t, const Step s, uint row, uint col) {
    return place_base(t, s.place) + uint64_t(row) * place_ld(s.place) + col / 32 * 4;
}
uint mask_bits(const Tile t, const Step s, uint row, uint col) {
    return U32(mask_word(t, s, row, col)).x >> col % 32;
}

// Stores v > 0, and behind the last column zeros up to the end of the word. Other invocations store the
// other bits of the word.
void store_mask4(const Tile t, const Step s, uint row, uint col, vec4 v) {
    const uint own = size_n() - col <= 4 ? ~0u : 15u;
    uint bits = 0;
    [[unroll]] for (uint e = 0; e < 4; ++e) bits |= col + e < size_n() && v[e] > 0.0 ? 1u << e : 0u;
    const uint64_t word = mask_word(t, s, row, col);
    atomicAnd(SharedWord(word).x, ~((own & ~bits) << col % 32), RELAXED);
    atomicOr(SharedWord(word).x, bits << col % 32, RELAXED);
}

// Takes an x4 whose first elements exist.
void find_amax4(uint col, vec4 v) {
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (col + e < size_n())
            amax_bits = max(amax_bits, floatBitsToUint(v[e]) & 0x7fffffffu);
}

// Brings the amax of this invocation to memory. Most invocations find a larger one there.
void store_amax(const uint64_t word) {
    if (amax_bits > atomicLoad(SharedWord(word).x, RELAXED))
        atomicMax(SharedWord(word).x, amax_bits, RELAXED);
}
void store_amax(const Tile t) {
    if (!FINDS_AMAX) return;
    [[unroll]] for (uint i = 0; i < STEP_COUNT; ++i) {
        const Step s = step_of(i);
        if (s.op == STEP_AMAX) store_amax(place_base(t, s.place));
    }
}

// A function of the application gives its own body to this one (src/specialise/link.hpp): the new
// value of element `at` of D.
float epilogue_function(float value, uvec2 at, vec4 x) { return uintBitsToFloat(EPILOGUE_FUNCTION); }

uvec2 function_at(const Step s, uint row, uint col) {
    return s.col_major ? uvec2(col, row) : uvec2(row, col);
}

// A step on a value, x: its operand. A NaN of either stays one.
float stepped(const Step s, float v, float x) {
    precise float y = v;
    switch (s.op) {
        case STEP_ADD: y = v + x; break;
        case STEP_SUBTRACT: y = v - x; break;
        case STEP_MULTIPLY: y = v * x; break;
        case STEP_DIVIDE: y = v / x; break;
        case STEP_MAXIMUM: y = is_nan(v) || (v > x && !is_nan(x)) ? v : x; break;
        case STEP_MINIMUM: y = is_nan(v) || (v < x && !is_nan(x)) ? v : x; break;
        case STEP_ACTIVATE: y = activate(s.activation, v, s.number); break;
        case STEP_DERIVATIVE: y = v * derivative(s.activation, x, s.number); break;
    }
    return y;
}

// A step's operand for an x4 of D, which begins at an element that exists.
vec4 step_operand4(const Tile t, const Step s, uint row, uint col) {
    if (s.operand == OPERAND_NUMBER) return vec4(s.number);
    if (s.operand == OPERAND_MASK)
        return vec4(uvec4(mask_bits(t, s, row, col)) >> uvec4(0, 1, 2, 3) & 1u);
    const uint64_t at = step_element(t, s, row, col);
    if (s.operand == OPERAND_SCALAR || s.operand == OPERAND_ALONG_M) return vec4(load1(at, s.type));
    return load4(at, step_row_step(s), s.type, s.vector, size_n() - col);
}

// All steps on such an x4. `c`: the x4 of the matrix in place of C (C_STEP).
vec4 with_steps4(const Tile t, uint row, uint col, vec4 v, const vec4 c) {
    if (STEP_COUNT == 0) return v;
    vec4 arguments[MOST_ARGUMENTS];
    [[unroll]] for (uint i = 0; i < MOST_ARGUMENTS; ++i) arguments[i] = vec4(0.0);
    [[unroll]] for (uint i = 0; i < STEP_COUNT; ++i) {
        const Step s = step_of(i);
        if (s.op == STEP_FUNCTION) {
            [[unroll]] for (uint e = 0; e < 4; ++e)
                v[e] = epilogue_function(v[e], function_at(s, row, col + e),
                                         vec4(arguments[0][e], arguments[1][e], arguments[2][e], arguments[3][e]));
            continue;
        }
        if (s.op == STEP_STORE && s.operand == OPERAND_MASK) {
            store_mask4(t, s, row, col, v);
            continue;
        }
        if (s.op == STEP_STORE) {
            store4(step_element(t, s, row, col), step_row_step(s), s.type, s.vector,
                   size_n() - col, v);
            continue;
        }
        if (s.op == STEP_SUM_COLUMNS) {
            summed = v;
            continue;
        }
        if (s.op == STEP_AMAX) {
            find_amax4(col, v);
            continue;
        }
        vec4 x = c;
        if (C_STEP == 0 || s.operand == OPERAND_NUMBER || s.place != PLACE_C)
            x = step_operand4(t, s, row, col);
        if (s.op == STEP_ARGUMENT) {
            [[unroll]] for (uint j = 0; j < MOST_ARGUMENTS; ++j)
                if (s.activation == j) arguments[j] = x;
            continue;
        }
        [[unroll]] for (uint e = 0; e < 4; ++e) v[e] = stepped(s, v[e], x[e]);
    }
    return v;
}

// The same of one element, without stores, sums and amax.
float with_steps(const Tile t, uint row, uint col, float v) {
    vec4 arguments = vec4(0.0);
    [[unroll]] for (uint i = 0; i < STEP_COUNT; ++i) {
        const Step s = step_of(i);
        float x = s.number;
        if (s.operand == OPERAND_MASK) x = float(mask_bits(t, s, row, col) & 1u);
        else if (s.operand != OPERAND_NUMBER) x = load1(step_element(t, s, row, col), s.type);
        if (s.op == STEP_FUNCTION) v = epilogue_function(v, function_at(s, row, col), arguments);
        else if (s.op == STEP_ARGUMENT) arguments[s.activation] = x;
        else v = stepped(s, v, x);
    }
    return v;
}
