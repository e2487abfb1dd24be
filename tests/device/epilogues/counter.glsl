// A global variable, which no main() sets.
float calls = 0.0;

float counter(float value, uvec2 at, vec4 x) { return ++calls; }
