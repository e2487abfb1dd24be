// row_state.glsl: row reductions: the knowledge of some elements of a row, and how that of
// neighbours is merged. All in f32 from the values before the last cast.
//
// All kernels merge in one order: four x4s at once, then pairs of fours, pairs of these pairs, … up to
// ROW_BLOCK columns, then blocks from left to right. So all strategies and tiles give the same bits
// if their products have the same bits.

// The members' meaning depends on the operation:
//   sum, mean                 x = sum of v
//   rms_norm, l2_normalize    x = sum of v²
//   layer_norm, variance      x + z = mean, y = sum of (v - mean)²   merged as by Chan, Golub and
//                             LeVeque, Updating formulae and a pairwise algorithm for computing
//                             sample variances, 1979. x is the first element, z the mean's
//                             distance from it: only differences of elements are rounded, so that
//                             a large mean costs a small deviation nothing
//   softmax, logsumexp        x = max, y = sum of exp(v - max)   merged as by Milakov and
//                             Gimelshein, Online normalizer calculation for softmax, 2018
//   max                       x = max
//   quantise, amax            x = max of |v|, by bits: row_codes.glsl
// n: how many elements; 0: nothing is known.
#include "row_codes.glsl"

struct RowState {
    float n, x, y, z;
};

const bool ROW_MOMENTS = ROW_OP == ROW_OP_LAYER_NORM ? true : ROW_OP == ROW_OP_VARIANCE;
const bool ROW_EXPONENTIALS = ROW_OP == ROW_OP_SOFTMAX ? true : ROW_OP == ROW_OP_LOGSUMEXP;
const bool ROW_SQUARES = ROW_OP == ROW_OP_RMS_NORM ? true : ROW_OP == ROW_OP_L2_NORMALIZE;
const uint STATE_BYTES = ROW_STATE_BYTES(ROW_MOMENTS);  // in the workspace
const bool ROW_MAXIMUM = ROW_OP == ROW_OP_MAX;
const bool ROW_HAS_Y = ROW_MOMENTS ? true : ROW_EXPONENTIALS;
const uint STATE_WORDS = ROW_MOMENTS ? 3 : ROW_HAS_Y ? 2 : 1;
const bool ROW_MAGNITUDE = ROW_OP == ROW_OP_QUANTISE ? true : ROW_OP == ROW_OP_AMAX;
const bool ROW_HAS_VALUE = ROW_OP >= ROW_OP_LOGSUMEXP;  // a number a row
const bool ROW_HAS_SCALAR = ROW_OP == ROW_OP_QUANTISE ? false : ROW_HAS_VALUE;  // alone; else D is transformed

const float MINUS_INFINITY = uintBitsToFloat(0xff800000u);

bool is_minus_infinity(float x) { return floatBitsToUint(x) == 0xff800000u; }
bool is_infinite(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }

// NaN goes through, which GLSL does not promise of max().
float max_or_nan(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : max(a, b); }

// exp() that gives 0 for minus infinity on every device.
float exponential(float x) { return is_minus_infinity(x) ? 0.0 : exp(x); }
vec4 exponential(const vec4 x) {
    return vec4(exponential(x.x), exponential(x.y), exponential(x.z), exponential(x.w));
}

// Exponents are relative to it: exp(Inf - Inf) would be NaN.
float exponent_shift(float largest) { return is_infinite(largest) ? 0.0 : largest; }

float sum_of_products(const vec4 a, const vec4 b) {
    precise const float sum = fma(a.x, b.x, a.y * b.y) + fma(a.z, b.z, a.w * b.w);
    return sum;
}

float larger_magnitude(float a, float b) {
    return uintBitsToFloat(max(floatBitsToUint(a) & 0x7fffffffu, floatBitsToUint(b) & 0x7fffffffu));
}

// The state of an x4, of which the first `valid`, at least one, exist.
RowState row_state(const vec4 v, const uint valid) {
    const bvec4 exists = EDGES == 0 ? bvec4(true) : lessThan(uvec4(0, 1, 2, 3), uvec4(valid));
    RowState s = RowState(EDGES == 0 ? 4.0 : float(min(valid, 4)), 0.0, 0.0, 0.0);
    if (ROW_MAXIMUM || ROW_EXPONENTIALS) {
        const vec4 e = mix(vec4(MINUS_INFINITY), v, exists);
        s.x = max_or_nan(max_or_nan(e.x, e.y), max_or_nan(e.z, e.w));
        if (ROW_EXPONENTIALS) {
            precise const vec4 t = exponential(e - vec4(exponent_shift(s.x)));
            precise const float sum = (t.x + t.y) + (t.z + t.w);
            s.y = sum;
        }
        return s;
    }
    if (ROW_MOMENTS) {
        precise const vec4 d = mix(vec4(0.0), v - vec4(v.x), exists);
        precise const float sum = d.y + (d.z + d.w);
        precise const float distance = s.n == 4.0 ? sum * 0.25 : sum / s.n;
        precise const vec4 deviation = mix(vec4(0.0), d - vec4(distance), exists);
        s.x = v.x;
        s.y = sum_of_products(deviation, deviation);
        s.z = distance;
        return s;
    }
    const vec4 e = mix(vec4(0.0), v, exists);
    if (ROW_MAGNITUDE) {
        s.x = larger_magnitude(larger_magnitude(e.x, e.y), larger_magnitude(e.z, e.w));
        return s;
    }
    precise const vec4 t = ROW_SQUARES ? e * e : e;
    precise const float sum = (t.x + t.y) + (t.z + t.w);
    s.x = sum;
    return s;
}

// The state of elements that nothing is known about, or of none.
RowState no_row_state() {
    return RowState(0.0, ROW_MAXIMUM || ROW_EXPONENTIALS ? MINUS_INFINITY : 0.0, 0.0, 0.0);
}

// A state without n, as memory holds it, and the state of `n` elements.
vec3 kept_state(const RowState s) { return vec3(s.x, s.y, s.z); }
RowState known_row_state(const uint n, const vec3 kept) {
    return RowState(float(n), kept.x, kept.y, kept.z);
}

// The state's y, if its maximum were `largest`.
float relative_to(const float largest, const RowState s) {
    if (is_minus_infinity(s.x)) return 0.0;
    precise const float y = s.y * exp(exponent_shift(s.x) - exponent_shift(largest));
    return y;
}

// `a` stands left of `b`. `equal`: they are known to be of as many elements, at least one.
RowState merge_rows(const RowState a, const RowState b, const bool equal) {
    RowState s = RowState(a.n + b.n, 0.0, 0.0, 0.0);
    if (ROW_MAXIMUM || ROW_EXPONENTIALS) {
        s.x = max_or_nan(a.x, b.x);
        if (ROW_EXPONENTIALS) {
            precise const float sum = relative_to(s.x, a) + relative_to(s.x, b);
            s.y = sum;
        }
        return s;
    }
    if (ROW_MOMENTS) {
        // Nothing is taken of an empty side, so that it cannot be 0/0. Equal sides need no
        // division, which devices round as they like.
        precise const float part = equal || a.n == b.n ? 0.5 : b.n / max(s.n, 1.0);
        precise const float delta = (b.x - a.x) + (b.z - a.z);
        precise const float distance = fma(delta, part, a.z);
        precise const float squares = fma(delta * delta, a.n * part, a.y + b.y);
        const bool none = !equal && b.n == 0.0;
        s.x = a.x;
        s.y = none ? a.y : squares;
        s.z = none ? a.z : distance;
        return s;
    }
    if (ROW_MAGNITUDE) {
        s.x = larger_magnitude(a.x, b.x);
        return s;
    }
    precise const float sum = a.x + b.x;
    s.x = !equal && b.n == 0.0 ? a.x : sum;  // -0 + 0 would be 0
    return s;
}

RowState merge_four_moments(const RowState s[4]) {
    const vec4 n = vec4(s[0].n, s[1].n, s[2].n, s[3].n);
    const vec4 x = vec4(s[0].x, s[1].x, s[2].x, s[3].x);
    const vec4 z = vec4(s[0].z, s[1].z, s[2].z, s[3].z);
    // Weights of whole x4s are 1 and change no bit. A missing x4 has no element to be near to.
    const vec4 weight = EDGES == 0 ? vec4(1.0) : n * 0.25;
    const float all = EDGES == 0 ? 4.0 : (weight.x + weight.y) + (weight.z + weight.w);
    const bvec4 missing = EDGES == 0 ? bvec4(false) : equal(n, vec4(0.0));
    precise const vec4 d = mix((x - vec4(x.x)) + z, vec4(0.0), missing);
    precise const vec4 weighted = d * weight;
    precise const float sum = (weighted.x + weighted.y) + (weighted.z + weighted.w);
    precise const float distance = all == 4.0 ? sum * 0.25 : sum / max(all, 0.25);
    precise const vec4 deviation = d - vec4(distance);
    precise const vec4 factor = deviation * weight;
    precise const float within = (s[0].y + s[1].y) + (s[2].y + s[3].y);
    precise const float squares = fma(4.0, sum_of_products(factor, deviation), within);
    return RowState(4.0 * all, x.x, squares, distance);
}

// Merges four neighbouring x4s. Only the last one that exists may have fewer than 4 elements.
RowState merge_four(const RowState s[4]) {
    if (ROW_MOMENTS) return merge_four_moments(s);
    if (ROW_EXPONENTIALS) {
        const float largest =
            max_or_nan(max_or_nan(s[0].x, s[1].x), max_or_nan(s[2].x, s[3].x));
        precise const float sum = (relative_to(largest, s[0]) + relative_to(largest, s[1])) +
                                  (relative_to(largest, s[2]) + relative_to(largest, s[3]));
        return RowState((s[0].n + s[1].n) + (s[2].n + s[3].n), largest, sum, 0.0);
    }
    return merge_rows(merge_rows(s[0], s[1], EDGES == 0), merge_rows(s[2], s[3], EDGES == 0),
                      EDGES == 0);
}

// Merges halves of a tree within a tile: without edges they are equal.
RowState merge_halves(const RowState a, const RowState b) { return merge_rows(a, b, EDGES == 0); }
