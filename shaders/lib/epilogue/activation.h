// activation.h: the activations. Their list is for C++ and GLSL. The functions are in f32, written
// so that NaN propagates, large arguments saturate instead of overflowing to NaN, and small results
// keep their relative precision.
#ifndef VKGEMM_ACTIVATION_H
#define VKGEMM_ACTIVATION_H

// X(name, NAME, value): the enumerators of Activation after none, of VkgemmActivation, and the
// values of the constant ACTIVATION.
#define VKGEMM_ACTIVATIONS(X)   \
    X(relu, RELU, 1)            \
    X(gelu_erf, GELU_ERF, 2)    \
    X(gelu_tanh, GELU_TANH, 3)  \
    X(silu, SILU, 4)            \
    X(sigmoid, SIGMOID, 5)      \
    X(tanh, TANH, 6)

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

// gelu(x) = x * erfc(-x / sqrt(2)) / 2. erfc, not erf: 1 + erf cancels for negative x. The
// approximation, relative error 1.2e-7 everywhere, is the Chebyshev fit of Press et al., Numerical
// Recipes, section 6.2 (erfcc).
float activation_gelu_erf(float x) {
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
    return 0.5 * x * (x < 0.0 ? t * e : fma(-t, e, 2.0));
}

// 0.5 x (1 + tanh(u)) = x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
float activation_gelu_tanh(float x) {
    return x * activation_sigmoid(1.5957691216057308 * fma(0.044715 * x * x, x, x));
}

// A macro, since loops with calls (CMakeLists.txt) would call it.
#define activation_silu(x) ((x) * activation_sigmoid(x))

#define ACTIVATE(name, NAME, value) case value: return activation_##name(x);
float activate(float x) {
    switch (ACTIVATION) { VKGEMM_ACTIVATIONS(ACTIVATE) }
    return x;
}
#endif
#endif
