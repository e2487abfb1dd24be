// Each kind of GLSL that a function may have: loops, switches, arrays, matrices, constants.
const float table[3] = float[](0.5, 1.0, 2.0);

float sum_of(const vec4 x) {
    float sum = 0.0;
    for (int i = 0; i < 4; ++i) {
        if (x[i] < 0.0) continue;
        sum += x[i];
    }
    return sum;
}

float everything(float value, uvec2 at, vec4 x) {
    switch (at.x % 3u) {
        case 0: value += 1.0; break;
        case 1: value *= 2.0;
        default: value -= 0.5;
    }
    const mat2 turned = mat2(0.0, 1.0, -1.0, 0.0);
    const vec2 pair = turned * vec2(value, sum_of(x));
    const float both[2] = float[](pair.x, pair.y);
    return both[int(at.x + 1u > 0u)] * table[at.y % 3u] + float(at.x) - both[0];
}
