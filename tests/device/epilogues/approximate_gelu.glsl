// The formula of activation gelu_tanh, in a function that calls another one.
float argument_of(float x) { return 1.5957691216057308 * fma(0.044715 * x * x, x, x); }

float approximate_gelu(float value, uvec2 at, vec4 x) {
    return value * (1.0 / (1.0 + exp(-argument_of(value))));
}
