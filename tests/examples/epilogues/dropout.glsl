// Keeps an element with probability x.x, by a counter: the same for each run with the seed x.y.
uint mixed(uint bits) {
    bits = (bits ^ bits >> 16) * 0x7feb352du;
    bits = (bits ^ bits >> 15) * 0x846ca68bu;
    return bits ^ bits >> 16;
}

float dropout(float value, uvec2 at, vec4 x) {
    const uint random = mixed(at.x ^ mixed(at.y ^ mixed(uint(x.y))));
    return float(random >> 8) < x.x * 16777216.0 ? value / x.x : 0.0;
}
