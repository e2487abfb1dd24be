// The words of activation gelu_tanh, in a function that calls another one.
float argument_of(float x) { return 0.79788456080286535588 * fma(0.044715 * x * x, x, x); }

float approximate_gelu(float value, uvec2 at, vec4 x) {
    const float t = exp(2.0 * min(argument_of(value), 20.0));
    return value * (t / (t + 1.0));
}
