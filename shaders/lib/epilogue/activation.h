// activation.h: the activations. Their list is for C++ and GLSL. The functions are in f32, written
// so that NaN propagates, large arguments saturate instead of overflowing to NaN, and small results
// keep their relative precision.
#ifndef VKGEMM_ACTIVATION_H
#define VKGEMM_ACTIVATION_H

// X(name, NAME, value): the enumerators of Activation after none, of VkgemmActivation, and the
// values of the constant ACTIVATION. Those that take a number come last.
#define VKGEMM_PLAIN_ACTIVATIONS(X) \
    X(relu, RELU, 1)                \
    X(gelu_erf, GELU_ERF, 2)        \
    X(gelu_tanh, GELU_TANH, 3)      \
    X(silu, SILU, 4)                \
    X(sigmoid, SIGMOID, 5)          \
    X(tanh, TANH, 6)                \
    X(softplus, SOFTPLUS, 7)        \
    X(hard_swish, HARD_SWISH, 8)    \
    X(exp, EXP, 9)                  \
    X(abs, ABS, 10)                 \
    X(square, SQUARE, 11)           \
    X(sqrt, SQRT, 12)

#define VKGEMM_NUMBERED_ACTIVATIONS(X) \
    X(leaky_relu, LEAKY_RELU, 13)      \
    X(elu, ELU, 14)

#define VKGEMM_ACTIVATIONS(X) VKGEMM_PLAIN_ACTIVATIONS(X) VKGEMM_NUMBERED_ACTIVATIONS(X)

#ifndef __cplusplus

// The bits are asked, as in is_nan(): 0 from the smallest negative number to -Inf; -0 and NaN stay.
float activation_relu(float x) { return floatBitsToUint(x) - 0x80000001u < 0x7f800000u ? 0.0 : x; }

// The functions below spell out every fma() and leave no product in a sum: nothing is left to
// contract, so that every pipeline gives the same bits.

// tanh: GLSL's own may compute sinh / cosh and give Inf / Inf. The polynomial for small arguments
// is the one of the Cephes library's tanhf (Moshier).
float activation_tanh(float x) {
    float y;
    if (abs(x) < 0.625) {
        const float z = x * x;
        float q = -5.70498872745e-3;
        q = fma(q, z, 2.06390887954e-2);
        q = fma(q, z, -5.37397155531e-2);
        q = fma(q, z, 1.33314422036e-1);
        q = fma(q, z, -3.33332819422e-1);
        y = fma(q * z, x, x);
    } else {
        y = fma(-2.0, 1.0 / (exp(2.0 * x) + 1.0), 1.0);
    }
    return y;
}

float activation_sigmoid(float x) {
    return 1.0 / (1.0 + exp(-x));
}

// erfc(-x / sqrt(2)): not 1 + erf, which cancels for negative x. The approximation, relative error
// 1.2e-7 everywhere, is the Chebyshev fit of Press et al., Numerical Recipes, section 6.2 (erfcc).
float erfc_of_gelu(float x) {
    const float z = abs(x) * 0.70710678118654752;
    const float t = 1.0 / fma(0.5, z, 1.0);
    float q = 0.17087277;
    q = fma(q, t, -0.82215223);
    q = fma(q, t, 1.48851587);
    q = fma(q, t, -1.13520398);
    q = fma(q, t, 0.27886807);
    q = fma(q, t, -0.18628806);
    q = fma(q, t, 0.09678418);
    q = fma(q, t, 0.37409196);
    q = fma(q, t, 1.00002368);
    q = fma(q, t, -1.26551223);
    const float e = exp(fma(-z, z, q));  // erfc(z) = t e
    return x < 0.0 ? t * e : fma(-t, e, 2.0);
}

float activation_gelu_erf(float x) { return 0.5 * x * erfc_of_gelu(x); }

// 0.5 x (1 + tanh(u)) = x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
float activation_gelu_tanh(float x) {
    return x * activation_sigmoid(1.5957691216057308 * fma(0.044715 * x * x, x, x));
}

// A macro, since loops with calls (CMakeLists.txt) would call it.
#define activation_silu(x) ((x) * activation_sigmoid(x))

// log(1 + y) = 2 atanh(y / (y + 2)), by its series: 0 <= y <= 1.
float log1p_of_fraction(float y) {
    const float s = y / (y + 2.0), z = s * s;
    float q = 1.0 / 15.0;
    q = fma(q, z, 1.0 / 13.0);
    q = fma(q, z, 1.0 / 11.0);
    q = fma(q, z, 1.0 / 9.0);
    q = fma(q, z, 1.0 / 7.0);
    q = fma(q, z, 0.2);
    q = fma(q, z, 1.0 / 3.0);
    return 2.0 * fma(q * z, s, s);
}
float activation_softplus(float x) {
    precise float y = max(x, 0.0) + log1p_of_fraction(exp(-abs(x)));
    return y;
}
float activation_hard_swish(float x) {
    return x * (clamp(x + 3.0, 0.0, 6.0) * 0.16666666666666667);
}
float activation_exp(float x) { return exp(x); }
float activation_abs(float x) { return abs(x); }
float activation_square(float x) { return x * x; }
float activation_sqrt(float x) { return sqrt(x); }
float activation_leaky_relu(float x, const float slope) { return x < 0.0 ? slope * x : x; }
// exp(x) - 1 = 2 t / (1 - t), t = tanh(x / 2), which does not cancel.
float activation_elu(float x, const float scale) {
    const float t = activation_tanh(0.5 * x);
    return x > 0.0 ? x : scale * (2.0 * t / (1.0 - t));
}

#define ACTIVATE(name, NAME, value) case value: return activation_##name(x);

// By the constant itself: the specialiser does not follow arguments into functions.
float activated(float x) {
    switch (ACTIVATION) { VKGEMM_PLAIN_ACTIVATIONS(ACTIVATE) }
    return x;
}

#define ACTIVATE_BY(name, NAME, value) case value: return activation_##name(x, number);
float activate(const uint activation, float x, const float number) {
    switch (activation) {
        VKGEMM_PLAIN_ACTIVATIONS(ACTIVATE)
        VKGEMM_NUMBERED_ACTIVATIONS(ACTIVATE_BY)
    }
    return x;
}

// The derivatives; vkgemm/epilogue.hpp has their values at corners. 1 - sigmoid(x) is sigmoid(-x), which
// does not cancel.
bool is_positive(float x) { return floatBitsToUint(x) - 1u < 0x7f800000u; }
float derivative_relu(float x) { return is_nan(x) ? x : is_positive(x) ? 1.0 : 0.0; }
// 1 - e h(z) for x >= 0 and e h(z) below, z = |x| / sqrt(2), e = exp(-z^2),
// h(z) = erfc(z) / (2 e) - z / sqrt(pi). A polynomial in t replaces h's first term:
// error 5e-8, and none at 0 or infinity.
float derivative_gelu_erf(float x) {
    const float z = min(abs(x) * 0.70710678118654752, 16.0);  // beyond, e is 0
    const float t = 1.0 / fma(0.44, z, 1.0);
    float q = 3.3805216e-2;
    q = fma(q, t, -0.13166451);
    q = fma(q, t, 0.13626051);
    q = fma(q, t, 3.9274786e-4);
    q = fma(q, t, 0.10281249);
    q = fma(q, t, 0.11002045);
    q = fma(q, t, 0.12425362);
    q = fma(q, t, 0.12411949);
    const float h = fma(-0.56418958354775629, z, q * t);
    const float e = exp(-0.5 * (x * x));
    return x < 0.0 ? e * h : fma(-e, h, 1.0);
}
float derivative_gelu_tanh(float x) {
    const float z = min(x * x, 1e6);  // beyond, the second term is 0
    const float u = 1.5957691216057308 * x * fma(0.044715, z, 1.0);
    const float slope = fma(0.21406443, z, 1.5957691216057308);  // of u
    const float s = activation_sigmoid(u);
    return fma(x, slope * (s * activation_sigmoid(-u)), s);
}
float derivative_silu(float x) {
    return activation_sigmoid(x) * fma(x, activation_sigmoid(-x), 1.0);
}
float derivative_sigmoid(float x) { return activation_sigmoid(x) * activation_sigmoid(-x); }
float derivative_tanh(float x) {
    return 4.0 * (activation_sigmoid(2.0 * x) * activation_sigmoid(-2.0 * x));
}
float derivative_softplus(float x) { return activation_sigmoid(x); }
float derivative_hard_swish(float x) {
    const float inside = fma(x, 0.33333333333333333, 0.5);
    return x <= -3.0 ? 0.0 : x >= 3.0 ? 1.0 : inside;
}
float derivative_exp(float x) { return exp(x); }
float derivative_abs(float x) { return is_nan(x) ? x : sign(x); }
float derivative_square(float x) { return 2.0 * x; }
float derivative_sqrt(float x) { return 0.5 / sqrt(x); }
float derivative_leaky_relu(float x, const float slope) {
    return is_nan(x) ? x : is_positive(x) ? 1.0 : slope;
}
float derivative_elu(float x, const float scale) { return is_positive(x) ? 1.0 : scale * exp(x); }

#define DERIVE(name, NAME, value) case value: return derivative_##name(x);
#define DERIVE_BY(name, NAME, value) case value: return derivative_##name(x, number);
float derivative(const uint activation, float x, const float number) {
    switch (activation) {
        VKGEMM_PLAIN_ACTIVATIONS(DERIVE)
        VKGEMM_NUMBERED_ACTIVATIONS(DERIVE_BY)
    }
    return 1.0;
}
#endif
#endif
