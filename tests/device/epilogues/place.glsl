// The place of an element, as a number.
float place(float value, uvec2 at, vec4 x) { return float(at.x * 1024u + at.y); }
