float doubled(float value, uvec2 at, vec4 x) { return 2.0 * value; }
