// The gate of gpt-oss for two products: value is the linear half, x.x the activated one.
float clamped_swiglu(float value, uvec2 at, vec4 x) {
    const float activated = min(x.x, 7.0);
    const float linear = clamp(value, -7.0, 7.0);
    return activated / (1.0 + exp(-1.702 * activated)) * (linear + 1.0);
}
