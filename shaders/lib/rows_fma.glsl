// The values of a tile as a row reduction needs them, on fma: the accumulators themselves. A slice
// is a block of four rows of every invocation.
const uint VALUE_SLICES = QUADS_M;
const uint SLICE_VALUES = 4 * QUADS_N;  // quads of an invocation in a slice
const uint VALUE_ROWS = 4 * LANES_M;    // of a slice

bool has_value(const uint i) { return true; }

// Row of the slice and quad of the row.
uvec2 value_place(const uint i) {
    const uvec2 lane = lane_position();
    return uvec2(lane.x * 4 + i / QUADS_N, i % QUADS_N * LANES_N + lane.y);
}

// Row of the tile.
uint value_row(const uint slice, const uint line) { return slice * VALUE_ROWS + line; }

void begin_slice(const Acc acc, const uint slice) { barrier(); }

vec4 slice_value(const Acc acc, const uint slice, const uint i) {
    return acc.quad[slice * 4 + i / QUADS_N][i % QUADS_N];
}

// Shared memory of VALUE_ROWS rows of quads, VALUE_STRIDE apart.
void set_scratch(const uint at, const vec2 value) { sh[at] = vec4(value, 0.0, 0.0); }
vec2 scratch(const uint at) { return sh[at].xy; }
