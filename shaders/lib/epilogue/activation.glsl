// activation.glsl: the activations, in f32, written so that NaN propagates, large arguments
// saturate instead of overflowing to NaN, and small results keep their relative precision.

// The bits are asked, as in is_nan(): 0 from the smallest negative number to -Inf; -0 and NaN stay.
float relu(float x) { return floatBitsToUint(x) - 0x80000001u < 0x7f800000u ? 0.0 : x; }

// The functions below spell out every fma() and leave no product in a sum: nothing is left to
// contract, so that every pipeline gives the same bits.

// tanh: GLSL's own may compute sinh / cosh and give Inf / Inf. The polynomial for small arguments
// is the one of the Cephes library's tanhf (Moshier).
float tanh_stable(float x) {
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

float sigmoid(float x) {
    return 1.0 / (1.0 + exp(-x));
}

// gelu(x) = x * erfc(-x / sqrt(2)) / 2. erfc, not erf: 1 + erf cancels for negative x. The
// approximation, relative error 1.2e-7 everywhere, is the Chebyshev fit of Press et al., Numerical
// Recipes, section 6.2 (erfcc).
float gelu_erf(float x) {
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
float gelu_tanh(float x) {
    return x * sigmoid(1.5957691216057308 * fma(0.044715 * x * x, x, x));
}

float activate(float x) {
    switch (ACTIVATION) {
        case ACTIVATION_RELU: return relu(x);
        case ACTIVATION_GELU_ERF: return gelu_erf(x);
        case ACTIVATION_GELU_TANH: return gelu_tanh(x);
        case ACTIVATION_SILU: return x * sigmoid(x);
        case ACTIVATION_SIGMOID: return sigmoid(x);
        case ACTIVATION_TANH: return tanh_stable(x);
    }
    return x;
}
